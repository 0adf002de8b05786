// Terminal output as lines of styled spans.
//
// Understands SGR (colours, bold, dim, italic, underline, inverse), carriage returns and backspaces, as progress bars
// use them. Every other escape sequence, and every control character, is dropped: output is data and moves nothing on
// the page. 256 and true colours become the nearest of the theme's sixteen, so that they stay readable on it.

const ESCAPE = /\x1b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~]?)/g;
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

const RGB = [
  [0, 0, 0], [205, 49, 49], [13, 160, 80], [200, 160, 20], [36, 114, 200], [188, 63, 188], [17, 150, 190], [200, 200, 200],
  [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 220, 67], [59, 142, 234], [214, 112, 214], [41, 184, 219], [255, 255, 255],
];

/** @returns {{text: string, cls: string}[][]} lines of spans; cls is "" or a list of `ansi-…` classes */
export function ansiLines(text) {
  const lines = [];
  let style = {};
  for (const raw of text.replace(/\r+\n/g, "\n").split("\n")) {
    const line = renderLine(raw, style);
    style = line.style;
    lines.push(line.spans);
  }
  return lines;
}

function renderLine(raw, style) {
  if (!/[\x00-\x1f\x7f-\x9f]/.test(raw)) {
    return { spans: raw ? [{ text: raw, cls: classes(style) }] : [], style };
  }
  const cells = new Cells();
  let at = 0;
  for (const match of raw.matchAll(ESCAPE)) {
    cells.write(raw.slice(at, match.index), classes(style));
    at = match.index + match[0].length;
    if (match[2] === "m") style = sgr(style, match[1]);
    else if (match[2] === "K") cells.erase();
  }
  cells.write(raw.slice(at), classes(style));
  return { spans: cells.spans(), style };
}

/** One line with a cursor, so that `\r` and `\b` overwrite as on a terminal. */
class Cells {
  #cells = [];
  #x = 0;

  write(text, cls) {
    for (const char of text) {
      if (char === "\r") this.#x = 0;
      else if (char === "\b") this.#x = Math.max(0, this.#x - 1);
      else {
        const clean = char.replace(CONTROL, "");
        if (clean) this.#cells[this.#x++] = { text: clean, cls };
      }
    }
  }

  /** Erases from the cursor to the end of the line. */
  erase() {
    this.#cells.length = Math.min(this.#cells.length, this.#x);
  }

  spans() {
    const out = [];
    for (const cell of Array.from(this.#cells, (c) => c ?? { text: " ", cls: "" })) {
      const last = out.at(-1);
      if (last && last.cls === cell.cls) last.text += cell.text;
      else out.push({ ...cell });
    }
    return out;
  }
}

function sgr(style, codes) {
  const next = { ...style };
  const list = (codes || "0").split(/[;:]/).map(Number);
  for (let i = 0; i < list.length; i++) {
    const code = list[i];
    if (code === 0) Object.keys(next).forEach((key) => delete next[key]);
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code === 29) next.strike = false;
    else if (code === 39) delete next.fg;
    else if (code === 49) delete next.bg;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(list.slice(i + 1));
      if (colour !== null) next[code === 38 ? "fg" : "bg"] = colour;
      i += used;
    }
  }
  return next;
}

function extended([mode, ...rest]) {
  if (mode === 5) return [nearest(palette(rest[0] ?? 0)), 2];
  if (mode === 2) return [nearest(rest.slice(0, 3)), 4];
  return [null, 1];
}

function palette(index) {
  if (index < 16) return RGB[index];
  if (index >= 232) return Array(3).fill(8 + (index - 232) * 10);
  const cube = index - 16;
  return [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((v) => (v ? 55 + v * 40 : 0));
}

function nearest(rgb) {
  const distance = (colour) => colour.reduce((sum, v, i) => sum + (v - (rgb[i] ?? 0)) ** 2, 0);
  return RGB.reduce((best, colour, i) => (distance(colour) < distance(RGB[best]) ? i : best), 0);
}

function classes(style) {
  const out = [];
  if (style.fg !== undefined) out.push(`ansi-fg${style.fg}`);
  if (style.bg !== undefined) out.push(`ansi-bg${style.bg}`);
  for (const name of ["bold", "dim", "italic", "underline", "inverse", "strike"]) if (style[name]) out.push(`ansi-${name}`);
  return out.join(" ");
}
