// Makes characters visible that could mislead whoever approves an action: controls, bidi marks, invisible and
// look-alike spaces, full-width letters. What is approved must be what is read.

// tab and newline stay; \p{Cf} has bidi controls, zero-width characters, soft hyphens, tags
const MISLEADING = /[\p{Cf}\p{Co}\p{Cn}\u2028\u2029]|(?![\t\n])\p{Cc}|(?! )\p{Zs}|[\u115f\u1160\u3164\uffa0\u2800]|[\uff01-\uff5e]/gu;

/** @returns {{text: string, escaped: boolean}[]} pieces in order; escaped ones are codes such as `\u{202e}` */
export function visiblePieces(text) {
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(MISLEADING)) {
    if (match.index > at) pieces.push({ text: text.slice(at, match.index), escaped: false });
    pieces.push({ text: `\\u{${match[0].codePointAt(0).toString(16)}}`, escaped: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), escaped: false });
  return pieces;
}
