// Addresses: one table of patterns, one signal with the page that is shown.
//
// A page of a later version (tasks, memory, …) is a line in ROUTES and a component in ui/app.js. The server answers
// every one of these paths with index.html.

import { signal } from "../vendor/signals.js";

const ROUTES = [
  ["chat", /^\/$/],
  ["chat", /^\/c\/(?<id>[^/]+)$/],
];

/** @returns {{page: string, params: Record<string, string>}} */
export function match(path) {
  for (const [page, pattern] of ROUTES) {
    const found = pattern.exec(path);
    if (found) return { page, params: { ...found.groups } };
  }
  return { page: "missing", params: {} };
}

export const route = signal(match(globalThis.location?.pathname ?? "/"));

export const conversationPath = (id) => `/c/${encodeURIComponent(id)}`;

export function navigate(path, { replace = false } = {}) {
  if (path !== location.pathname) history[replace ? "replaceState" : "pushState"](null, "", path);
  route.value = match(path);
}

/** Lets a plain click on a link of ours change the page without loading it. */
export function followLink(event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  navigate(event.currentTarget.getAttribute("href"));
}

export function startRouter() {
  addEventListener("popstate", () => (route.value = match(location.pathname)));
}
