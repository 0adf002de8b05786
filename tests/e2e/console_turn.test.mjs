// The reducer events → turn: stored and live entries, gaps, doubles, unknown events, and that both ways give one picture.

import assert from "node:assert/strict";
import { test } from "node:test";
import { activity } from "../../webui/js/turn/activity.js";
import { fold, stored } from "../../webui/js/turn/fold.js";
import { TOOL_STATES, emptyTurn, turnFromMessages } from "../../webui/js/turn/model.js";
import { codePoints, splice } from "../../webui/js/turn/text_buffer.js";

let position = 0;
const event = (kind, data) => ({ position: ++position, type: `task.${kind}.v1`, time: new Date(1.8e12 + position * 1000).toISOString(), correlation_id: "T", data });
const live = (name, data) => ({ event: name, data });
const play = (...entries) => entries.reduce((turn, entry) => fold(turn, Array.isArray(entry) ? entry : entry.position ? stored([entry]) : [entry]).turn, emptyTurn("T"));
const kinds = (turn) => turn.items.map((item) => item.kind);
const QUIET = { link: "live", stopping: false };

const created = () => event("created", { conversation_id: "C", message: "hi", workspace: "/w" });
const asked = (callId, role = "thinker", attempt = 1) => event("model_requested", { call_id: callId, role, attempt });
const replied = (callId, content, more = {}) => event("model_replied", { call_id: callId, role: "thinker", content, reasoning: "", latency_ms: 1000, first_token_ms: 200, usage: { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 8 }, ...more });
const completed = (callId, text) => event("response_completed", { text, call_id: callId, reasoning: "", notices: [] });
const planned = (callId, tool = "shell_exec") => event("action_directed", { call_id: "m", intent: "look", actions: [{ call_id: callId, tool, arguments: { command: "ls" } }], done: false });
const toolAsked = (callId) => event("tool_requested", { call_id: callId, tool: "shell_exec", arguments: { command: "ls" }, risk: "low", reason: "" });

test("a whole turn, live and replayed, gives the same picture", () => {
  const log = [
    created(), asked("m", "action"), replied("m", "{}", { role: "action", reasoning: "look first" }), planned("t"), toolAsked("t"),
    event("tool_started", { call_id: "t", attempt: 1 }), event("tool_observed", { call_id: "t", tool: "shell_exec", ok: true, output: "a\n", exit_code: 0, latency_ms: 5 }),
    asked("x"), replied("x", "Done 🦆"), completed("x", "Done 🦆"), event("completed", {}),
  ];
  const pieces = [log.slice(0, 6), log.slice(6, 8), log.slice(8)].map(stored);
  const streamed = play(
    pieces[0], live("tool_output", { call_id: "t", offset: 0, text: "a\n" }), pieces[1], live("content_delta", { call_id: "x", role: "thinker", offset: 0, text: "Done 🦆" }), pieces[2],
  );
  const replayed = fold(emptyTurn("T"), stored(log)).turn;
  assert.deepEqual(kinds(replayed), ["thought", "intent", "tool", "answer"]);
  assert.deepEqual(streamed.items.map(({ key, kind, text, output, status }) => ({ key, kind, text, output, status })), replayed.items.map(({ key, kind, text, output, status }) => ({ key, kind, text, output, status })));
  assert.deepEqual(replayed.usage, { prompt: 20, completion: 10, cached: 16, modelMs: 2000, toolMs: 5, modelCalls: 2, toolCalls: 1 });
  assert.equal(replayed.status, "completed");
});

test("an event that was seen is not folded again", () => {
  const log = [created(), asked("x"), replied("x", "one")];
  const once = fold(emptyTurn("T"), stored(log)).turn;
  const twice = fold(once, stored(log)).turn;
  assert.deepEqual(twice.usage, once.usage);
  assert.equal(twice.items.length, 1);
});

