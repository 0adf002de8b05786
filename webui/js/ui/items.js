// The items of a turn that are not tool calls: reasoning, intents, notes, answers, events nobody could read.

import { t } from "../i18n/index.js";
import { duration } from "../text/format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Markdown } from "./markdown.js";

export function Thought({ item }) {
  const { live, text, ms, role } = item;
  const title = live ? t("thought.live") : ms ? t("thought.done", { time: duration(ms) }) : t("thought.done_untimed");
  return html`<details class=${`thought ${live ? "is-live" : ""}`}>
    <summary>
      <${Icon} name="thought" /><span class="thought-title">${title}</span>
      ${role !== "thinker" && html`<span class="thought-role">${t("thought.role", { role })}</span>`}
      ${live ? html`<span class="thought-tail" aria-hidden="true"><bdi>${lastLine(text)}</bdi></span>` : html`<${Icon} name="chevron" cls="turns" />`}
    </summary>
    <div class="thought-text">${text.trim()}</div>
  </details>`;
}

const lastLine = (text) => text.slice(-160).trimEnd().split("\n").at(-1);

export const Intent = ({ item }) => html`<p class="intent">${item.text}</p>`;

const ICONS = { info: "info", warn: "warn", bad: "bad" };

/** What the server says when the person gave no reason; the note's own words say the same. */
const NO_REASON = new Set(["cancelled by the person", "paused by the person"]);

export function Note({ item }) {
  const { code, tone, attempt = 1, extra = 0, error, detail, said } = item;
  const words = code === "resumed" && extra ? t("note.resumed_extra", { n: extra }) : t(`note.${code}`, { attempt });
  return html`<div class=${`note tone-${tone}`} data-note=${code}>
    <${Icon} name=${ICONS[tone]} />
    <div>
      <p>${words}</p>
      ${detail && !NO_REASON.has(detail) && html`<p class="note-detail">${error && html`<code>${error}</code> `}${detail}</p>`}
      ${said && html`<details class="written"><summary><${Icon} name="chevron" cls="turns" />${t("note.said")}</summary><pre tabindex="0">${said}</pre></details>`}
    </div>
  </div>`;
}

/** @param {{item: object, told: Set<string>}} props told: what notes above have said already */
export function Answer({ item, told }) {
  const { text, live, notices = [], superseded } = item;
  const fresh = notices.filter((notice) => !told.has(notice));
  const body = text.trim() ? html`<${Markdown} text=${text} live=${live} />` : !live && html`<p class="is-quiet">${t("turn.empty_answer")}</p>`;
  if (superseded) return html`<details class="written"><summary><${Icon} name="chevron" cls="turns" />${t("turn.draft")}</summary>${body}</details>`;
  return html`<div class="answer" data-live=${String(Boolean(live))}>
    ${body}
    ${fresh.map((notice) => html`<div class="note tone-info"><${Icon} name="info" /><div><p>${notice}</p></div></div>`)}
  </div>`;
}

export const Raw = ({ item }) => html`<details class="written raw">
  <summary><${Icon} name="warn" />${t("note.raw", { type: item.type })}</summary>
  ${item.problem && html`<p>${item.problem}</p>`}
  <pre tabindex="0">${JSON.stringify(item.data, null, 2)}</pre>
</details>`;
