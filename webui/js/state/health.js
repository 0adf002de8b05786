// Whether the server, its database and the model server are there, and whether we may come in.
//
// One poll of /v1/status, faster while something is wrong. Any other request that gets no answer triggers it at once,
// so a banner comes and goes within seconds of the truth.

import { computed, signal } from "../../vendor/signals.js";
import * as api from "../api/client.js";
import { onOutcome } from "../api/http.js";

const CALM_MS = 15_000;
const WORRIED_MS = 2_500;

/** @type {import("../../vendor/signals.js").Signal<"unknown" | "ok" | "needed">} */
export const access = signal("unknown");
export const status = signal(null);
/** @type {import("../../vendor/signals.js").Signal<"ok" | "gone" | "database">} */
export const server = signal("ok");

/** The model server: "none" where this process has none of its own to tell of. @returns {"ready" | "loading" | "down" | "none" | "unknown"} */
export const engine = computed(() => {
  if (server.value !== "ok" || !status.value) return "unknown";
  const state = status.value.engine?.state ?? "none";
  if (state === "none" || state === "ready") return state;
  return state === "loading" || state === "starting" ? "loading" : "down";
});

export const smokeTest = computed(() => status.value?.engine?.smoke_test_model === true);
export const defaultWorkspace = computed(() => status.value?.workspace ?? "");
export const contextSize = computed(() => status.value?.engine?.context_tokens ?? 0);

let timer = 0;
let asking = false;

export async function checkHealth() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    status.value = await api.status();
    access.value = "ok";
    server.value = "ok";
  } catch (problem) {
    if (problem.status === 401) access.value = "needed";
    server.value = problem.status === 0 ? "gone" : problem.status === 503 ? "database" : "ok";
  }
  asking = false;
  const calm = server.value === "ok" && ["ready", "none"].includes(engine.value);
  timer = setTimeout(checkHealth, calm ? CALM_MS : WORRIED_MS);
}

export function startHealth() {
  onOutcome((code) => {
    if (code === 401) access.value = "needed";
    const changed = code === 0 || code === 503 ? server.peek() === "ok" : server.peek() === "gone";
    if (changed && !asking) setTimeout(checkHealth, 50);
  });
  document.addEventListener("visibilitychange", () => !document.hidden && checkHealth());
  addEventListener("online", checkHealth);
  checkHealth();
}
