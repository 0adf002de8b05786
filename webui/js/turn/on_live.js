// What the live frames of a stream change in a turn: text as it is written, output as it comes, prefill progress.
//
// They are never stored; the event that follows (model_replied, tool_observed) has the whole text and wins.

import { get, put } from "./model.js";
import { codePoints, splice } from "./text_buffer.js";

/** Live output beyond this is cut to its end; the event that follows has beginning and end. */
const LIVE_MAX = 96_000;
const LIVE_KEPT = 64_000;

/** @returns {boolean} false when something before this piece is missing */
export function onLive(draft, kind, data) {
  switch (kind) {
    case "reasoning_delta":
      return writeCall(draft, data, "reasoning");
    case "content_delta":
      return writeCall(draft, data, "content");
    case "tool_output":
      return writeOutput(draft, data);
    case "progress":
      progress(draft, data);
      return true;
    default:
      return true; // heartbeat, and kinds of a later server
  }
}

function callOf(draft, { call_id: callId, role }) {
  if (draft.call?.callId === callId) return draft.call;
  return { callId, role, phase: "asked", since: Date.now(), textSince: 0, contentSince: 0, progress: null };
}

function writeCall(draft, data, phase) {
  const now = Date.now();
  const call = callOf(draft, data);
  draft.status = draft.status === "created" ? "running" : draft.status;
  draft.call = {
    ...call,
    phase,
    textSince: call.textSince || now,
    contentSince: phase === "content" ? call.contentSince || now : call.contentSince,
  };
  if (phase === "content") {
    closeThought(draft, data.call_id, draft.call);
    if (data.role !== "thinker") return true; // a directive is shown when it is whole
  }
  return write(draft, phase === "content" ? `a:${data.call_id}` : `r:${data.call_id}`, data, phase);
}

function write(draft, key, data, phase) {
  const item = get(draft, key);
  if (item && !item.live && item.final) return true; // late piece of a finished text
  const changes = phase === "content" ? { kind: "answer", notices: [] } : { kind: "thought", role: data.role, since: item?.since ?? Date.now() };
  const { missing, ...text } = received({ ...item, text: item?.text ?? "" }, data);
  put(draft, key, { ...changes, ...text, live: true });
  return !missing;
}

/**
 * The text with a piece added. A gap asks once for all of it again; if the server's own copy does not reach that far
 * either (it keeps the beginning of very long streams), the gap is shown as such.
 */
function received({ text, chars = 0, gap = "none" }, { offset, text: piece }) {
  const joined = splice({ text, chars }, offset, piece);
  if (joined) return { ...joined, gap: gap === "asked" && offset === 0 ? "answered" : gap };
  if (gap !== "answered") return { text, chars, gap: "asked", missing: true };
  return { text: `${text}\n…\n${piece}`, chars: offset + codePoints(piece), gap };
}

function closeThought(draft, callId, call) {
  const item = get(draft, `r:${callId}`);
  if (item?.live) put(draft, item.key, { live: false, ms: call.contentSince - call.textSince });
}

function writeOutput(draft, data) {
  const item = get(draft, `t:${data.call_id}`);
  if (!item || item.status !== "running") return true;
  const { missing, text, ...rest } = received({ ...item, text: item.output }, data);
  put(draft, item.key, { ...rest, output: text.length > LIVE_MAX ? text.slice(text.indexOf("\n", text.length - LIVE_KEPT) + 1) : text });
  return !missing;
}

function progress(draft, data) {
  const { total, cached, processed } = data;
  draft.call = { ...callOf(draft, data), phase: "prefill", progress: { total, cached, processed } };
}
