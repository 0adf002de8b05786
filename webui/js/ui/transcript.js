// The scrolling column of turns. It follows the end only while the reader is at the end. Of a long conversation the
// latest turns are rendered first, and earlier ones as the reader scrolls up to them.

import { t } from "../i18n/index.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Icon } from "./icons.js";
import { Turn } from "./turn.js";

const NEAR_PX = 72;
const AT_ONCE = 40;

/** @param {{conversation: import("../state/conversation.js").Conversation}} props */
export function Transcript({ conversation }) {
  const scroller = useRef(null);
  const column = useRef(null);
  const following = useRef(true);
  const [away, setAway] = useState(false);
  const turns = conversation.turns.value;
  const [count, showEarlier] = useEarlier(scroller, turns.length);
  const shown = turns.slice(-count);

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
        ${count < turns.length && html`<${Sentinel} onSight=${showEarlier} root=${scroller} />`}
        ${shown.map((turn, i) => html`<${Turn} key=${turn.id} turn=${turn} conversation=${conversation} isLast=${i === shown.length - 1} />`)}
        ${!turns.length && html`<p class="is-quiet centred">${t("chat.empty")}</p>`}
      </div>
    </div>
    ${away && html`<button type="button" class="jump" onClick=${jump}><${Icon} name="down" />${t("chat.jump")}</button>`}
  </div>`;
}

/** How many of the latest turns are rendered; when it grows, what the reader looks at stays where it is. */
function useEarlier(scroller, total) {
  const [count, setCount] = useState(AT_ONCE);
  const fromEnd = useRef(0);
  useLayoutEffect(() => {
    const { current } = scroller;
    if (count > AT_ONCE) current.scrollTop = current.scrollHeight - fromEnd.current;
  }, [count]);
  const more = () => {
    fromEnd.current = scroller.current.scrollHeight - scroller.current.scrollTop;
    setCount((before) => Math.min(total, before + AT_ONCE));
  };
  return [count, more];
}

/** Calls back each time the top of what is rendered comes near. */
function Sentinel({ onSight, root }) {
  const mark = useRef(null);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && onSight(), { root: root.current, rootMargin: "1500px 0px 0px" });
    observer.observe(mark.current);
    return () => observer.disconnect();
  });
  return html`<div ref=${mark} class="sentinel"></div>`;
}
