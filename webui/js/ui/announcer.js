// What screen readers are told: states in words, not every token.

import { signal } from "../../vendor/signals.js";
import { html } from "./html.js";

const words = signal("");

export function announce(text) {
  words.value = text;
}

export function Announcer() {
  return html`<div class="visually-hidden" role="status" aria-live="polite">${words.value}</div>`;
}
