// What each domain event (domain/task/events.py) changes in a turn.
//
// Handlers work on a draft whose lists may be changed; see fold.js. Keys: `r:` reasoning and `a:` answer of a model
// call, `i:` its intent, `t:` a tool call, `n:` a note at a position.

import { get, moveToEnd, put } from "./model.js";
import { codePoints } from "./text_buffer.js";

/** @returns {boolean} false when the type is unknown */
export function onEvent(draft, event) {
  const handler = HANDLERS[event.type.replace(/^task\./, "").replace(/\.v\d+$/, "")];
  if (!handler) return false;
  handler(draft, event.data, event);
  return true;
}

const note = (draft, event, code, tone, more = {}) => put(draft, `n:${event.position}`, { kind: "note", code, tone, ...more });
const whole = (text) => ({ text, chars: codePoints(text) });
const timeOf = (event) => Date.parse(event.time);

/** Calls that were planned or running will not go on once the task has ended. */
function settle(draft, status) {
  draft.status = status;
  draft.call = null;
  for (const item of draft.items) {
    if (item.live) put(draft, item.key, { live: false });
    if (item.kind !== "tool") continue;
    if (item.status === "running") put(draft, item.key, { status: "cancelled" });
    else if (["planned", "requested", "waiting"].includes(item.status)) put(draft, item.key, { status: "skipped" });
  }
}

/** How long a finished call thought: its share of the time after the first token, by length of text. */
function thoughtMs(data) {
  const share = data.reasoning.length / (data.reasoning.length + data.content.length || 1);
  return Math.max(0, (data.latency_ms - data.first_token_ms) * share);
}

function modelReplied(draft, data) {
  const { usage } = draft;
  draft.call = null;
  draft.usage = {
    ...usage,
    prompt: usage.prompt + (data.usage?.prompt_tokens ?? 0),
    completion: usage.completion + (data.usage?.completion_tokens ?? 0),
    cached: usage.cached + (data.usage?.cached_tokens || data.timings?.cache_n || 0),
    modelMs: usage.modelMs + (data.latency_ms ?? 0),
    modelCalls: usage.modelCalls + 1,
  };
  draft.lastReply = data.content;
  if (data.reasoning?.trim()) {
    put(draft, `r:${data.call_id}`, { kind: "thought", role: data.role, ...whole(data.reasoning), live: false, ms: thoughtMs(data) });
  } else if (get(draft, `r:${data.call_id}`)) {
    put(draft, `r:${data.call_id}`, { live: false });
  }
  if (data.role === "thinker" && data.content.trim()) {
    put(draft, `a:${data.call_id}`, { kind: "answer", ...whole(data.content), live: false, notices: [] });
  }
}

function responseCompleted(draft, data, event) {
  const key = `a:${data.call_id || event.position}`;
  if (data.reasoning?.trim() && data.call_id && !get(draft, `r:${data.call_id}`)) {
    put(draft, `r:${data.call_id}`, { kind: "thought", role: "thinker", ...whole(data.reasoning), live: false, ms: 0 });
  }
  for (const item of draft.items) {
    if (item.kind === "answer" && item.key !== key && !item.final) put(draft, item.key, { superseded: true, live: false });
  }
  put(draft, key, { kind: "answer", ...whole(data.text), live: false, final: true, notices: data.notices ?? [] });
}

function toolEnded(draft, callId, changes) {
  const before = get(draft, `t:${callId}`);
  put(draft, `t:${callId}`, { kind: "tool", callId, args: before?.args ?? {}, output: before?.output ?? "", ...changes, live: false });
  if (draft.status === "waiting_for_approval") draft.status = "running";
}

