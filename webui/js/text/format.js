// Durations, sizes and times for people.

import { language, t } from "../i18n/index.js";

/** @param {number} ms */
export function duration(ms) {
  const s = ms / 1000;
  if (ms > 0 && ms < 95) return t("time.milliseconds", { n: Math.max(1, Math.round(ms)) });
  if (s < 9.95) return t("time.seconds", { n: Math.round(s * 10) / 10 });
  if (s < 60) return t("time.seconds", { n: Math.round(s) });
  if (s < 3600) return t("time.minutes", { m: Math.floor(s / 60), s: Math.floor(s % 60) });
  return t("time.hours", { h: Math.floor(s / 3600), m: Math.floor((s % 3600) / 60) });
}

/** @param {number} bytes */
export function size(bytes) {
  const steps = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const step = Math.min(steps.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1024)));
  const format = { style: "unit", unit: steps[step], unitDisplay: "short", maximumFractionDigits: step ? 1 : 0 };
  return new Intl.NumberFormat(language.value, format).format(bytes / 1024 ** step);
}

/** @param {number} share 0…1 */
export const percent = (share) =>
  new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 0 }).format(share);

/** The group of a list an ISO time belongs to. */
export function ageGroup(iso, now = new Date()) {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const time = Date.parse(iso);
  if (time >= midnight) return "today";
  if (time >= midnight - 86_400_000) return "yesterday";
  return time >= midnight - 7 * 86_400_000 ? "week" : "older";
}

/** A short time: the hour today, else the day. */
export function shortTime(iso, now = new Date()) {
  const group = ageGroup(iso, now);
  const format = group === "today" || group === "yesterday" ? { timeStyle: "short" } : { day: "numeric", month: "short" };
  return new Intl.DateTimeFormat(language.value, format).format(new Date(iso));
}

export const fullTime = (iso) =>
  new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium" }).format(new Date(iso));
