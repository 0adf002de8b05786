// A problem in the person's language, with the server's own detail below it.

import { t } from "../i18n/index.js";
import { Icon } from "./icons.js";
import { html } from "./html.js";

const KNOWN = new Set([401, 403, 404, 409, 413, 502, 503, 504]);

/** @param {{status?: number, type?: string}} problem */
export function problemText(problem) {
  if (problem.type === "urn:ducklm:unreachable") return t("problem.unreachable");
  if (problem.type === "urn:ducklm:cut") return t("problem.cut");
  return t(`problem.${KNOWN.has(problem.status) ? problem.status : "other"}`);
}

/** @param {{title: string, problem: any, children?: any}} props */
export function ProblemBox({ title, problem, children }) {
  const detail = problem?.detail;
  return html`<div class="problem" role="alert">
    <${Icon} name="bad" />
    <div class="problem-text">
      <p>${title} ${problem && problemText(problem)}</p>
      ${detail && html`<p class="problem-detail">${detail}</p>`}
    </div>
    ${children}
  </div>`;
}
