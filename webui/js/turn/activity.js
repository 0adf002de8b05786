// Why the agent is quiet, in words: what a turn is doing or waiting for right now.

/** Every activity; the catalogue has `activity.<code>` for each. */
export const ACTIVITIES = [
  "starting", "waiting_for_approval", "waiting_for_password", "paused", "waiting_for_model", "prefill", "prefill_cached", "model", "thinking",
  "writing", "choosing", "working", "tool", "finishing", "reconnecting", "stopping",
];

/**
 * @param {import("./model.js").Turn} turn
 * @param {{link: string, stopping: boolean}} outside what the turn itself cannot know
 * @returns {{code: string, since: number, params: object, progress: {value: number, max: number} | null} | null}
 */
export function activity(turn, { link, stopping }) {
  if (turn.ended) return null;
  const say = (code, since = 0, params = {}, progress = null) => ({ code, since, params, progress });
  if (link === "lost") return say("reconnecting");
  if (stopping) return say("stopping");
  if (turn.status === "paused" && turn.pausedFor === "model") return say("waiting_for_model");
  if (["waiting_for_approval", "waiting_for_password", "paused"].includes(turn.status)) return say(turn.status);
  if (["completed", "failed", "cancelled"].includes(turn.status)) return say("finishing");
  if (turn.call) return ofCall(turn.call, say);
  const tool = turn.items.findLast((item) => item.kind === "tool" && item.status === "running");
  if (tool) return say("tool", tool.startedAt, { tool: tool.tool });
  return turn.position ? say("working") : say("starting", Date.parse(turn.createdAt) || 0);
}

function ofCall(call, say) {
  const { phase, role, progress, since } = call;
  if (phase === "prefill" && progress && progress.processed < progress.total) {
    const { total, processed, cached } = progress;
    return say(cached ? "prefill_cached" : "prefill", since, { processed, total, cached }, { value: processed, max: total });
  }
  if (phase === "reasoning") return say("thinking", call.textSince);
  if (phase === "content" && role === "thinker") return say("writing", call.contentSince);
  if (phase === "content") return say(role === "action" ? "choosing" : "working", call.contentSince, { role });
  return say("model", since);
}
