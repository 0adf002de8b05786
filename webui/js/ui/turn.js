// One turn: what the person said, what was done about it, the answer, and what it cost.

import { t } from "../i18n/index.js";
import { fullTime } from "../text/format.js";
import { ActivityLine } from "./activity_line.js";
import { announce } from "./announcer.js";
import { html, useEffect, useMemo, useRef } from "./html.js";
import { Answer, Intent, Note, Raw, Thought } from "./items.js";
import { ProblemBox } from "./problem.js";
import { ToolCall } from "./tool_call.js";
import { TurnFooter } from "./turn_footer.js";

const KINDS = { thought: Thought, intent: Intent, tool: ToolCall, note: Note, answer: Answer, raw: Raw };

/** @param {{turn: import("../state/turn_store.js").TurnStore, conversation: object, isLast: boolean}} props */
export function Turn({ turn, conversation, isLast }) {
  const view = turn.view.value;
  const root = useRef(null);
  useDetailsInSight(turn, root);
  useEndAnnounced(view.ended);
  return html`<article class=${`turn ${view.ended ? "" : "is-working"}`} ref=${root} data-task=${view.taskId ?? ""} data-status=${view.status}>
    <div class="said" aria-label=${t("chat.you")} role="group" title=${view.createdAt ? fullTime(view.createdAt) : ""}><p>${view.message}</p></div>
    <div class="work">
      <${Missing} turn=${turn} />
      <${Items} items=${view.items} workspace=${view.workspace} />
      ${turn.problem.value && html`<${ProblemBox} title=${turn.problem.value.during === "stop" ? t("turn.stop_failed") : ""} problem=${turn.problem.value} />`}
    </div>
    ${view.ended ? html`<${TurnFooter} turn=${turn} conversation=${conversation} isLast=${isLast} />` : html`<${ActivityLine} turn=${turn} isLast=${isLast} />`}
  </article>`;
}

function Items({ items, workspace }) {
  const told = useMemo(() => new Set(items.filter((item) => item.kind === "note").map((item) => item.detail)), [items]);
  return items.map((item) => {
    const Kind = KINDS[item.kind];
    return html`<div class=${`item is-${item.kind}`} key=${item.key}><${Kind} item=${item} workspace=${workspace} told=${told} /></div>`;
  });
}

/** Stands for the steps until their events are here. */
function Missing({ turn }) {
  const details = turn.details.value;
  const { toolCalls } = turn.view.value.usage;
  if (details === "failed") {
    return html`<p class="missing">${t("turn.details_failed")} <button type="button" class="link" onClick=${() => turn.loadDetails()}>${t("chat.retry")}</button></p>`;
  }
  if ((details === "none" || details === "loading") && toolCalls) return html`<p class="missing">${t("turn.details_loading", { n: toolCalls })}</p>`;
  return null;
}

function useDetailsInSight(turn, root) {
  useEffect(() => {
    if (turn.details.peek() !== "none") return undefined;
    const observer = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && turn.loadDetails(), { rootMargin: "800px" });
    observer.observe(root.current);
    return () => observer.disconnect();
  }, [turn]);
}

function useEndAnnounced(ended) {
  const before = useRef(ended);
  useEffect(() => {
    if (ended && !before.current) announce(t("turn.answer_done"));
    before.current = ended;
  }, [ended]);
}
