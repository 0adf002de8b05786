// What an ended turn cost, and what can be done with it: copy, continue, send again.

import { t } from "../i18n/index.js";
import { contextSize } from "../state/health.js";
import { duration, percent } from "../text/format.js";
import { CopyButton } from "./copy_button.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";

export function TurnFooter({ turn, conversation, isLast }) {
  const view = turn.view.value;
  const answer = view.items.findLast((item) => item.kind === "answer" && !item.superseded);
  const goesOn = isLast && (view.status === "failed" || (view.status === "completed" && view.stoppedBy));
  const again = isLast && (view.status === "failed" || view.status === "cancelled");
  return html`<footer class="turn-footer">
    ${answer?.text && html`<${CopyButton} quiet text=${() => answer.text} label=${t("copy.answer")} />`}
    <${Usage} view=${view} />
    <span class="turn-choices">
      ${again && html`<button type="button" class="button is-small" onClick=${() => conversation.send(view.message)}><${Icon} name="again" />${t("turn.again")}</button>`}
      ${goesOn && html`<button type="button" class="button is-small is-primary" title=${t("turn.continue_hint")} onClick=${() => turn.continue()}><${Icon} name="play" />${t("turn.continue")}</button>`}
    </span>
  </footer>`;
}

function Usage({ view }) {
  const { usage, context, elapsedMs } = view;
  const size = contextSize.value;
  const tokens = usage.prompt + usage.completion;
  const parts = [];
  if (tokens) parts.push([t("usage.tokens", { n: tokens }), t("usage.tokens_hint", { prompt: usage.prompt, completion: usage.completion, calls: usage.modelCalls })]);
  if (usage.prompt) parts.push([t("usage.cached", { share: percent(usage.cached / usage.prompt) }), t("usage.cached_hint")]);
  if (elapsedMs > 0) parts.push([t("usage.time", { time: duration(elapsedMs) }), t("usage.time_hint", { model: duration(usage.modelMs), tools: duration(usage.toolMs) })]);
  if (context && size) parts.push([t("usage.context", { used: context.tokens, size }), ""]);
  return html`<span class="usage">${parts.map(([text, hint]) => html`<span title=${hint}>${text}</span>`)}</span>`;
}
