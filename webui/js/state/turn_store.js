// One turn on the page: its view model as a signal, and the stream that feeds it.
//
// Frames are gathered and folded once per animation frame, so that fast streams cost one rendering each 16 ms.

import { batch, signal } from "../../vendor/signals.js";
import * as api from "../api/client.js";
import { Follower } from "../api/follow.js";
import { fold, stored } from "../turn/fold.js";
import { ENDED, emptyTurn, put } from "../turn/model.js";

const GAP_PATIENCE_MS = 2_000;

export class TurnStore {
  /** @param {import("../turn/model.js").Turn} turn */
  constructor(turn) {
    this.view = signal(turn);
    /** "idle" | "connecting" | "live" | "lost" */
    this.link = signal("idle");
    this.stopping = signal(false);
    this.problem = signal(null);
    this.details = signal(turn.detailed || !turn.ended ? "live" : "none");
    this.onEnd = () => {};
    this.onOrphan = () => {};
    this.id = nextId++;
    this.taskId = turn.taskId;
  }

  #frames = [];
  #scheduled = false;
  #follower = null;
  #gapAt = 0;

  /** Listens until the task has ended. `first` starts the work (a POST that streams). */
  follow(first = null) {
    if (this.#follower) return;
    const follower = new Follower(
      {
        taskId: () => this.taskId,
        position: () => (this.#flush(), this.view.peek().position),
        frame: (frame) => this.#receive(frame),
        link: (state) => (this.link.value = state),
        done: (outcome) => this.#done(outcome),
        problem: (problem, final) => this.#failed(problem, final),
      },
      first,
    );
    this.#follower = follower;
    follower.run().finally(() => this.#follower === follower && (this.#follower = null));
  }

  /** Stops listening; the work goes on in the server. */
  leave() {
    this.#follower?.stop();
    this.#follower = null;
    this.link.value = "idle";
  }

  wake() {
    this.#follower?.wake();
  }

  /** Fetches the steps of a task of which only the messages are known. */
  async loadDetails() {
    if (!["none", "failed"].includes(this.details.peek()) || !this.taskId) return;
    this.details.value = "loading";
    try {
      const known = this.view.peek();
      const { turn } = fold(emptyTurn(this.taskId, { message: known.message, createdAt: known.createdAt }), stored(await api.taskEvents(this.taskId)));
      batch(() => {
        if (turn.detailed) this.view.value = { ...turn, ended: ENDED.has(turn.status) };
        this.details.value = "loaded";
      });
    } catch {
      this.details.value = "failed";
    }
  }

  /** The server says that the task goes on again (continued here or elsewhere). */
  reopen() {
    this.view.value = { ...this.view.peek(), ended: false };
    this.stopping.value = false;
  }

  async stop() {
    this.stopping.value = true;
    this.problem.value = null;
    try {
      await api.cancelTask(this.taskId);
    } catch (problem) {
      this.stopping.value = false;
      if (problem.status !== 409) this.problem.value = Object.assign(problem, { during: "stop" });
    }
  }

  continue() {
    this.leave();
    this.problem.value = null;
    this.reopen();
    this.follow((signal) => api.continueStream(this.taskId, signal));
  }

  #receive(frame) {
    if (frame.event === "heartbeat") return;
    if (!this.taskId && frame.event === "event") this.taskId = frame.data.correlation_id;
    this.#frames.push(frame);
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), 100);
    else requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    this.#scheduled = false;
    if (!this.#frames.length) return;
    const { turn, gap } = fold(this.view.peek(), this.#frames);
    this.#frames = [];
    this.view.value = { ...turn, taskId: this.taskId };
    if (gap && Date.now() - this.#gapAt > GAP_PATIENCE_MS) {
      this.#gapAt = Date.now();
      this.#follower?.resubscribe();
    }
  }

  #done(outcome) {
    this.#flush();
    const draft = { ...this.view.peek(), status: outcome.status, ended: true, call: null };
    if (outcome.response && !draft.items.some((item) => item.kind === "answer" && item.text === outcome.response)) {
      draft.items = draft.items.slice();
      draft.index = new Map(draft.index);
      put(draft, "a:done", { kind: "answer", text: outcome.response, chars: 0, live: false, final: true, notices: [] });
    }
    batch(() => {
      this.view.value = draft;
      this.stopping.value = false;
      this.link.value = "idle";
    });
    this.onEnd(outcome.status);
  }

  #failed(problem, final) {
    if (!this.taskId) return this.onOrphan(problem);
    if (!final) return;
    this.problem.value = problem;
    this.link.value = "idle";
    // A continue that was refused leaves the task as it was.
    const { status } = this.view.peek();
    if (ENDED.has(status)) this.view.value = { ...this.view.peek(), ended: true };
  }
}

let nextId = 1;
