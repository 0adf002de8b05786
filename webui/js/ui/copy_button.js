// Copies a text and says so.

import { t } from "../i18n/index.js";
import { announce } from "./announcer.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";

/** @param {{text: () => string, label?: string, quiet?: boolean}} props quiet: an icon only */
export function CopyButton({ text, label = t("copy.copy"), quiet = false }) {
  const [copied, setCopied] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await writeText(text());
    setCopied(true);
    announce(t("copy.copied"));
    timer.current = setTimeout(() => setCopied(false), 1600);
  };
  const words = copied ? t("copy.copied") : label;
  return html`<button type="button" class=${`copy ${quiet ? "icon-button" : ""}`} onClick=${copy} title=${words} aria-label=${quiet ? words : undefined}>
    <${Icon} name=${copied ? "check" : "copy"} />${!quiet && html`<span>${words}</span>`}
  </button>`;
}

/** The clipboard API is missing on plain http addresses other than localhost. */
async function writeText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
