// Parsers of the console: server-sent events, terminal colours, misleading characters, entities, addresses, Markdown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "../../webui/js/api/sse.js";
import { match } from "../../webui/js/router.js";
import { ansiLines } from "../../webui/js/text/ansi.js";
import { decodeEntities } from "../../webui/js/text/entities.js";
import { ageGroup, duration } from "../../webui/js/text/format.js";
import { visiblePieces } from "../../webui/js/text/visible.js";
import { toolWords } from "../../webui/js/ui/tool_words.js";

test("a stream may be cut anywhere, with any line ending", () => {
  const text = ": hello\r\nid: 7\r\nevent: event\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: heartbeat\ndata:{}\n\ndata: last\r\rdata: unfinished";
  const whole = [
    { event: "event", id: "7", data: '{"a":\n1}' },
    { event: "heartbeat", id: null, data: "{}" },
    { event: "message", id: null, data: "last" },
  ];
  for (let size = 1; size <= text.length; size++) {
    const parser = new Parser();
    const out = [];
    for (let at = 0; at < text.length; at += size) out.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(out, whole, `pieces of ${size}`);
  }
});

test("a frame without data is none", () => {
  assert.deepEqual(new Parser().push("event: done\n\nid: 3\n\n"), []);
});

const plain = (text) => ansiLines(text).map((line) => line.map((span) => span.text).join(""));

test("colours become classes and go on over lines", () => {
  assert.deepEqual(ansiLines("a\x1b[1;31mb\nc\x1b[0md"), [
    [{ text: "a", cls: "" }, { text: "b", cls: "ansi-fg1 ansi-bold" }],
    [{ text: "c", cls: "ansi-fg1 ansi-bold" }, { text: "d", cls: "" }],
  ]);
  assert.equal(ansiLines("\x1b[38;5;196mx")[0][0].cls, "ansi-fg1");
  assert.equal(ansiLines("\x1b[38;2;10;160;80;4mx")[0][0].cls, "ansi-fg2 ansi-underline");
  assert.equal(ansiLines("\x1b[103mx")[0][0].cls, "ansi-bg11");
});

test("carriage returns and backspaces overwrite, as on a terminal", () => {
  assert.deepEqual(plain("10%\r100%\r\nnext"), ["100%", "next"]);
  assert.deepEqual(plain("abc\b\bX"), ["aXc"]);
  assert.deepEqual(plain("long line\rshort\x1b[K"), ["short"]);
});

test("no other escape sequence or control character gets through", () => {
  assert.deepEqual(plain("\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x1b[2J\x1b[1;1Hx\x1b(B\x00\x07y\x9b"), ["link xy"]);
  assert.deepEqual(plain("\x1b]0;title\x1b\\ok"), ["ok"]);
  assert.deepEqual(plain("unfinished \x1b["), ["unfinished "]);
});

test("characters that mislead are shown as codes, ordinary ones are not touched", () => {
  const shown = (text) => visiblePieces(text).map((piece) => piece.text).join("");
  assert.equal(shown("rm\u202e \u200bx\u00a0y\rz\0"), "rm\\u{202e} \\u{200b}x\\u{a0}y\\u{d}z\\u{0}");
  assert.equal(shown("ｒｍ"), "\\u{ff52}\\u{ff4d}");
  assert.equal(shown("\tls -l 'файл с ё' ünï 日本 🦆\nnext"), "\tls -l 'файл с ё' ünï 日本 🦆\nnext");
});

test("entities are decoded without a parser", () => {
  assert.equal(decodeEntities("&lt;b&gt; &amp;amp; &#x1F986; &#0; &unknown; &"), "<b> &amp; 🦆 &#0; &unknown; &");
});

test("addresses", () => {
  assert.deepEqual(match("/c/abc"), { page: "chat", params: { id: "abc" } });
  assert.deepEqual(match("/"), { page: "chat", params: {} });
  assert.equal(match("/nowhere").page, "missing");
});

test("durations and days", () => {
  assert.deepEqual([4, 400, 9_900, 12_300, 125_000, 7_500_000].map(duration), ["4 ms", "0.4 s", "9.9 s", "12 s", "2 min 5 s", "2 h 5 min"]);
  const now = new Date(2026, 11, 1, 15);
  assert.deepEqual([0, 20, 80, 400].map((hours) => ageGroup(new Date(now - hours * 3.6e6).toISOString(), now)), ["today", "yesterday", "week", "older"]);
});

test("a tool call in one line, with what is unusual about it", () => {
  assert.deepEqual(toolWords("shell_exec", { command: "ls", timeout: 120, wait: 5 }), { sign: "$", main: "ls", body: null, extras: [["wait", "5"]] });
  assert.equal(toolWords("file_read", { path: "a", offset: 10, limit: 5 }).main, "a · lines 11–15");
  assert.deepEqual(toolWords("mcp.send", { to: "x", n: { a: 1 } }).extras, [["n", '{"a":1}']]);
  assert.equal(toolWords("unheard_of", undefined).main, "");
});
