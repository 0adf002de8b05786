// HTML character references in Markdown text, without an HTML parser.
//
// Markdown allows `&amp;` and friends in text. Only the references that models write are known; any other stays as it
// is written, which is readable and harmless.

const NAMED = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…",
  mdash: "—", ndash: "–", laquo: "«", raquo: "»", ldquo: "“", rdquo: "”", lsquo: "‘", rsquo: "’", times: "×", deg: "°",
  rarr: "→", larr: "←", uarr: "↑", darr: "↓", middot: "·", bull: "•", euro: "€", le: "≤", ge: "≥", ne: "≠", plusmn: "±",
};

/** @param {string} text */
export function decodeEntities(text) {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (name) return NAMED[name] ?? whole;
    const code = hex ? parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : whole;
  });
}
