// What a person sets for this browser: language and theme. Everything else is the system's choice.

import { effect, signal } from "../../vendor/signals.js";
import { chooseLanguage, language } from "../i18n/index.js";
import { keep, recall } from "./storage.js";

export const THEMES = ["system", "dark", "light"];

export const theme = signal(THEMES.includes(recall("theme")) ? recall("theme") : "dark");

export function setTheme(value) {
  theme.value = value;
  keep("theme", value === "dark" ? "" : value);
}

export function setLanguage(value) {
  language.value = value;
  keep("language", value);
}

export function startPreferences() {
  language.value = chooseLanguage(recall("language"), navigator.languages ?? []);
  const root = document.documentElement;
  effect(() => {
    root.lang = language.value;
  });
  effect(() => {
    root.dataset.theme = theme.value;
  });
}
