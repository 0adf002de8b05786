// What is wrong, or should be known, on every page. Banners come and go by themselves.

import { t } from "../i18n/index.js";
import { engine, server, smokeTest, status } from "../state/health.js";
import { CopyButton } from "./copy_button.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";

export function Banners() {
  const away = server.value;
  return html`<div class="banners" aria-live="polite">
    ${away === "gone" && html`<${Banner} tone="bad" icon="bad">${t("banner.gone")}<//>`}
    ${away === "database" && html`<${Banner} tone="bad" icon="bad">${t("banner.database")}<//>`}
    ${engine.value === "down" && html`<${Banner} tone="warn" icon="warn">${t("banner.model_down")} <${Detail} /><//>`}
    ${engine.value === "loading" && html`<${Banner} tone="info" icon="clock">${t("banner.model_loading")} <${Detail} /><//>`}
    ${smokeTest.value && away === "ok" && html`<${Smoke} />`}
  </div>`;
}

const Banner = ({ tone, icon, children }) => html`<div class=${`banner tone-${tone}`}><${Icon} name=${icon} /><p>${children}</p></div>`;

const Detail = () => status.value?.engine?.detail && html`<span class="banner-detail">${status.value.engine.detail}</span>`;

function Smoke() {
  return html`<details class="banner tone-smoke">
    <summary><${Icon} name="info" /><span>${t("banner.smoke")} <span class="link">${t("banner.smoke_how")}</span></span></summary>
    <div class="banner-more">
      <p>${t("banner.smoke_server")}</p>
      <${Command} text="DUCKLM_LLAMA_URL=http://127.0.0.1:8080 uv run ducklm up" />
      <p>${t("banner.smoke_model")}</p>
      <${Command} text="DUCKLM_MODEL=/path/to/model.gguf uv run ducklm up" />
      <p class="is-quiet">${t("banner.smoke_after")}</p>
    </div>
  </details>`;
}

const Command = ({ text }) => html`<div class="command"><code tabindex="0">${text}</code><${CopyButton} text=${() => text} quiet /></div>`;