test("fold leaves the turn it got alone", () => {
  const before = play(created(), asked("x"), live("content_delta", { call_id: "x", role: "thinker", offset: 0, text: "a" }));
  const copy = structuredClone({ ...before, index: [...before.index] });
  fold(before, [live("content_delta", { call_id: "x", role: "thinker", offset: 1, text: "b" })]);
  assert.deepEqual({ ...before, index: [...before.index] }, copy);
});

test("only the thinker's content is answer text", () => {
  const turn = play(created(), asked("m", "action"), live("content_delta", { call_id: "m", role: "action", offset: 0, text: '{"intent"' }));
  assert.deepEqual(kinds(turn), []);
  assert.equal(activity(turn, QUIET).code, "choosing");
});

test("offsets count code points; repeats are dropped; a gap is reported, and shown when nothing fills it", () => {
  assert.equal(codePoints("a🦆б"), 3);
  assert.deepEqual(splice({ text: "a🦆", chars: 2 }, 2, "б"), { text: "a🦆б", chars: 3 });
  assert.deepEqual(splice({ text: "a🦆б", chars: 3 }, 1, "🦆бв"), { text: "a🦆бв", chars: 4 });
  assert.deepEqual(splice({ text: "a🦆б", chars: 3 }, 1, "🦆"), { text: "a🦆б", chars: 3 });
  assert.deepEqual(splice({ text: "old", chars: 3 }, 0, "new text"), { text: "new text", chars: 8 });
  assert.equal(splice({ text: "a", chars: 1 }, 5, "x"), null);

  const piece = (offset, text) => [live("content_delta", { call_id: "x", role: "thinker", offset, text })];
  const first = fold(play(created(), asked("x")), piece(7, "late"));
  assert.ok(first.gap);
  const filled = fold(first.turn, piece(0, "all so far!"));
  assert.ok(!filled.gap);
  assert.equal(filled.turn.items[0].text, "all so far!");
  const again = fold(filled.turn, piece(99, "end"));
  assert.ok(!again.gap);
  assert.equal(again.turn.items[0].text, "all so far!\n…\nend");
});

test("text of a call that comes before the call's own event takes its place in order", () => {
  const early = live("content_delta", { call_id: "x", role: "thinker", offset: 0, text: "An answer" });
  const turn = play(created(), asked("m", "action"), early, replied("m", "{}", { role: "action" }), planned("t"), asked("x"), replied("x", "An answer."));
  assert.deepEqual(kinds(turn), ["intent", "tool", "answer"]);
  assert.equal(turn.items.at(-1).text, "An answer.");
});

test("a call that is made again starts with empty text", () => {
  const turn = play(created(), asked("x"), live("content_delta", { call_id: "x", role: "thinker", offset: 0, text: "half an" }), asked("x", "thinker", 2), live("content_delta", { call_id: "x", role: "thinker", offset: 0, text: "An" }));
  assert.equal(turn.items.find((item) => item.kind === "answer").text, "An");
  assert.ok(turn.items.some((item) => item.code === "asked_again"));
});

test("approval: asked, answered, and what the task waits for", () => {
  const asking = play(created(), planned("t"), toolAsked("t"), event("approval_requested", { approval_id: "A", call_id: "t", tool: "shell_exec", arguments: { command: "ls" }, action_sha256: "s", risk: "high", reason: "r" }));
  assert.equal(asking.status, "waiting_for_approval");
  assert.equal(activity(asking, QUIET).code, "waiting_for_approval");
  assert.equal(asking.items.at(-1).approval.state, "pending");
  const allowed = fold(asking, stored([event("approval_granted", { approval_id: "A", call_id: "t", scope: "forever" })])).turn;
  assert.deepEqual([allowed.items.at(-1).status, allowed.items.at(-1).approval.state], ["requested", "allowed_forever"]);
  const denied = fold(asking, stored([event("approval_denied", { approval_id: "A", call_id: "t", reason: "no" }), event("tool_failed", { call_id: "t", tool: "shell_exec", kind: "denied", message: "m" })])).turn;
  assert.deepEqual([denied.items.at(-1).status, denied.items.at(-1).approval.answer, denied.status], ["denied", "no", "running"]);
});

