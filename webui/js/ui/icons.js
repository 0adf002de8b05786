// Icons as inline SVG: strokes in the colour of the text, hidden from screen readers (the words beside them speak).

import { html } from "./html.js";

const PATHS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h10",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  ban: "M12 3a9 9 0 100 18 9 9 0 000-18zM5.8 5.8l12.4 12.4",
  clock: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 7v5l3.5 2",
  warn: "M12 4L2.8 19.5h18.4L12 4zM12 10v4.5M12 17.2v.1",
  info: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 11v5.5M12 7.6v.1",
  bad: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 7.5v5.5M12 16.3v.1",
  hand: "M8 13V5.5a1.5 1.5 0 013 0V11V4.5a1.5 1.5 0 013 0V11V6a1.5 1.5 0 013 0v8.5c0 3.6-2.4 6-6 6-2.7 0-4.2-1.2-5.5-3.4L4.2 14c-.9-1.5.9-3 2.2-1.7L8 14",
  pencil: "M4 20l1-4L16.5 4.5l3 3L8 19l-4 1z",
  archive: "M4 8h16v11a1 1 0 01-1 1H5a1 1 0 01-1-1V8zM3 4h18v4H3zM10 12h4",
  restore: "M4 12a8 8 0 108-8 8.5 8.5 0 00-6 2.5L4 8M4 4v4h4",
  folder: "M3 6.5A1.5 1.5 0 014.5 5H9l2 2.5h8.5A1.5 1.5 0 0121 9v8.5a1.5 1.5 0 01-1.5 1.5h-15A1.5 1.5 0 013 17.5v-11z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  chevron: "M9 6l6 6-6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  thought: "M12 4a6 6 0 00-3.5 10.9c.6.5 1 1.1 1 1.9v.2h5v-.2c0-.8.4-1.4 1-1.9A6 6 0 0012 4zM10 20h4",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.2v.1",
  again: "M20 12a8 8 0 11-2.5-5.8L20 8M20 4v4h-4",
  play: "M8 5l11 7-11 7V5z",
  dot: "M12 12v.01",
  skip: "M6 12h12",
  repeat: "M5 11V9a3 3 0 013-3h11l-3-3M19 13v2a3 3 0 01-3 3H5l3 3",
  question: "M9 9a3 3 0 115 2.2c-1.2 1-2 1.6-2 3.1M12 17.6v.1M12 3a9 9 0 100 18 9 9 0 000-18z",
  moon: "M19.5 14.5A8 8 0 019.5 4.5a8 8 0 1010 10z",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  key: "M14.5 4a5.5 5.5 0 00-5.2 7.2L4 16.5V20h3.5v-2.5H10V15l1.6-1.3A5.5 5.5 0 1014.5 4zM16 8.2v.1",
};

/** @param {{name: keyof typeof PATHS, cls?: string}} props */
export function Icon({ name, cls = "" }) {
  return html`<svg class=${`icon ${cls}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}

export function Duck({ cls = "" }) {
  return html`<svg class=${`duck ${cls}`} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <path class="duck-beak" d="M7.2 8.6 2.4 11.2c-.8.4-.8 1.5 0 1.9l5.2 2.2z" />
    <path class="duck-body" d="M13 3.5a7 7 0 0 0-7 7c0 2.6 1.1 4.3 2.1 5.6C5.600 17.300 4 19.300 4 21.800 4 26.200 8.500 28.500 15 28.500c8.200 0 14-3.700 14-11 0-1.100-1.300-1.600-2-.8-1.800 2-4 2.500-6.200 2-2-.5-2.800-1.900-2.200-3.700.6-1.500 1.400-2.800 1.400-4.500a7 7 0 0 0-7-7z" />
    <circle class="duck-eye" cx="11.400" cy="9.400" r="1.300" />
  </svg>`;
}
