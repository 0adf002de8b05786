// Markdown → elements, token by token: no HTML string is ever put into the page.
//
// The lexer is marked's; what it finds becomes virtual elements here, so nothing in an answer can become markup we did
// not choose. HTML in an answer is shown as the text it is. Images are never loaded, links open only by a click. Blocks
// whose text did not change are not rendered again, which keeps long streamed answers cheap.

import { Lexer } from "../../vendor/marked.js";
import { t } from "../i18n/index.js";
import { decodeEntities } from "../text/entities.js";
import { CopyButton } from "./copy_button.js";
import { Component, html } from "./html.js";
import { Icon } from "./icons.js";

/** @param {{text: string, live?: boolean}} props */
export function Markdown({ text, live = false }) {
  const tokens = new Lexer({ gfm: true }).lex(text);
  return html`<div class=${`markdown ${live ? "is-live" : ""}`}>
    ${tokens.map((token, i) => html`<${Block} key=${i} token=${token} />`)}
  </div>`;
}

class Block extends Component {
  shouldComponentUpdate(next) {
    return next.token.raw !== this.props.token.raw || next.token.type !== this.props.token.type;
  }

  render({ token }) {
    return block(token);
  }
}

const blocks = (tokens = []) => tokens.map(block);
const inlines = (tokens = []) => tokens.map(inline);

function block(token) {
  switch (token.type) {
    case "heading":
      return html`<${`h${Math.min(6, token.depth + 1)}`}>${inlines(token.tokens)}<//>`;
    case "paragraph":
      return html`<p>${inlines(token.tokens)}</p>`;
    case "text":
      return token.tokens ? html`<span>${inlines(token.tokens)}</span>` : decodeEntities(token.text);
    case "code":
      return html`<${Code} text=${token.text} language=${token.lang ?? ""} />`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens)}</blockquote>`;
    case "list":
      return list(token);
    case "table":
      return table(token);
    case "hr":
      return html`<hr />`;
    case "html":
      return html`<p class="literal">${token.text.trim()}</p>`;
    case "space":
    case "def":
      return null;
    default:
      return inline(token);
  }
}

function list(token) {
  const items = token.items.map(
    (item) => html`<li class=${item.task ? "task" : ""}>
      ${item.task && html`<input type="checkbox" disabled checked=${item.checked} aria-label=${item.checked ? "✓" : "–"} />`}
      ${blocks(item.tokens.filter((part) => part.type !== "checkbox"))}
    </li>`,
  );
  return token.ordered ? html`<ol start=${token.start || 1}>${items}</ol>` : html`<ul>${items}</ul>`;
}

function table(token) {
  const cell = (tag, { tokens, align }) => html`<${tag} class=${align ? `align-${align}` : ""}>${inlines(tokens)}<//>`;
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <thead><tr>${token.header.map((c) => cell("th", c))}</tr></thead>
      <tbody>${token.rows.map((row) => html`<tr>${row.map((c) => cell("td", c))}</tr>`)}</tbody>
    </table>
  </div>`;
}

function inline(token) {
  switch (token.type) {
    case "strong":
      return html`<strong>${inlines(token.tokens)}</strong>`;
    case "em":
      return html`<em>${inlines(token.tokens)}</em>`;
    case "del":
      return html`<del>${inlines(token.tokens)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return html`<${Link} url=${token.href}>${inlines(token.tokens)}<//>`;
    case "image":
      return html`<${Picture} url=${token.href} name=${token.text} />`;
    case "html":
      return /^<br\s*\/?>$/i.test(token.text) ? html`<br />` : token.text;
    case "text":
    case "escape":
      return token.tokens ? inlines(token.tokens) : decodeEntities(token.text);
    default:
      return token.raw;
  }
}

/** Only addresses that a browser opens as a page or a letter; anything else is shown, not linked. */
const isOpenable = (url) => /^(https?:\/\/|mailto:)/i.test(url);

function Link({ url, children }) {
  if (!isOpenable(url)) return html`<span class="dead-link" title=${url}>${children}</span>`;
  return html`<a href=${url} title=${url} target="_blank" rel="noreferrer noopener">${children}</a>`;
}

function Picture({ url, name }) {
  const words = html`<${Icon} name="image" />${t("markdown.image", { name: name || url })}`;
  if (!isOpenable(url)) return html`<span class="picture" title=${url}>${words}</span>`;
  return html`<a class="picture" href=${url} title=${t("markdown.image_hint", { url })} target="_blank" rel="noreferrer noopener">${words}</a>`;
}

function Code({ text, language }) {
  return html`<figure class="code">
    <figcaption><span>${language.split(/\s/)[0] || t("markdown.code")}</span><${CopyButton} text=${() => text} /></figcaption>
    <pre tabindex="0"><code>${text}</code></pre>
  </figure>`;
}
