// The scrolling column of turns. It follows the end only while the reader is at the end.

import { t } from "../i18n/index.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";
import { Turn } from "./turn.js";

const NEAR_PX = 72;

/** @param {{conversation: import("../state/conversation.js").Conversation}} props */
export function Transcript({ conversation }) {
  const scroller = useRef(null);
  const column = useRef(null);
  const following = useRef(true);
  const [away, setAway] = useState(false);
  const turns = conversation.turns.value;

  const toEnd = () => scroller.current?.scrollTo({ top: scroller.current.scrollHeight, behavior: "instant" });
  useEffect(() => {
    const observer = new ResizeObserver(() => following.current && toEnd());
    observer.observe(column.current);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    following.current = true;
    toEnd();
  }, [turns.length]);

  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current;
    following.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    setAway(!following.current);
  };
  // Unfolding something is reading, not waiting for the end.
  const onClick = (event) => {
    if (event.target.closest("summary, [aria-expanded]")) following.current = false;
  };
  const jump = () => {
    following.current = true;
    toEnd();
  };

  return html`<div class="transcript-frame">
    <div class="transcript" ref=${scroller} onScroll=${onScroll} onClickCapture=${onClick} tabindex="0" role="log" aria-live="off" aria-label=${t("chat.transcript")}>
      <div class="column" ref=${column}>
        ${turns.map((turn, i) => html`<${Turn} key=${turn.id} turn=${turn} conversation=${conversation} isLast=${i === turns.length - 1} />`)}
        ${!turns.length && html`<p class="is-quiet centred">${t("chat.empty")}</p>`}
      </div>
    </div>
    ${away && html`<button type="button" class="jump" onClick=${jump}><${Icon} name="down" />${t("chat.jump")}</button>`}
  </div>`;
}
