// The frame of every page: list, header, banners, and the page of the address.

import { effect } from "../../vendor/signals.js";
import { t } from "../i18n/index.js";
import { conversationOf } from "../state/conversation.js";
import * as list from "../state/conversations.js";
import { access } from "../state/health.js";
import { followLink, route } from "../router.js";
import { Announcer } from "./announcer.js";
import { Banners } from "./banners.js";
import { Chat } from "./chat.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { drawerOpen, narrow } from "./layout.js";
import { Login } from "./login.js";
import { Sidebar } from "./sidebar.js";

const PAGES = { chat: Chat, missing: Missing };

export function App() {
  if (access.value === "needed") return html`<${Login} />`;
  const { page, params } = route.value;
  return html`
    <a class="skip" href="#main">${t("app.skip")}</a>
    <div class="frame">
      <${Sidebar} />
      <main id="main" class="main" tabindex="-1">
        <${Header} />
        <${Banners} />
        <${PAGES[page]} params=${params} />
      </main>
    </div>
    <${Announcer} />`;
}

function Header() {
  const here = current();
  if (!here && !narrow.value) return null;
  return html`<header class="header">
    <button type="button" class="icon-button only-narrow" aria-label=${t("app.menu")} aria-expanded=${String(drawerOpen.value)} aria-controls="sidebar" onClick=${() => (drawerOpen.value = true)}>
      <${Icon} name="menu" />${list.waiting.value > 0 && html`<span class="badge" aria-hidden="true"></span>`}
    </button>
    <h1 class="header-title">${here ? here.title || t("list.untitled") : ""}</h1>
    ${here?.workspace && html`<span class="workspace" title=${`${t("chat.workspace")}: ${here.workspace}`}><${Icon} name="folder" /><bdi class="workspace-full">${here.workspace}</bdi><bdi class="workspace-name" aria-hidden="true">${here.workspace.split("/").findLast(Boolean)}</bdi></span>`}
  </header>`;
}

function current() {
  const id = route.value.params.id && decodeURIComponent(route.value.params.id);
  if (!id) return null;
  const listed = list.find(id);
  const meta = conversationOf(id).meta.value;
  return listed || meta ? { title: listed?.title || meta?.title || "", workspace: meta?.workspace || listed?.workspace || "" } : null;
}

function Missing() {
  return html`<div class="centred"><p>${t("app.not_found")}</p><a href="/" onClick=${followLink}>${t("app.home")}</a></div>`;
}

/** The tab's title: where we are, and whether somebody is waited for. */
export function startTitle() {
  effect(() => {
    const title = access.value === "needed" ? "" : current()?.title;
    document.title = `${list.waiting.value ? "● " : ""}${title ? `${title} · ` : ""}DuckLM`;
  });
}