const HANDLERS = {
  created(draft, data, event) {
    draft.message = data.message;
    draft.workspace = data.workspace;
    draft.conversationId = data.conversation_id;
    draft.createdAt = event.time;
    draft.status = "created";
  },
  context_built(draft, data) {
    draft.status = "running";
    draft.context = { tokens: data.tokens, exact: data.tokens_exact ?? false };
  },
  model_requested(draft, data, event) {
    const { call_id: callId, role } = data;
    draft.status = "running";
    draft.call = { callId, role, phase: "asked", since: timeOf(event), textSince: 0, contentSince: 0, progress: null };
    // After a reconnect the text so far of a call can come before the events that led to it.
    for (const key of [`r:${callId}`, `a:${callId}`]) moveToEnd(draft, key);
    if (data.attempt > 1) {
      for (const key of [`r:${callId}`, `a:${callId}`]) if (get(draft, key)) put(draft, key, whole(""));
      note(draft, event, "asked_again", "info", { attempt: data.attempt });
    }
  },
  model_replied: modelReplied,
  model_failed(draft, data, event) {
    draft.call = null;
    for (const key of [`r:${data.call_id}`, `a:${data.call_id}`]) if (get(draft, key)) put(draft, key, { live: false });
    note(draft, event, data.retry ? "model_retry" : "model_failed", data.retry ? "warn" : "bad", { error: data.error, detail: data.message });
  },
  action_directed(draft, data) {
    if (data.intent.trim()) put(draft, `i:${data.call_id}`, { kind: "intent", text: data.intent });
    for (const { call_id: callId, tool, arguments: args } of data.actions) {
      put(draft, `t:${callId}`, { kind: "tool", callId, tool, args, status: "planned", output: "", chars: 0 });
    }
  },
  directive_rejected(draft, data, event) {
    note(draft, event, "rejected", "warn", { attempt: data.attempt, detail: data.problem, said: draft.lastReply ?? "" });
  },
  tool_requested(draft, data) {
    put(draft, `t:${data.call_id}`, {
      kind: "tool", callId: data.call_id, tool: data.tool, args: data.arguments, status: "requested", output: "", chars: 0,
      risk: data.risk, reason: data.reason, ...(data.grant_id ? { approval: { id: "", state: "by_grant" } } : {}),
    });
  },
  tool_started(draft, data, event) {
    draft.status = "running";
    put(draft, `t:${data.call_id}`, { status: "running", startedAt: timeOf(event), output: "", chars: 0, live: true });
  },
  tool_observed(draft, data) {
    draft.usage = { ...draft.usage, toolMs: draft.usage.toolMs + (data.latency_ms ?? 0), toolCalls: draft.usage.toolCalls + 1 };
    toolEnded(draft, data.call_id, {
      tool: data.tool, status: data.ok ? "ok" : "failed", output: data.output, exitCode: data.exit_code ?? null,
      ms: data.latency_ms ?? 0, size: data.size ?? 0, truncated: data.truncated ?? false, facts: data.data ?? {},
    });
  },
  tool_failed(draft, data) {
    toolEnded(draft, data.call_id, { tool: data.tool, status: data.kind, message: data.message });
  },
  tool_repeated(draft, data) {
    toolEnded(draft, data.call_id, {
      tool: data.tool, args: data.arguments, status: "repeated", earlier: data.earlier_call_id, count: data.count, output: "",
    });
  },
  tool_outcome_uncertain(draft, data) {
    toolEnded(draft, data.call_id, { tool: data.tool, status: "uncertain", message: data.message });
  },
  approval_requested(draft, data) {
    draft.status = "waiting_for_approval";
    put(draft, `t:${data.call_id}`, {
      kind: "tool", callId: data.call_id, tool: data.tool, args: data.arguments, status: "waiting", output: "", chars: 0,
      approval: { id: data.approval_id, risk: data.risk, reason: data.reason, sha256: data.action_sha256, state: "pending" },
    });
  },
  approval_granted(draft, data) {
    answered(draft, data.call_id, { state: data.scope === "forever" ? "allowed_forever" : "allowed_once" }, "requested");
  },
  approval_denied(draft, data) {
    answered(draft, data.call_id, { state: "denied", answer: data.reason ?? "" }, "denied");
  },
  loop_stopped(draft, data, event) {
    draft.stoppedBy = data.kind;
    note(draft, event, `stopped.${data.kind}`, "warn", { detail: data.reason });
  },
  response_completed: responseCompleted,
  completed: (draft) => settle(draft, "completed"),
  failed(draft, data, event) {
    settle(draft, "failed");
    note(draft, event, "failed", "bad", { error: data.error, detail: data.message });
  },
  cancelled(draft, data, event) {
    settle(draft, "cancelled");
    note(draft, event, "cancelled", "info", { detail: data.reason });
  },
  paused(draft, data, event) {
    draft.status = "paused";
    draft.call = null;
    draft.pausedFor = data.resumes ?? "person";
    note(draft, event, draft.pausedFor === "model" ? "paused_for_model" : "paused", "warn", { detail: data.reason });
  },
  resumed(draft, data, event) {
    draft.status = "running";
    draft.stoppedBy = "";
    draft.ended = false;
    note(draft, event, "resumed", "info", { extra: data.extra?.iterations ?? 0 });
  },
};

function answered(draft, callId, changes, status) {
  const item = get(draft, `t:${callId}`);
  draft.status = "running";
  put(draft, `t:${callId}`, { status, approval: { ...item?.approval, ...changes } });
}
