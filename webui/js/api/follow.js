// Following one task until it has ended, whatever happens to the connection.
//
// A stream can end in five ways: `done`; `done` of a task that only waits; `error`; cut off; or alive and silent. Only
// the first ends the following. After the others, and when the page wakes up, it is opened again from the last event
// seen, so nothing is lost and nothing comes twice (positions and offsets tell).

import { eventStream } from "./client.js";
import { Problem } from "./http.js";
import { frames } from "./sse.js";

/** Silence after which a connection counts as dead. Heartbeats come every 10 s. */
export const SILENCE_MS = 25_000;
const ENDED = new Set(["completed", "failed", "cancelled"]);
const HOPELESS = new Set([400, 401, 403, 404, 409, 413]);
const DELAYS = [250, 500, 1000, 2000, 4000, 8000];

export class Follower {
  #stopped = false;
  #again = false;
  #connection = new AbortController();
  #skipWait = () => {};
  #lastFrame = 0;
  #first;
  #on;

  /**
   * @param {object} on
   * @param {() => string | null} on.taskId the task, or null as long as the server has not named it
   * @param {() => number} on.position the last event seen
   * @param {(frame: {event: string, data: any}) => void} on.frame
   * @param {(state: "connecting" | "live" | "lost") => void} on.link
   * @param {(outcome: object) => void} on.done
   * @param {(problem: Problem, final: boolean) => void} on.problem final: nothing more will be tried
   * @param {((signal: AbortSignal) => Promise<Response>) | null} [first] the request that starts the work, if any
   */
  constructor(on, first = null) {
    this.#on = on;
    this.#first = first;
  }

  async run() {
    let failures = 0;
    while (!this.#stopped) {
      if (!failures) this.#on.link("connecting");
      let outcome;
      try {
        outcome = await this.#connect();
      } catch (error) {
        if (this.#stopped) return;
        outcome = { problem: error instanceof Problem ? error : new Problem({ type: "urn:ducklm:cut" }) };
      }
      if (this.#stopped) return;
      if (outcome.done) return this.#on.done(outcome.done);
      if (outcome.again) continue;
      failures = outcome.heard ? 0 : failures + 1;
      const final = !this.#on.taskId() || HOPELESS.has(outcome.problem?.status);
      if (outcome.problem) this.#on.problem(outcome.problem, final);
      if (final) return;
      if (outcome.problem) this.#on.link("lost");
      await this.#wait(DELAYS[Math.min(failures, DELAYS.length - 1)]);
    }
  }

  stop() {
    this.#stopped = true;
    this.#connection.abort();
    this.#skipWait();
  }

  /** The page is back: a line that has been silent for longer than a heartbeat is not trusted. */
  wake() {
    this.#skipWait();
    if (this.#lastFrame && Date.now() - this.#lastFrame > 11_000) this.#connection.abort();
  }

  /** Something is missing: start again from the last event, which brings the text so far. */
  resubscribe() {
    this.#again = true;
    this.#connection.abort();
  }

  async #connect() {
    this.#connection = new AbortController();
    const { signal } = this.#connection;
    const start = this.#first ?? (() => eventStream(this.#on.taskId(), this.#on.position(), signal));
    this.#first = null;
    const response = await start(signal);
    this.#on.link("live");
    const watchdog = this.#watchdog();
    let heard = false;
    try {
      for await (const frame of frames(response.body)) {
        this.#lastFrame = Date.now();
        const data = JSON.parse(frame.data);
        if (frame.event === "done") return ENDED.has(data.status) ? { done: data } : { heard };
        if (frame.event === "error") return { problem: new Problem(data), heard };
        if (frame.event !== "heartbeat") heard = true;
        this.#on.frame({ event: frame.event, data });
      }
      return { problem: new Problem({ type: "urn:ducklm:cut" }), heard };
    } catch (error) {
      if (this.#stopped) throw error;
      if (this.#again) return { again: true };
      return { problem: new Problem({ type: "urn:ducklm:cut" }), heard };
    } finally {
      this.#again = false;
      clearInterval(watchdog);
    }
  }

  #watchdog() {
    const connection = this.#connection;
    this.#lastFrame = Date.now();
    return setInterval(() => {
      if (Date.now() - this.#lastFrame > SILENCE_MS) connection.abort();
    }, 1000);
  }

  #wait(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#skipWait = () => (clearTimeout(timer), resolve());
    });
  }
}
