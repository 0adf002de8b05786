// Messages that wait until the running task is done.

import { t } from "../i18n/index.js";
import { keep, recall } from "../state/storage.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";

/** @param {{conversation: import("../state/conversation.js").Conversation}} props */
export function Queued({ conversation }) {
  const { queue } = conversation;
  const working = conversation.working.value;
  if (!queue.items.value.length) return null;
  const edit = (text, i) => {
    queue.remove(i);
    const draft = recall(`draft.${conversation.id}`);
    keep(`draft.${conversation.id}`, draft ? `${text}\n${draft}` : text);
    conversation.returned.value++;
  };
  return html`<div class="queued" role="group" aria-label=${t("composer.queued")}>
    <p class="queued-title"><${Icon} name="clock" />${t(working ? "composer.queued" : "composer.held")}</p>
    <ul>
      ${queue.items.value.map(
        (text, i) => html`<li key=${`${i}:${text}`}>
          <span class="queued-text">${text}</span>
          ${!working && i === 0 && html`<button type="button" class="link" onClick=${() => conversation.sendQueued()}>${t("composer.queue_send")}</button>`}
          <button type="button" class="link" onClick=${() => edit(text, i)}>${t("composer.queue_edit")}</button>
          <button type="button" class="link" onClick=${() => queue.remove(i)}>${t("composer.queue_remove")}</button>
        </li>`,
      )}
    </ul>
  </div>`;
}
