// One conversation in the list: title, time, what it is doing, rename and archive.

import { t } from "../i18n/index.js";
import { change, dotOf } from "../state/conversations.js";
import { conversationPath, followLink, navigate, route } from "../router.js";
import { fullTime, shortTime } from "../text/format.js";
import { announce } from "./announcer.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";
import { problemText } from "./problem.js";

export function ConversationRow({ item }) {
  const [editing, setEditing] = useState(false);
  const { conversation_id: id, title, updated_at: time, archived } = item;
  const here = route.value.params.id === encodeURIComponent(id) || route.value.params.id === id;
  const dot = dotOf(item);
  const apply = (changes) => change(id, changes).catch((problem) => announce(problemText(problem)));
  const archive = () => {
    apply({ archived: !archived });
    if (here && !archived) navigate("/");
  };
  if (editing) {
    return html`<li class="row is-editing"><${TitleField} title=${title} onDone=${(value) => {
      setEditing(false);
      if (value && value !== title) apply({ title: value });
    }} /></li>`;
  }
  return html`<li class=${`row ${here ? "is-here" : ""}`}>
    <a href=${conversationPath(id)} onClick=${followLink} aria-current=${here ? "page" : undefined} title=${title}>
      <span class="row-title">${title || t("list.untitled")}</span>
      ${dot ? html`<span class=${`row-state is-${dot}`}><span class="dot" aria-hidden="true"></span>${t(`list.status.${dot}`)}</span>` : html`<time datetime=${time} title=${fullTime(time)}>${shortTime(time)}</time>`}
    </a>
    <span class="row-actions">
      <button type="button" class="icon-button" title=${t("list.rename")} aria-label=${`${t("list.rename")}: ${title}`} onClick=${() => setEditing(true)}><${Icon} name="pencil" /></button>
      <button type="button" class="icon-button" title=${t(archived ? "list.restore" : "list.archive")} aria-label=${`${t(archived ? "list.restore" : "list.archive")}: ${title}`} onClick=${archive}><${Icon} name=${archived ? "restore" : "archive"} /></button>
    </span>
  </li>`;
}

/** Enter or leaving the field keeps the title, Escape does not. */
function TitleField({ title, onDone }) {
  const field = useRef(null);
  const done = useRef(false);
  const finish = (value) => {
    if (done.current) return;
    done.current = true;
    onDone(value);
  };
  useEffect(() => field.current.select(), []);
  const onKeyDown = (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") finish(field.current.value.trim());
    if (event.key === "Escape") {
      event.preventDefault();
      finish("");
    }
  };
  return html`<input ref=${field} type="text" defaultValue=${title} maxlength="200" aria-label=${t("list.rename_label")} onKeyDown=${onKeyDown} onBlur=${(event) => finish(event.currentTarget.value.trim())} />`;
}
