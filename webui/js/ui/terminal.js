// Output of a tool: coloured, folded past twenty lines, all of it on demand.

import { t } from "../i18n/index.js";
import { ansiLines } from "../text/ansi.js";
import { html, useMemo, useState } from "./html.js";

const FOLD_AT = 20;

/** @param {{text: string, label: string, tail?: boolean, live?: boolean}} props tail: when folded, the end is shown */
export function Terminal({ text, label, tail = false, live = false }) {
  const [all, setAll] = useState(false);
  const lines = useMemo(() => ansiLines(text.replace(/\n$/, "")), [text]);
  const folded = lines.length > FOLD_AT + 2 && !all;
  const shown = !folded ? lines : tail ? lines.slice(-FOLD_AT) : lines.slice(0, FOLD_AT);
  const toggle =
    lines.length > FOLD_AT + 2 &&
    html`<button type="button" class="terminal-more" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
      ${all ? t("tool.show_less") : t("tool.show_all", { n: lines.length })}
    </button>`;
  return html`<div class=${`terminal ${folded ? (tail ? "is-tail" : "is-head") : ""} ${live ? "is-live" : ""}`}>
    ${tail && toggle}
    <pre tabindex="0" aria-label=${label}>${shown.map((line, i) => html`<${Line} key=${i} spans=${line} />`)}</pre>
    ${!tail && toggle}
  </div>`;
}

const Line = ({ spans }) =>
  html`<span class="line">${spans.map(({ text, cls }) => (cls ? html`<span class=${cls}>${text}</span>` : text))}${"\n"}</span>`;