test("cancelling settles what was planned or running", () => {
  const turn = play(created(), planned("t"), planned("u"), toolAsked("t"), event("tool_started", { call_id: "t", attempt: 1 }), event("cancelled", { reason: "" }));
  assert.deepEqual(turn.items.filter((item) => item.kind === "tool").map((item) => item.status), ["cancelled", "skipped"]);
  assert.equal(turn.status, "cancelled");
});

test("unknown, unreadable and broken events are shown raw and hide nothing", () => {
  const turn = play(created(), event("invented", { a: 1 }), event("created", { tag: "task.created.v1", raw: {}, problem: "bad" }), event("model_requested", null), event("completed", {}));
  assert.deepEqual(kinds(turn), ["raw", "raw", "raw"]);
  assert.equal(turn.status, "completed");
});

test("a limit that stopped the loop can be continued, and going on clears it", () => {
  const stopped = play(created(), event("loop_stopped", { kind: "iterations", reason: "12" }), completed("", "so far"), event("completed", {}));
  assert.equal(stopped.stoppedBy, "iterations");
  const on = fold(stopped, stored([event("resumed", { extra: { iterations: 12, tokens: 0, seconds: 0 } })])).turn;
  assert.deepEqual([on.stoppedBy, on.status, on.ended], ["", "running", false]);
});

test("a pause says who ends it", () => {
  assert.equal(activity(play(created(), event("paused", { reason: "", resumes: "model" })), QUIET).code, "waiting_for_model");
  assert.equal(activity(play(created(), event("paused", { reason: "" })), QUIET).code, "paused");
});

test("prefill is shown until it is done", () => {
  const turn = play(created(), asked("x"), live("progress", { call_id: "x", role: "thinker", total: 100, cached: 40, processed: 60 }));
  assert.deepEqual(activity(turn, QUIET).progress, { value: 60, max: 100 });
  assert.equal(activity(play(created(), asked("x"), live("progress", { call_id: "x", role: "thinker", total: 100, cached: 0, processed: 100 })), QUIET).code, "model");
});

test("every status of a tool is one the catalogue knows", () => {
  for (const kind of ["refused", "denied", "error", "timeout", "cancelled"]) {
    const turn = play(created(), planned("t"), event("tool_failed", { call_id: "t", tool: "x", kind, message: "m" }));
    assert.ok(TOOL_STATES.includes(turn.items.at(-1).status));
  }
});

test("live output is kept to its end when there is very much of it", () => {
  let turn = play(created(), planned("t"), toolAsked("t"), event("tool_started", { call_id: "t", attempt: 1 }));
  const piece = "0123456789\n".repeat(2000);
  for (let i = 0; i < 10; i++) turn = fold(turn, [live("tool_output", { call_id: "t", offset: i * piece.length, text: piece })]).turn;
  const { output, chars } = turn.items.at(-1);
  assert.ok(output.length < 100_000 && output.startsWith("0123456789\n"));
  assert.equal(chars, 10 * piece.length);
});

test("messages alone make a turn with its answer", () => {
  const turn = turnFromMessages("T", [{ role: "user", text: "hi", time: "2026-01-01T00:00:00Z" }, { message_id: "2", role: "assistant", text: "yes", reasoning: "hm", notices: ["n"] }], undefined);
  assert.deepEqual([turn.message, turn.status, turn.ended, kinds(turn)], ["hi", "completed", true, ["thought", "answer"]]);
});

test("ten thousand events fold in well under a second", () => {
  const log = [created()];
  for (let i = 0; i < 2500; i++) log.push(planned(`t${i}`), toolAsked(`t${i}`), event("tool_started", { call_id: `t${i}`, attempt: 1 }), event("tool_observed", { call_id: `t${i}`, tool: "x", ok: true, output: "o" }));
  const start = performance.now();
  fold(emptyTurn("T"), stored(log));
  assert.ok(performance.now() - start < 1000);
});
