// The door: shown when the server wants a token. The cookie it sets cannot be read here, so the token is tried once and
// then handed over in the address, as the printed link does.

import * as api from "../api/client.js";
import { t } from "../i18n/index.js";
import { html, useState } from "./html.js";
import { Duck } from "./icons.js";
import { Settings } from "./settings.js";

/** A text of the catalogue with `code` in it. */
const Words = ({ text }) => text.split("`").map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

export function Login() {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState("");
  const enter = async (event) => {
    event.preventDefault();
    setWrong("");
    try {
      await api.tryToken(token.trim());
    } catch (problem) {
      if (problem.status === 401) return setWrong("login.wrong");
      if (!problem.status) return setWrong("login.unreachable");
    }
    location.assign(`/?token=${encodeURIComponent(token.trim())}`);
  };
  return html`<main class="login">
    <div class="login-card">
      <${Duck} />
      <h1>${t("login.title")}</h1>
      <p><${Words} text=${t("login.text")} /></p>
      <pre>${`DuckLM ready at ${location.origin}/?token=…`}</pre>
      <form onSubmit=${enter}>
        <label for="token"><${Words} text=${t("login.or")} /></label>
        <div class="login-row">
          <input id="token" type="password" autocomplete="current-password" aria-label=${t("login.token")} value=${token} onInput=${(event) => setToken(event.currentTarget.value)} />
          <button type="submit" class="button is-primary" disabled=${!token.trim()}>${t("login.enter")}</button>
        </div>
        ${wrong && html`<p class="is-bad" role="alert">${t(wrong)}</p>`}
      </form>
    </div>
    <${Settings} />
  </main>`;
}
