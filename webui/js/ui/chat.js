// The chat page: one conversation with its composer, or the start of a new one.

import { t } from "../i18n/index.js";
import { conversationOf } from "../state/conversation.js";
import { Composer } from "./composer.js";
import { html, useEffect } from "./html.js";
import { ProblemBox } from "./problem.js";
import { Queued } from "./queued.js";
import { Start } from "./start.js";
import { Transcript } from "./transcript.js";

/** @param {{params: {id?: string}}} props */
export function Chat({ params }) {
  const id = params.id && decodeURIComponent(params.id);
  return id ? html`<${Open} key=${id} id=${id} />` : html`<${Start} />`;
}

function Open({ id }) {
  const conversation = conversationOf(id);
  useEffect(() => {
    conversation.enter();
    return () => conversation.leave();
  }, [conversation]);
  const phase = conversation.phase.value;
  if (phase === "ready") return html`<${Ready} conversation=${conversation} />`;
  if (phase === "missing") return html`<div class="centred"><p>${t("chat.missing")}</p></div>`;
  if (phase === "failed") {
    return html`<div class="centred"><${ProblemBox} title=${t("chat.failed")} problem=${conversation.problem.value}>
      <button type="button" class="button is-small" onClick=${() => conversation.enter()}>${t("chat.retry")}</button>
    <//></div>`;
  }
  return html`<div class="centred is-quiet"><span class="spinner" aria-hidden="true"></span> ${t("chat.loading")}</div>`;
}

function Ready({ conversation }) {
  const problem = conversation.sendProblem.value;
  return html`<${Transcript} conversation=${conversation} />
    <div class="composer-dock">
      <${Queued} conversation=${conversation} />
      ${problem && html`<${ProblemBox} title=${t("composer.not_sent")} problem=${problem} />`}
      <${Docked} conversation=${conversation} />
    </div>`;
}

function Docked({ conversation }) {
  const working = conversation.working.value;
  const turn = conversation.last.value;
  const state = {
    working,
    waiting: working && turn.view.value.status === "waiting_for_approval",
    onStop: turn && !turn.view.value.ended && turn.view.value.taskId ? () => turn.stop() : null,
    stopping: turn?.stopping.value ?? false,
  };
  return html`<${Composer} draftKey=${conversation.id} onSend=${(text) => conversation.send(text)} state=${state} returned=${conversation.returned.value} />`;
}
