// Whether the window is a phone's, and whether its drawer is open.

import { signal } from "../../vendor/signals.js";

const narrowQuery = globalThis.matchMedia?.("(max-width: 860px)");

export const narrow = signal(narrowQuery?.matches ?? false);
export const drawerOpen = signal(false);

narrowQuery?.addEventListener("change", (event) => {
  narrow.value = event.matches;
  drawerOpen.value = false;
});
