// A second hand for what counts up on the page. It ticks only while somebody looks at it.

import { signal } from "../../vendor/signals.js";

let timer = 0;

export const now = signal(Date.now(), {
  watched() {
    now.value = Date.now();
    timer = setInterval(() => (now.value = Date.now()), 500);
  },
  unwatched: () => clearInterval(timer),
});
