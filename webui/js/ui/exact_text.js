// A text that somebody decides about: whole, exact, with misleading characters shown as codes.

import { t } from "../i18n/index.js";
import { visiblePieces } from "../text/visible.js";
import { html, useState } from "./html.js";

const FOLD_AT = 20;

const marked = (pieces) => pieces.map(({ text, escaped }) => (escaped ? html`<mark class="escaped">${text}</mark>` : text));

/** The same within a line. */
export const Visible = ({ text }) => marked(visiblePieces(text));

/** @param {{text: string, label: string, prompt?: string}} props prompt: a sign before the text, such as `$` */
export function ExactText({ text, label, prompt = "" }) {
  const [all, setAll] = useState(false);
  const lines = text.split("\n");
  const long = lines.length > FOLD_AT + 2;
  const pieces = visiblePieces(long && !all ? lines.slice(0, FOLD_AT).join("\n") : text);
  const hidden = visiblePieces(text).some((piece) => piece.escaped);
  return html`<div class="exact">
    <pre tabindex="0" aria-label=${label}>${prompt && html`<span class="prompt" aria-hidden="true">${prompt} </span>`}${marked(pieces)}</pre>
    ${long && html`<button type="button" class="terminal-more" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
      ${all ? t("tool.show_less") : t("tool.show_all", { n: lines.length })}
    </button>`}
    ${hidden && html`<p class="exact-note">${t("approval.hidden")}</p>`}
  </div>`;
}
