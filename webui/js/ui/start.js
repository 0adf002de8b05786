// A new chat: what this is, three things to try, and the folder to work in.

import { t } from "../i18n/index.js";
import { startConversation } from "../state/conversation.js";
import { defaultWorkspace } from "../state/health.js";
import { keep, recall } from "../state/storage.js";
import { conversationPath, navigate } from "../router.js";
import { Composer } from "./composer.js";
import { html, useState } from "./html.js";
import { Duck, Icon } from "./icons.js";
import { ProblemBox } from "./problem.js";

const IDLE = { working: false, waiting: false, onStop: null, stopping: false };
const EXAMPLES = ["empty.example1", "empty.example2", "empty.example3"];

export function Start() {
  const [suggestion, setSuggestion] = useState(null);
  const [workspace, setWorkspace] = useState(() => recall("workspace"));
  const [problem, setProblem] = useState(null);
  const [returned, setReturned] = useState(0);

  const send = async (text) => {
    setProblem(null);
    try {
      const conversation = await startConversation(text, workspace.trim());
      keep("workspace", workspace.trim());
      navigate(conversationPath(conversation.id));
    } catch (error) {
      keep("draft.new", text);
      setReturned(returned + 1);
      setProblem(error);
    }
  };

  return html`<div class="start">
    <div class="start-scroll">
      <div class="start-hero">
        <${Duck} />
        <h1>${t("empty.title")}</h1>
        <p>${t("empty.text")}</p>
        <h2 class="visually-hidden">${t("empty.examples")}</h2>
        <ul class="examples">
          ${EXAMPLES.map(
            (key) => html`<li><button type="button" onClick=${() => setSuggestion({ text: t(key) })}>
              <span>${t(key)}</span><small>${t(`${key}_hint`)}</small>
            </button></li>`,
          )}
        </ul>
      </div>
    </div>
    <div class="composer-dock">
      ${problem && html`<${ProblemBox} title=${t("composer.not_sent")} problem=${problem} />`}
      <${Composer} draftKey="new" onSend=${send} state=${IDLE} suggestion=${suggestion} returned=${returned}>
        <label class="workspace-field" title=${t("composer.workspace_hint")}>
          <${Icon} name="folder" /><span>${t("composer.workspace")}</span>
          <input type="text" value=${workspace} placeholder=${defaultWorkspace.value || t("composer.workspace_default")} spellcheck="false" autocomplete="off" onInput=${(event) => setWorkspace(event.currentTarget.value)} />
        </label>
      <//>
    </div>
  </div>`;
}
