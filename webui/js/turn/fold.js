// events → turn. The one reducer, for replayed and for live events alike.
//
// `fold(turn, entries)` is pure: it copies what it changes. An entry is a stream frame: `{event: "event", data: event}`
// or a live one (`content_delta`, `tool_output`, …). An event that cannot be folded is shown raw and hides nothing.

import { put } from "./model.js";
import { onEvent } from "./on_event.js";
import { onLive } from "./on_live.js";

/**
 * @param {import("./model.js").Turn} turn
 * @param {{event: string, data: any}[]} entries
 * @returns {{turn: import("./model.js").Turn, gap: boolean}} gap: a delta was missing, subscribe again
 */
export function fold(turn, entries) {
  const draft = { ...turn, items: turn.items.slice(), index: new Map(turn.index) };
  let gap = false;
  for (const entry of entries) {
    if (entry.event === "event") foldEvent(draft, entry.data);
    else if (!onLive(draft, entry.event, entry.data)) gap = true;
  }
  return { turn: draft, gap };
}

/** Stored events as entries. */
export const stored = (events) => events.map((data) => ({ event: "event", data }));

function foldEvent(draft, event) {
  if (event.position <= draft.position) return;
  draft.position = event.position;
  draft.detailed = true;
  try {
    if (isUnreadable(event) || !onEvent(draft, event)) putRaw(draft, event, event.data?.problem ?? "");
  } catch (error) {
    putRaw(draft, event, String(error));
  }
  const elapsed = Date.parse(event.time) - Date.parse(draft.createdAt);
  if (elapsed > draft.elapsedMs) draft.elapsedMs = elapsed;
}

const isUnreadable = ({ data }) => !data || ("problem" in data && "raw" in data && "tag" in data);

const putRaw = (draft, event, problem) =>
  put(draft, `raw:${event.position}`, { kind: "raw", type: event.type, data: event.data, problem });
