// May this run? The exact action, why it is asked about, and the answer in one click.
//
// The answer goes to the server; what the card shows afterwards comes from the event, so two open tabs agree. A 409
// says that somebody was faster.

import * as api from "../api/client.js";
import { t } from "../i18n/index.js";
import { announce } from "./announcer.js";
import { ExactText } from "./exact_text.js";
import { html, useEffect, useState } from "./html.js";
import { Icon } from "./icons.js";
import { ProblemBox } from "./problem.js";

/** @param {{item: import("../turn/model.js").Item, words: object, workspace: string}} props */
export function Approval({ item, words, workspace }) {
  const { approval, tool } = item;
  const [sending, setSending] = useState("");
  const [problem, setProblem] = useState(null);
  const [reason, setReason] = useState("");
  useEffect(() => announce(t("approval.needed", { tool })), [approval.id]);

  const answer = async (kind) => {
    setSending(kind);
    setProblem(null);
    try {
      await api.answerApproval(approval.id, kind, reason.trim());
      announce(t("approval.sending"));
    } catch (error) {
      if (error.status !== 409) setSending("");
      setProblem(error);
    }
  };
  const choice = (kind, cls, title) => html`<button type="button" class=${`button ${cls}`} disabled=${Boolean(sending)} title=${title} onClick=${() => answer(kind)}>
    ${t(`approval.${{ allow_once: "once", allow_forever: "forever", deny: "deny" }[kind]}`)}
  </button>`;

  return html`<div class="approval" role="group" aria-label=${t("approval.needed", { tool })} data-approval=${approval.id}>
    <p class="approval-title">
      <strong>${t(words.body === null ? "approval.title" : "approval.title_write")}</strong>
      <span class=${`risk risk-${approval.risk}`}>${t(`approval.risk.${approval.risk}`)}</span>
    </p>
    <${ExactText} text=${words.main} prompt=${words.sign} label=${tool} />
    ${words.body !== null && html`<${ExactText} text=${words.body} label=${words.main} />`}
    ${words.extras.map(([name, value]) => html`<${ExactText} key=${name} text=${`${name}: ${value}`} label=${t("approval.arguments")} />`)}
    <dl class="approval-facts">
      <dt>${t("approval.workspace")}</dt><dd><code>${workspace}</code></dd>
      ${approval.reason && html`<dt>${t("approval.why")}</dt><dd>${approval.reason}</dd>`}
    </dl>
    <div class="approval-choices">
      ${choice("allow_once", "is-primary")} ${choice("allow_forever", "", t("approval.forever_hint"))} ${choice("deny", "is-deny")}
      <input
        class="approval-reason" type="text" value=${reason} disabled=${Boolean(sending)} maxlength="2000"
        placeholder=${t("approval.reason_short")} aria-label=${t("approval.reason")}
        onInput=${(event) => setReason(event.currentTarget.value)}
        onKeyDown=${(event) => event.key === "Enter" && !event.isComposing && reason.trim() && answer("deny")}
      />
    </div>
    ${sending && !problem && html`<p class="approval-note">${t("approval.sending")}</p>`}
    ${problem && (problem.status === 409 ? html`<p class="approval-note">${t("approval.elsewhere")}</p>` : html`<${ProblemBox} title=${t("approval.failed")} problem=${problem} />`)}
    <p class="approval-note" title=${approval.sha256}><${Icon} name="key" />${t("approval.exact", { sha: approval.sha256.slice(0, 12) })}…</p>
  </div>`;
}
