// Starts the console.

import { startConversations } from "./state/conversations.js";
import { startConversationStreams } from "./state/conversation.js";
import { startHealth } from "./state/health.js";
import { startPreferences } from "./state/preferences.js";
import { startRouter } from "./router.js";
import { App, startTitle } from "./ui/app.js";
import { html, render } from "./ui/html.js";

startPreferences();
startRouter();
startHealth();
startConversations();
startConversationStreams();
startTitle();
render(html`<${App} />`, document.getElementById("app"));
