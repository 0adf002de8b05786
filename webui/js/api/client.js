// The endpoints the console uses (docs/web_api.md), one function each.

import { open, request } from "./http.js";

const query = (values) => {
  const pairs = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs)}` : "";
};
const at = (...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/** Every item of a paginated list. */
async function all(path, values = {}) {
  const items = [];
  let cursor = null;
  do {
    const page = await request("GET", path + query({ ...values, limit: 500, cursor }));
    items.push(...page.items);
    cursor = page.next;
  } while (cursor);
  return items;
}

export const status = () => request("GET", "/v1/status");

export const conversations = (cursor) => request("GET", "/v1/conversations" + query({ cursor }));
export const conversation = (id) => request("GET", at("conversations", id));
export const createConversation = (body) => request("POST", "/v1/conversations", body);
export const changeConversation = (id, body) => request("PATCH", at("conversations", id), body);
export const messages = (id) => all(at("conversations", id, "messages"));

export const tasks = (conversationId) => all("/v1/tasks", { conversation_id: conversationId });
export const cancelTask = (id) => request("POST", at("tasks", id, "cancel"), {});
export const taskEvents = (id) => all(at("tasks", id, "events"));

/** @param {"allow_once" | "allow_forever" | "deny"} answer */
export const answerApproval = (id, answer, reason) =>
  request("POST", at("approvals", id, answer), answer === "deny" && reason ? { reason } : {});

const STREAM = { Accept: "text/event-stream" };

export const chatStream = (body, signal) => open("/v1/chat/stream", { method: "POST", body, headers: STREAM, signal });
export const continueStream = (id, signal) =>
  open(at("tasks", id, "continue", "stream"), { method: "POST", body: {}, headers: STREAM, signal });
export const eventStream = (id, position, signal) =>
  open(at("tasks", id, "events"), { headers: { ...STREAM, "Last-Event-ID": String(position) }, signal });

/** Whether a token is right, asked without the cookie's help. */
export const tryToken = (token) => open("/v1/status", { headers: { Authorization: `Bearer ${token}` } });
