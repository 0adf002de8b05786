// A conversation that is (or was) open on this page: its turns, its queue, sending.
//
// Opened conversations are kept, so that switching back shows at once what was there; their streams are closed while
// they are out of sight (browsers allow six connections) and resumed from the last event.

import { computed, effect, signal } from "../../vendor/signals.js";
import * as api from "../api/client.js";
import { emptyTurn, turnFromMessages } from "../turn/model.js";
import * as list from "./conversations.js";
import { Queue } from "./queue.js";
import { keep } from "./storage.js";
import { TurnStore } from "./turn_store.js";

const DETAILED_AT_ONCE = 3;
const known = new Map();

/** @returns {Conversation} */
export function conversationOf(id) {
  if (!known.has(id)) known.set(id, new Conversation(id));
  return known.get(id);
}

export class Conversation {
  constructor(id) {
    this.id = id;
    this.meta = signal(null);
    /** @type {import("../../vendor/signals.js").Signal<TurnStore[]>} */
    this.turns = signal([]);
    /** "idle" | "loading" | "ready" | "failed" | "missing" */
    this.phase = signal("idle");
    this.problem = signal(null);
    this.sendProblem = signal(null);
    /** Bumped when a message comes back into the field. */
    this.returned = signal(0);
    this.queue = new Queue(id);
    this.open = false;
    this.last = computed(() => this.turns.value.at(-1) ?? null);
    this.working = computed(() => {
      const view = this.last.value?.view.value;
      return Boolean(view && !view.ended && view.status !== "paused");
    });
    // The stream knows sooner than the list.
    const lastStatus = computed(() => this.last.value?.view.value.status ?? "");
    effect(() => {
      if (lastStatus.value) list.note(id, { last_status: lastStatus.value });
    });
  }

  async enter() {
    this.open = true;
    await this.load();
  }

  leave() {
    this.open = false;
    for (const turn of this.turns.peek()) if (turn.taskId) turn.leave();
  }

  async load() {
    if (this.phase.peek() !== "ready") this.phase.value = "loading";
    try {
      const [meta, messages, tasks] = await Promise.all([api.conversation(this.id), api.messages(this.id), api.tasks(this.id)]);
      this.meta.value = meta;
      this.#merge(messages, tasks);
      this.phase.value = "ready";
    } catch (problem) {
      this.problem.value = problem;
      if (this.phase.peek() !== "ready") this.phase.value = problem.status === 404 ? "missing" : "failed";
      return;
    }
    if (this.open) this.#resume();
    if (!this.working.peek() && this.last.peek()?.view.peek().status === "completed") this.sendQueued();
  }

  /** Sends a message, or queues it while a task works. */
  async send(text) {
    this.sendProblem.value = null;
    if (this.working.peek()) return this.queue.add(text);
    const turn = new TurnStore(emptyTurn(null, { message: text, createdAt: new Date().toISOString() }));
    turn.onOrphan = (problem) => this.#orphaned(turn, text, problem);
    this.#adopt(turn);
    this.turns.value = [...this.turns.peek(), turn];
    list.note(this.id, { updated_at: turn.view.peek().createdAt });
    turn.follow((signal) => api.chatStream({ message: text, conversation_id: this.id }, signal));
  }

  async sendQueued() {
    const text = await this.queue.take();
    if (text !== null) await this.send(text);
  }

  #adopt(turn) {
    turn.onEnd = (status) => {
      list.refresh();
      if (status === "completed") this.sendQueued();
    };
  }

  #merge(messages, tasks) {
    const before = this.turns.peek();
    const mine = new Map(before.filter((turn) => turn.taskId).map((turn) => [turn.taskId, turn]));
    const unnamed = before.filter((turn) => !turn.taskId);
    const byTask = Map.groupBy(messages, (m) => m.task_id);
    const taskOf = new Map(tasks.map((task) => [task.task_id, task]));
    const merged = [];
    for (const taskId of new Set([...byTask.keys(), ...taskOf.keys()])) {
      const task = taskOf.get(taskId);
      const view = turnFromMessages(taskId, byTask.get(taskId) ?? [], task);
      const turn = mine.get(taskId);
      if (turn) {
        if (!view.ended && turn.view.peek().ended && task.position > turn.view.peek().position) turn.reopen();
        merged.push(turn);
      } else if (!unnamed.some((other) => other.view.peek().message === view.message)) {
        const fresh = new TurnStore(view);
        this.#adopt(fresh);
        merged.push(fresh);
      }
    }
    const missing = before.filter((turn) => turn.taskId && !byTask.has(turn.taskId) && !taskOf.has(turn.taskId));
    const order = (turn) => Date.parse(turn.view.peek().createdAt) || 0;
    this.turns.value = [...merged, ...missing].sort((a, b) => order(a) - order(b)).concat(unnamed);
  }

  #resume() {
    const turns = this.turns.peek();
    for (const turn of turns) if (!turn.view.peek().ended && turn.taskId) turn.follow();
    for (const turn of turns.slice(-DETAILED_AT_ONCE)) if (turn.view.peek().ended) turn.loadDetails();
  }

  /** The request ended before the server named a task. After a cut the task may be there all the same. */
  async #orphaned(turn, text, problem) {
    this.turns.value = this.turns.peek().filter((other) => other !== turn);
    if (!problem.status) {
      const count = this.turns.peek().length;
      await this.load();
      if (this.turns.peek().length > count) return;
    }
    if (!this.last.peek()) list.note(this.id, { last_status: "" });
    keep(`draft.${this.id}`, text);
    this.sendProblem.value = problem;
    this.returned.value++;
  }
}

/** Starts a conversation with its first message. @returns {Promise<Conversation>} */
export async function startConversation(text, workspace) {
  const meta = await api.createConversation(workspace ? { workspace } : {});
  const conversation = conversationOf(meta.conversation_id);
  const title = meta.title || text.trim().split("\n", 1)[0].slice(0, 80);
  conversation.meta.value = meta;
  conversation.phase.value = "ready";
  list.addHere({ ...meta, title });
  conversation.send(text);
  return conversation;
}

/** Streams of the page wake up with it. */
export function startConversationStreams() {
  const wake = () => {
    if (document.hidden) return;
    for (const conversation of known.values()) if (conversation.open) conversation.turns.peek().forEach((turn) => turn.wake());
  };
  document.addEventListener("visibilitychange", wake);
  addEventListener("pageshow", wake);
  addEventListener("online", wake);
}
