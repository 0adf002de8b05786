// The catalogues: the same keys and the same {names} in both languages, every key that the code asks for, none unused.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LANGUAGES, chooseLanguage, language, t } from "../../webui/js/i18n/index.js";
import { ACTIVITIES } from "../../webui/js/turn/activity.js";
import { NOTES, TOOL_STATES } from "../../webui/js/turn/model.js";

const ROOT = new URL("../../webui/js/", import.meta.url).pathname;
const files = readdirSync(ROOT, { recursive: true }).filter((name) => name.endsWith(".js") && !/^i18n\/(en|ru)/.test(name));
const source = files.map((name) => readFileSync(join(ROOT, name), "utf8")).join("\n");

/** Keys that are put together at run time, by prefix. */
const COMPOSED = {
  "tool.status.": TOOL_STATES,
  "note.": [...NOTES, "resumed_extra", "said", "raw"],
  "activity.": ACTIVITIES,
  "problem.": ["unreachable", "cut", "401", "403", "404", "409", "413", "502", "503", "504", "other"],
  "approval.state.": ["pending", "allowed_once", "allowed_forever", "by_grant", "denied"],
  "approval.risk.": ["low", "medium", "high"],
  "approval.": ["once", "forever", "deny"],
  "list.": ["today", "yesterday", "week", "older"],
  "list.status.": ["running", "waiting", "paused", "failed"],
  "settings.theme.": ["system", "dark", "light"],
  "engine.": ["ready", "loading", "down", "none", "unknown"],
};

const forms = (value) => (typeof value === "string" ? { other: value } : value);
const names = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();

test("every language has every key", () => {
  const [first, ...others] = Object.entries(LANGUAGES);
  for (const [tag, catalogue] of others) {
    assert.deepEqual(Object.keys(catalogue).sort(), Object.keys(first[1]).sort(), `${tag} and ${first[0]} differ`);
  }
});

test("no text is empty, and plurals have every form of their language", () => {
  for (const [tag, catalogue] of Object.entries(LANGUAGES)) {
    const wanted = new Intl.PluralRules(tag).resolvedOptions().pluralCategories;
    for (const [key, value] of Object.entries(catalogue)) {
      for (const text of Object.values(forms(value))) assert.ok(text.trim(), `${tag} ${key} is empty`);
      if (typeof value !== "string") assert.deepEqual(wanted.filter((form) => !(form in value)), [], `${tag} ${key} lacks a form`);
    }
  }
});

test("a text names the same things in every language", () => {
  for (const key of Object.keys(LANGUAGES.en)) {
    const [en, ru] = [LANGUAGES.en, LANGUAGES.ru].map((catalogue) => names(forms(catalogue[key]).other));
    assert.deepEqual(ru, en, key);
  }
});

test("every key in the code is in the catalogue", () => {
  const literal = [...source.matchAll(/\bt\(\s*"([\w.]+)"/g)].map((m) => m[1]);
  const chosen = [...source.matchAll(/"((?:app|list|settings|engine|banner|login|empty|composer|chat|turn|thought|tool|approval|usage|copy|markdown|time)\.[\w.]+)"/g)].map((m) => m[1]);
  const composed = Object.entries(COMPOSED).flatMap(([prefix, ends]) => ends.map((end) => prefix + end));
  for (const key of [...literal, ...chosen, ...composed]) assert.ok(key in LANGUAGES.en, `${key} is missing`);
  assert.ok(literal.length > 80, "the search for t(…) finds too little");
});

test("every template in the code belongs to a known list", () => {
  const prefixes = [...source.matchAll(/\bt\(\s*`([\w.]*)\$\{/g)].map((m) => m[1]).filter(Boolean);
  assert.deepEqual(prefixes.filter((prefix) => !(prefix in COMPOSED)), []);
});

test("no key is unused", () => {
  const composed = new Set(Object.entries(COMPOSED).flatMap(([prefix, ends]) => ends.map((end) => prefix + end)));
  const unused = Object.keys(LANGUAGES.en).filter((key) => !composed.has(key) && !source.includes(`"${key}"`) && !/^empty\.example\d_hint$/.test(key));
  assert.deepEqual(unused, []);
});

test("no words of a person's language stand in the code", () => {
  assert.deepEqual(source.match(/[А-Яа-яЁё]{2,}/g), null);
});

test("the language is the stored one, else the browser's, else English", () => {
  assert.equal(chooseLanguage("ru", ["en-US"]), "ru");
  assert.equal(chooseLanguage("", ["de-DE", "ru-RU", "en"]), "ru");
  assert.equal(chooseLanguage("xx", ["de"]), "en");
});

test("plurals and numbers follow the language", () => {
  language.value = "ru";
  assert.deepEqual([1, 3, 5, 21].map((n) => t("tool.show_all", { n })), [
    "Показать всё, 1 строка", "Показать все 3 строки", "Показать все 5 строк", "Показать всё, 21 строка",
  ]);
  language.value = "en";
  assert.equal(t("usage.tokens", { n: 1234 }), "1,234 tokens");
});
