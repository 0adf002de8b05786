// A tool call as an inline terminal: what was asked, whether it may run, what came out.

import { now } from "../state/clock.js";
import { t } from "../i18n/index.js";
import { duration, size } from "../text/format.js";
import { Approval } from "./approval.js";
import { ExactText, Visible } from "./exact_text.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Terminal } from "./terminal.js";
import { toolWords } from "./tool_words.js";

const LOOKS = {
  planned: ["dot", "quiet"], requested: ["clock", "quiet"], waiting: ["hand", "yours"], running: ["", "busy"], ok: ["check", "good"],
  failed: ["cross", "bad"], refused: ["ban", "bad"], denied: ["ban", "warn"], error: ["bad", "bad"], timeout: ["clock", "bad"],
  cancelled: ["stop", "quiet"], uncertain: ["question", "warn"], repeated: ["repeat", "warn"], skipped: ["skip", "quiet"],
};

/** @param {{item: import("../turn/model.js").Item, workspace: string}} props */
export function ToolCall({ item, workspace }) {
  const { tool, args, status, approval } = item;
  const words = toolWords(tool, args);
  const asking = approval?.state === "pending" && status === "waiting";
  const [icon, tone] = LOOKS[status];
  return html`<section class=${`tool tone-${tone}`} data-tool=${tool} data-status=${status} aria-label=${`${tool}: ${t(`tool.status.${status}`)}`}>
    <header>
      ${icon ? html`<${Icon} name=${icon} cls="tool-icon" />` : html`<span class="spinner tool-icon" aria-hidden="true"></span>`}
      <span class="tool-name">${tool}</span>
      ${!asking && html`<code class="tool-main">${words.sign && html`<span class="prompt">${words.sign} </span>`}<${Visible} text=${words.main} /></code>`}
      <${Meta} item=${item} />
    </header>
    ${!asking && words.extras.length > 0 && html`<p class="tool-extras">${words.extras.map(([name, value]) => html`<code>${t("tool.argument", { name, value })}</code>`)}</p>`}
    ${asking ? html`<${Approval} item=${item} words=${words} workspace=${workspace} />` : html`<${Outcome} item=${item} words=${words} />`}
  </section>`;
}

function Meta({ item }) {
  const { status, exitCode, ms, startedAt, approval } = item;
  const parts = [];
  if (approval && approval.state !== "pending" && approval.state !== "denied") parts.push(t(`approval.state.${approval.state}`));
  if (status === "running") parts.push(html`<${Elapsed} since=${startedAt} />`);
  else if (exitCode !== null && exitCode !== undefined) parts.push(html`<span class=${exitCode ? "exit-bad" : ""}>${t("tool.exit", { code: String(exitCode) })}</span>`);
  else if (status !== "ok") parts.push(t(`tool.status.${status}`));
  if (ms !== undefined && status !== "running") parts.push(duration(ms));
  return html`<span class="tool-meta">${parts.map((part) => html`<span>${part}</span>`)}</span>`;
}

/** Seconds that count up. */
export const Elapsed = ({ since }) => html`<span class="elapsed">${duration(Math.max(0, Math.floor((now.value - since) / 1000) * 1000))}</span>`;

function Outcome({ item, words }) {
  const { tool, status, output, truncated, message, approval } = item;
  const ended = ["ok", "failed"].includes(status);
  return html`
    ${words.body !== null && status !== "planned" && html`<${Written} text=${words.body} path=${words.main} />`}
    ${output && html`<${Terminal} text=${output} tail=${tool === "shell_exec"} live=${status === "running"} label=${`${tool} ${words.main}`} />`}
    ${!output && ended && html`<p class="tool-words is-quiet">${t("tool.no_output")}</p>`}
    ${truncated && html`<p class="tool-words">${t("tool.truncated", { size: size(item.size) })}</p>`}
    ${status === "repeated" && html`<p class="tool-words">${t("tool.repeated", { n: item.count })}</p>`}
    ${message && html`<p class="tool-words">${message}</p>`}
    ${approval?.state === "denied" && approval.answer && html`<p class="tool-words">“${approval.answer}”</p>`}
  `;
}

const Written = ({ text, path }) => html`<details class="written">
  <summary><${Icon} name="chevron" cls="turns" />${t("tool.content", { n: text.replace(/\n$/, "").split("\n").length })}</summary>
  <${ExactText} text=${text} label=${path} />
</details>`;
