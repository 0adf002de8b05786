// The list of conversations, newest first, kept fresh by polling: quickly while something works, slowly otherwise.

import { computed, signal } from "../../vendor/signals.js";
import * as api from "../api/client.js";
import { access } from "./health.js";

const BUSY_MS = 4_000;
const CALM_MS = 20_000;
const YOUNG_MS = 10_000;

export const items = signal([]);
export const next = signal(null);
/** @type {import("../../vendor/signals.js").Signal<"idle" | "loading" | "ready" | "failed">} */
export const phase = signal("idle");

export const shown = computed(() => items.value.filter((c) => !c.archived));
export const archived = computed(() => items.value.filter((c) => c.archived));
export const find = (id) => items.value.find((c) => c.conversation_id === id);

/** @returns {"running" | "waiting" | "paused" | "failed" | ""} what the dot of a conversation says */
export function dotOf({ last_status: last }) {
  if (last === "created" || last === "running") return "running";
  if (last?.startsWith("waiting")) return "waiting";
  return last === "paused" || last === "failed" ? last : "";
}

export const waiting = computed(() => shown.value.filter((c) => dotOf(c) === "waiting").length);

let timer = 0;

export async function refresh() {
  clearTimeout(timer);
  if (access.peek() === "needed") return;
  if (phase.peek() !== "ready") phase.value = "loading";
  try {
    const page = await api.conversations();
    items.value = merged(page.items);
    if (phase.peek() !== "ready") next.value = page.next;
    phase.value = "ready";
  } catch {
    if (phase.peek() !== "ready") phase.value = "failed";
  }
  schedule();
}

export async function loadMore() {
  const page = await api.conversations(next.peek());
  const known = new Set(page.items.map((c) => c.conversation_id));
  items.value = [...items.peek().filter((c) => !known.has(c.conversation_id)), ...page.items];
  next.value = page.next;
}

function schedule() {
  clearTimeout(timer);
  const busy = items.peek().some((c) => ["running", "waiting"].includes(dotOf(c)));
  timer = setTimeout(() => (document.hidden ? schedule() : refresh()), busy ? BUSY_MS : CALM_MS);
}

/** The first page over what we have: older pages stay, and so does what was made here a moment ago. */
function merged(fresh) {
  const ids = new Set(fresh.map((c) => c.conversation_id));
  const oldest = fresh.at(-1)?.updated_at ?? "";
  const young = items.peek().filter((c) => c.madeHere && Date.now() - c.madeHere < YOUNG_MS && !ids.has(c.conversation_id));
  const older = next.peek() || fresh.length >= 50 ? items.peek().filter((c) => !ids.has(c.conversation_id) && !young.includes(c) && c.updated_at < oldest) : [];
  const titled = fresh.map((c) => ({ ...c, title: c.title || find(c.conversation_id)?.title || "" }));
  return [...young, ...titled, ...older];
}

export function addHere(conversation) {
  items.value = [{ ...conversation, madeHere: Date.now() }, ...items.peek()];
  schedule();
}

/** What this page knows sooner than the list does. */
export function note(id, changes) {
  const before = items.peek().find((c) => c.conversation_id === id);
  if (!before || Object.entries(changes).every(([name, value]) => before[name] === value)) return;
  items.value = items.peek().map((c) => (c.conversation_id === id ? { ...c, ...changes } : c));
  schedule();
}

export async function change(id, changes) {
  const before = find(id);
  note(id, changes);
  try {
    await api.changeConversation(id, changes);
  } catch (problem) {
    note(id, before);
    throw problem;
  }
}

export function startConversations() {
  refresh();
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
}
