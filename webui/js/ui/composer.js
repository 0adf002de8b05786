// The field at the bottom: writes drafts, sends, queues, stops.
//
// Enter sends unless an input method is composing (a Japanese or Chinese Enter chooses a word). What was typed is kept
// per conversation until it is sent.

import { t } from "../i18n/index.js";
import { keep, recall } from "../state/storage.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";

const MAX = 256_000;
const ROWS = 10;
const GROWS_BY_ITSELF = globalThis.CSS?.supports?.("field-sizing", "content") ?? false;

/**
 * @param {object} props
 * @param {string} props.draftKey whose draft it is: a conversation's id, or "new"
 * @param {(text: string) => Promise<void> | void} props.onSend
 * @param {{working: boolean, waiting: boolean, onStop: (() => void) | null, stopping: boolean}} props.state
 * @param {number} [props.returned] changes when a message came back into the draft
 * @param {string} [props.suggestion] a text to start from
 */
export function Composer({ draftKey, onSend, state, returned = 0, suggestion = null, children }) {
  const [text, setText] = useState(() => recall(`draft.${draftKey}`));
  const field = useRef(null);
  const { working, waiting, onStop, stopping } = state;
  const tooLong = text.length > MAX;

  useEffect(() => {
    if (returned) setText(recall(`draft.${draftKey}`));
  }, [returned]);
  useEffect(() => {
    if (suggestion === null) return;
    change(suggestion.text);
    field.current.focus();
  }, [suggestion]);
  useEffect(() => {
    if (matchMedia("(hover: hover) and (min-width: 861px)").matches) field.current.focus({ preventScroll: true });
  }, [draftKey]);
  useLayoutEffect(() => {
    if (!GROWS_BY_ITSELF) field.current.rows = Math.min(ROWS, text.split("\n").length);
  }, [text]);

  const change = (value) => {
    setText(value);
    keep(`draft.${draftKey}`, value);
  };
  const send = () => {
    if (!text.trim() || tooLong) return;
    const message = text;
    change("");
    onSend(message.trim());
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    send();
  };
  const placeholder = waiting ? t("composer.placeholder_wait") : working ? t("composer.placeholder_busy") : t("composer.placeholder");

  return html`<form class="composer" onSubmit=${(event) => (event.preventDefault(), send())}>
    ${children}
    <div class="composer-box">
      <textarea
        ref=${field} rows="1" value=${text} placeholder=${placeholder} aria-label=${t("composer.label")} aria-describedby="composer-hint"
        enterkeyhint="send" autocomplete="off" onInput=${(event) => change(event.currentTarget.value)} onKeyDown=${onKeyDown}
      ></textarea>
      ${onStop && html`<button type="button" class="round is-stop" disabled=${stopping} onClick=${onStop} title=${t("turn.stop")} aria-label=${t("turn.stop")}><${Icon} name="stop" /></button>`}
      <button type="submit" class="round is-send" disabled=${!text.trim() || tooLong} title=${t(working ? "composer.queue" : "composer.send")} aria-label=${t(working ? "composer.queue" : "composer.send")}>
        <${Icon} name=${working ? "clock" : "send"} />
      </button>
    </div>
    <p class="composer-hint" id="composer-hint">${tooLong ? html`<span class="is-bad">${t("composer.too_long", { n: text.length, max: MAX })}</span>` : t("composer.hint")}</p>
  </form>`;
}
