// The one import of every component: templates and hooks.

import htm from "../../vendor/htm.js";
import { h } from "../../vendor/preact.js";

export const html = htm.bind(h);
export { Component, Fragment, render } from "../../vendor/preact.js";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/preact-hooks.js";
export { useComputed, useSignal } from "../../vendor/signals.js";
