// The list of conversations with what belongs to it; on a phone it is a drawer.

import { t } from "../i18n/index.js";
import * as list from "../state/conversations.js";
import { engine, status } from "../state/health.js";
import { followLink, route } from "../router.js";
import { ageGroup } from "../text/format.js";
import { ConversationRow } from "./conversation_row.js";
import { html, useEffect, useRef } from "./html.js";
import { Duck, Icon } from "./icons.js";
import { drawerOpen, narrow } from "./layout.js";
import { Settings } from "./settings.js";

export function Sidebar() {
  const root = useRef(null);
  const hidden = narrow.value && !drawerOpen.value;
  useEffect(() => {
    if (narrow.value && drawerOpen.value) root.current.querySelector("button, a").focus();
  }, [drawerOpen.value]);
  useEffect(() => {
    drawerOpen.value = false;
  }, [route.value]);
  useEffect(() => {
    // Of the page, not of the drawer: focus gets there a moment after it has opened.
    const close = (event) => event.key === "Escape" && !event.defaultPrevented && (drawerOpen.value = false);
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, []);
  return html`
    ${narrow.value && drawerOpen.value && html`<div class="scrim" onClick=${() => (drawerOpen.value = false)}></div>`}
    <nav class=${`sidebar ${drawerOpen.value ? "is-open" : ""}`} id="sidebar" ref=${root} inert=${hidden} aria-label=${t("list.title")}>
      <div class="sidebar-top">
        <a class="brand" href="/" onClick=${followLink}><${Duck} /><span>DuckLM</span></a>
        ${narrow.value && html`<button type="button" class="icon-button" aria-label=${t("app.close_menu")} onClick=${() => (drawerOpen.value = false)}><${Icon} name="close" /></button>`}
      </div>
      <a class="new-chat" href="/" onClick=${followLink} aria-current=${route.value.params.id ? undefined : "page"}><${Icon} name="plus" />${t("list.new")}</a>
      <div class="sidebar-list"><${List} /></div>
      <div class="sidebar-foot"><${Engine} /><${Settings} /></div>
    </nav>`;
}

function List() {
  if (list.phase.value === "failed") {
    return html`<p class="list-words">${t("list.failed")} <button type="button" class="link" onClick=${list.refresh}>${t("list.retry")}</button></p>`;
  }
  if (list.phase.value === "ready" && !list.items.value.length) return html`<p class="list-words">${t("list.empty")}</p>`;
  const groups = Map.groupBy(list.shown.value, (c) => ageGroup(c.updated_at));
  return html`
    ${["today", "yesterday", "week", "older"].map(
      (group) => groups.has(group) && html`<section key=${group}><h2>${t(`list.${group}`)}</h2><${Rows} items=${groups.get(group)} /></section>`,
    )}
    ${list.next.value && html`<button type="button" class="link list-more" onClick=${list.loadMore}>${t("list.more")}</button>`}
    ${list.archived.value.length > 0 &&
    html`<details class="list-archived"><summary><${Icon} name="chevron" cls="turns" />${t("list.archived", { n: list.archived.value.length })}</summary><${Rows} items=${list.archived.value} /></details>`}
  `;
}

const Rows = ({ items }) => html`<ul>${items.map((c) => html`<${ConversationRow} key=${c.conversation_id} item=${c} />`)}</ul>`;

function Engine() {
  const model = status.value?.engine?.model ?? "";
  const name = model.split("/").at(-1).replace(/\.gguf$/i, "");
  return html`<p class=${`engine is-${engine.value}`} title=${[model, status.value?.engine?.url, status.value?.engine?.detail].filter(Boolean).join("\n")}>
    <span class="dot" aria-hidden="true"></span><span class="engine-name">${engine.value === "ready" && name ? name : t(`engine.${engine.value}`)}</span>
  </p>`;
}
