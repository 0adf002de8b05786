// localStorage that may be forbidden or full: then things last as long as the page.

const memory = new Map();
const PREFIX = "ducklm.";

/** @param {string} key */
export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return memory.get(key) ?? "";
  }
}

/** An empty value forgets the key. */
export function keep(key, value) {
  try {
    if (value) localStorage.setItem(PREFIX + key, value);
    else localStorage.removeItem(PREFIX + key);
  } catch {
    memory.set(key, value);
  }
}

/** A list of texts. */
export function recallList(key) {
  try {
    const list = JSON.parse(recall(key) || "[]");
    return Array.isArray(list) ? list.filter((entry) => typeof entry === "string") : [];
  } catch {
    return [];
  }
}

export const keepList = (key, list) => keep(key, list.length ? JSON.stringify(list) : "");

/** Calls back when another tab changes a key. */
export function onOtherTab(listener) {
  addEventListener("storage", (event) => event.key?.startsWith(PREFIX) && listener(event.key.slice(PREFIX.length)));
}
