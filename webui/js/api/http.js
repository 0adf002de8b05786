// One way to ask the API, one kind of error.
//
// Every failure becomes a Problem (RFC 9457), also the ones without an answer: status 0 means that nothing answered.
// Whoever wants to know how the server is doing (banners, the sign-in page) listens with onOutcome.

export class Problem extends Error {
  /** @param {{type?: string, title?: string, status?: number, detail?: string}} body */
  constructor({ type = "about:blank", title = "", status = 0, detail = "" }) {
    super(detail || title);
    Object.assign(this, { type, title, status, detail });
  }
}

/** @type {Set<(status: number) => void>} */
const listeners = new Set();

/** Calls back with the HTTP status of every answer, 0 for none. */
export function onOutcome(listener) {
  listeners.add(listener);
}

const report = (status) => listeners.forEach((listener) => listener(status));

/**
 * A raw response with a good status; anything else is thrown as a Problem. An abort is thrown as it is.
 * @param {string} path @param {{method?: string, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 */
export async function open(path, { method = "GET", body, headers = {}, signal } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      cache: "no-store",
      headers: { Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    report(0);
    throw new Problem({ type: "urn:ducklm:unreachable" });
  }
  report(response.status);
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** The JSON of an answer. */
export async function request(method, path, body, options = {}) {
  const response = await open(path, { ...options, method, body });
  return response.status === 204 ? null : response.json();
}

async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem({ ...body, status: response.status });
}
