// The line at the end of a turn that says what is going on, for how long, and how far a prefill is.

import { t } from "../i18n/index.js";
import { activity } from "../turn/activity.js";
import { announce } from "./announcer.js";
import { html, useEffect } from "./html.js";
import { Icon } from "./icons.js";
import { Elapsed } from "./tool_call.js";

const STILL = { waiting_for_approval: "hand", waiting_for_password: "key", paused: "clock", reconnecting: "warn" };

export function ActivityLine({ turn, isLast }) {
  const doing = activity(turn.view.value, { link: turn.link.value, stopping: turn.stopping.value });
  const words = doing ? t(`activity.${doing.code}`, doing.params) : "";
  useEffect(() => {
    if (isLast && doing && !doing.progress) announce(words);
  }, [doing?.code]);
  if (!doing) return null;
  const icon = STILL[doing.code];
  return html`<div class=${`activity is-${doing.code}`} data-activity=${doing.code}>
    ${icon ? html`<${Icon} name=${icon} />` : html`<span class="spinner" aria-hidden="true"></span>`}
    <span class="activity-words">${words}</span>
    ${doing.progress && html`<progress value=${doing.progress.value} max=${doing.progress.max} aria-label=${words}></progress>`}
    ${doing.since > 0 && html`<${Elapsed} since=${doing.since} />`}
    ${turn.view.value.status === "paused" && html`<button type="button" class="button is-small is-primary" title=${t("turn.continue_hint")} onClick=${() => turn.continue()}><${Icon} name="play" />${t("turn.continue")}</button>`}
  </div>`;
}
