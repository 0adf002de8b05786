// Words in the person's language.
//
// `t(key, params)` reads the `language` signal, so whatever calls it in a component is written anew when the language
// changes. A value is a text with {names}, or an object of plural forms chosen by `params.n`. Both catalogues have the
// same keys: tests/e2e/console_catalogue.test.mjs fails otherwise.

import { computed, signal } from "../../vendor/signals.js";
import { en } from "./en.js";
import { ru } from "./ru.js";

export const LANGUAGES = { en, ru };

/** What is stored, else the first of the browser's languages that we speak, else English. */
export function chooseLanguage(stored, browser) {
  if (stored in LANGUAGES) return stored;
  return browser.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag in LANGUAGES) ?? "en";
}

export const language = signal("en");

const numbers = computed(() => new Intl.NumberFormat(language.value));
const plurals = computed(() => new Intl.PluralRules(language.value));

/** @param {string} key @param {Record<string, string | number>} [params] */
export function t(key, params = {}) {
  const value = LANGUAGES[language.value][key] ?? en[key] ?? key;
  const text = typeof value === "string" ? value : (value[plurals.value.select(params.n)] ?? value.other);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? shown(params[name]) : whole));
}

const shown = (value) => (typeof value === "number" ? numbers.value.format(value) : String(value));
