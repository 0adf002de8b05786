// The view model of a turn: what one task looks like to a person.
//
// A turn is a list of items in the order in which they happened. Items are replaced, never changed in place, so that a
// component can tell by identity whether its item is new.

/**
 * @typedef {object} Turn
 * @property {string | null} taskId null until the server has named it
 * @property {string} message what the person said
 * @property {string} workspace
 * @property {string} createdAt ISO time
 * @property {string} status created | running | waiting_for_approval | waiting_for_password | paused | completed | failed | cancelled
 * @property {boolean} ended nothing more will come: the stream said `done`, or the stored task has ended
 * @property {boolean} detailed items come from events, not only from messages
 * @property {number} position last event seen
 * @property {Item[]} items
 * @property {Map<string, number>} index item key → place in items
 * @property {Call | null} call the model call that is running
 * @property {Usage} usage
 * @property {{tokens: number, exact: boolean} | null} context size of the last context built
 * @property {"person" | "model"} pausedFor who ends a pause: the person, or the model server by coming back
 * @property {string} stoppedBy kind of the limit that stopped the loop, or ""
 * @property {number} elapsedMs from creation to the last event
 *
 * @typedef {{callId: string, role: string, phase: "asked" | "prefill" | "reasoning" | "content", since: number,
 *   textSince: number, contentSince: number, progress: {total: number, cached: number, processed: number} | null}} Call
 * @typedef {{prompt: number, completion: number, cached: number, modelMs: number, toolMs: number, modelCalls: number, toolCalls: number}} Usage
 * @typedef {{key: string, kind: "thought" | "answer" | "intent" | "tool" | "note" | "raw"} & Record<string, any>} Item
 */

export const ENDED = new Set(["completed", "failed", "cancelled"]);

/** Every state a tool call can be in; the catalogue has `tool.status.<state>` for each. */
export const TOOL_STATES = [
  "planned", "requested", "waiting", "running", "ok", "failed", "refused", "denied", "error", "timeout", "cancelled",
  "uncertain", "repeated", "skipped",
];

/** Every note; the catalogue has `note.<code>` for each. */
export const NOTES = [
  "rejected", "model_failed", "model_retry", "asked_again", "stopped.iterations", "stopped.tokens", "stopped.seconds",
  "stopped.context", "stopped.repetition", "stopped.malformed", "failed", "cancelled", "paused", "paused_for_model", "resumed",
];

/** Limits after which the same task can be granted more. */
export const GRANTABLE = new Set(["iterations", "tokens", "seconds"]);

export const NO_USAGE = { prompt: 0, completion: 0, cached: 0, modelMs: 0, toolMs: 0, modelCalls: 0, toolCalls: 0 };

/** @returns {Turn} */
export function emptyTurn(taskId = null, known = {}) {
  return {
    taskId, message: "", workspace: "", createdAt: "", status: "created", ended: false, detailed: false, position: 0,
    items: [], index: new Map(), call: null, usage: NO_USAGE, context: null, pausedFor: "person", stoppedBy: "", elapsedMs: 0, ...known,
  };
}

/** A turn as far as the message list and the task list know it; the events fill in the rest later. */
export function turnFromMessages(taskId, messages, task) {
  const user = messages.find((m) => m.role === "user");
  const items = [];
  for (const m of messages.filter((m) => m.role === "assistant")) {
    const key = `m:${m.message_id}`;
    if (m.reasoning) items.push({ key: `r:${key}`, kind: "thought", role: "thinker", text: m.reasoning, chars: 0, live: false, ms: 0 });
    items.push({ key, kind: "answer", text: m.text, chars: 0, live: false, final: true, notices: m.notices ?? [] });
  }
  const status = task?.status ?? (items.length ? "completed" : "created");
  return emptyTurn(taskId, {
    items,
    status,
    ended: ENDED.has(status),
    message: user?.text ?? task?.title ?? "",
    createdAt: user?.time ?? task?.created_at ?? "",
    workspace: task?.workspace ?? "",
    usage: task ? usageOf(task) : NO_USAGE,
    elapsedMs: task && ENDED.has(status) ? Date.parse(task.updated_at) - Date.parse(task.created_at) : 0,
  });
}

const usageOf = (task) => ({
  prompt: task.prompt_tokens, completion: task.completion_tokens, cached: task.cached_tokens,
  modelMs: task.model_ms, toolMs: task.tool_ms, modelCalls: task.model_calls, toolCalls: task.tool_calls,
});

/** Puts an item under its key, or lays changes over the one that is there. Works on a draft (see fold.js). */
export function put(draft, key, changes) {
  const at = draft.index.get(key);
  if (at === undefined) {
    draft.index.set(key, draft.items.length);
    draft.items.push({ key, ...changes });
  } else {
    draft.items[at] = { ...draft.items[at], ...changes };
  }
}

/** @returns {Item | undefined} */
export function get(draft, key) {
  const at = draft.index.get(key);
  return at === undefined ? undefined : draft.items[at];
}

/** Moves an item behind all others. */
export function moveToEnd(draft, key) {
  const item = get(draft, key);
  if (!item) return;
  draft.items = draft.items.filter((other) => other !== item).concat(item);
  draft.index = new Map(draft.items.map((other, i) => [other.key, i]));
}
