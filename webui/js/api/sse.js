// Server-sent events read from a fetch body.
//
// EventSource can neither POST nor tell silence from an open line, so the stream is parsed here, by the rules of
// https://html.spec.whatwg.org/multipage/server-sent-events.html: any line ending, several data lines, comments, a BOM.

/**
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{event: string, id: string | null, data: string}>}
 */
export async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Turns pieces of text, cut anywhere, into whole frames. What is unfinished at the end of a stream is dropped. */
export class Parser {
  #rest = "";
  #event = "";
  #id = null;
  #data = [];

  push(text) {
    const out = [];
    this.#rest += text;
    // A CR at the very end may be half of a CRLF: leave it for the next piece.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      const frame = this.#line(line);
      if (frame) out.push(frame);
    }
    return out;
  }

  #line(line) {
    if (line === "") return this.#flush();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id") this.#id = value;
    return null;
  }

  #flush() {
    const frame = this.#data.length ? { event: this.#event || "message", id: this.#id, data: this.#data.join("\n") } : null;
    this.#event = "";
    this.#id = null;
    this.#data = [];
    return frame;
  }
}
