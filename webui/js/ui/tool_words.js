// How a tool call is put into one line: a sign, what it is about, and what differs from the usual.

import { t } from "../i18n/index.js";

const USUAL = { timeout: 120, wait: 0, offset: 0, limit: 400, case_sensitive: false };

/**
 * @param {string} tool @param {Record<string, any>} args
 * @returns {{sign: string, main: string, body: string | null, extras: [string, string][]}} body: text that is written
 */
export function toolWords(tool, args = {}) {
  const { main, sign = "", body = null, used } = (SHAPES[tool] ?? plain)(args);
  const rest = Object.entries(args).filter(([name, value]) => !used.includes(name) && value !== USUAL[name] && value !== "");
  return { sign, main, body, extras: rest.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]) };
}

const SHAPES = {
  shell_exec: (args) => ({ sign: "$", main: String(args.command ?? ""), used: ["command"] }),
  list_dir: (args) => ({ main: String(args.path ?? "."), used: ["path"] }),
  file_read(args) {
    const from = (args.offset ?? 0) + 1;
    const lines = args.offset || (args.limit ?? 400) !== 400 ? ` · ${t("tool.lines", { from, to: from + (args.limit ?? 400) - 1 })}` : "";
    return { main: `${args.path ?? ""}${lines}`, used: ["path", "offset", "limit"] };
  },
  file_write: (args) => ({ main: String(args.path ?? ""), body: String(args.content ?? ""), used: ["path", "content"] }),
  search_files: (args) => ({
    main: args.pattern ? `“${args.pattern}” ${t("tool.in", { glob: args.glob ?? "**/*" })}` : String(args.glob ?? "**/*"),
    used: ["pattern", "glob"],
  }),
};

const plain = (args) => {
  const [first] = Object.entries(args).filter(([, value]) => typeof value === "string" && value.length < 200);
  return first ? { main: first[1], used: [first[0]] } : { main: "", used: [] };
};
