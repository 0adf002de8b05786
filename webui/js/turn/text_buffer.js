// Text that arrives in pieces with offsets.
//
// The server counts characters as Unicode code points, JavaScript as UTF-16 units, so the length is kept beside the
// text. A piece may repeat what we have (after a reconnect) or leave a gap (then the caller asks for all of it again).

/** Number of code points. */
export function codePoints(text) {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) {
      count--;
      i++;
    }
  }
  return count;
}

/**
 * @param {{text: string, chars: number}} have
 * @param {number} offset where the piece belongs; 0 replaces everything
 * @returns {{text: string, chars: number} | null} null when something before the piece is missing
 */
export function splice(have, offset, piece) {
  if (offset === have.chars) return { text: have.text + piece, chars: have.chars + codePoints(piece) };
  if (offset === 0) return { text: piece, chars: codePoints(piece) };
  if (offset > have.chars) return null;
  const overlap = have.chars - offset;
  const fresh = Array.from(piece).slice(overlap);
  return { text: have.text + fresh.join(""), chars: have.chars + fresh.length };
}
