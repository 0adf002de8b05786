// Language and theme.

import { LANGUAGES, language, t } from "../i18n/index.js";
import { THEMES, setLanguage, setTheme, theme } from "../state/preferences.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";

const ICONS = { system: "system", dark: "moon", light: "sun" };

export function Settings() {
  return html`<div class="settings">
    <div class="segments" role="group" aria-label=${t("settings.language")}>
      ${Object.keys(LANGUAGES).map(
        (tag) => html`<button type="button" lang=${tag} aria-pressed=${String(language.value === tag)} onClick=${() => setLanguage(tag)}>${tag.toUpperCase()}</button>`,
      )}
    </div>
    <div class="segments" role="group" aria-label=${t("settings.theme")}>
      ${THEMES.map((name) => {
        const words = `${t("settings.theme")}: ${t(`settings.theme.${name}`)}`;
        return html`<button type="button" aria-pressed=${String(theme.value === name)} title=${words} aria-label=${words} onClick=${() => setTheme(name)}><${Icon} name=${ICONS[name]} /></button>`;
      })}
    </div>
  </div>`;
}
