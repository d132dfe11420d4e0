/** Creates elements from plain text and formats figures. No text is ever parsed as HTML. */

/** @typedef {string | number | Node | null | undefined | false} Child */

/**
 * Creates an element. Properties that begin with "on" are listeners; "class", "role" and those with a dash are attributes.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name.includes("-") || name in ATTRIBUTES) element.setAttribute(name, value === true ? "" : String(value));
    else /** @type {any} */ (element)[name] = value;
  }
  put(element, ...children);
  return element;
}

/** @type {Record<string, true>} */
const ATTRIBUTES = { role: true, for: true, list: true, colspan: true, scope: true, href: true };

/**
 * Appends children; texts become text nodes.
 * @param {Node} parent
 * @param {...(Child | Child[])} children
 */
export function put(parent, ...children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Replaces the content of an element.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren();
  put(parent, ...children);
}

/**
 * Creates an SVG element.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...Node} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  for (const child of children) element.appendChild(child);
  return element;
}

const WHOLE = new Intl.NumberFormat("en-US");

/** 152310 → "152,310" @param {number} count */
export function tokens(count) {
  return WHOLE.format(Math.round(count));
}

/** 152310 → "152k" @param {number} count */
export function short(count) {
  if (count < 1000) return String(Math.round(count));
  if (count < 9950) return `${(count / 1000).toFixed(1)}k`;
  if (count < 999500) return `${Math.round(count / 1000)}k`;
  return `${(count / 1e6).toFixed(count < 9.95e6 ? 1 : 0)}M`;
}

/** Dollars as in every table of ra: two decimals from a dollar on, four below. @param {number | null | undefined} amount */
export function dollars(amount) {
  if (amount === null || amount === undefined) return "–";
  return `$${amount.toFixed(amount >= 1 ? 2 : 4)}`;
}

/** The cost of one message in one call: down to fractions of a cent. @param {number} amount */
export function small(amount) {
  return amount >= 0.00005 || !amount ? dollars(amount) : `$${amount.toFixed(6)}`;
}

/** @param {number} share */
export function percent(share) {
  return share > 0.995 && share < 1 ? `${(Math.floor(share * 1000) / 10).toFixed(1)}%` : `${Math.round(share * 100)}%`;
}

/** @param {number} count @param {string} noun */
export function many(count, noun) {
  return `${tokens(count)} ${noun}${count === 1 ? "" : "s"}`;
}

const EARLIEST = 1e9; // no transcript is older than 2001; earlier times mean "not recorded"

/** @param {number} seconds */
export function moment(seconds) {
  if (seconds < EARLIEST) return "";
  const date = new Date(seconds * 1000);
  return `${day(seconds)} ${date.toTimeString().slice(0, 5)}`;
}

/** @param {number} seconds */
export function clock(seconds) {
  return seconds < EARLIEST ? "" : new Date(seconds * 1000).toTimeString().slice(0, 8);
}

/** @param {number} seconds */
export function day(seconds) {
  if (seconds < EARLIEST) return "";
  const date = new Date(seconds * 1000);
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A duration with its unit. @param {number} seconds */
export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
}

/** @param {number} seconds */
export function age(seconds) {
  if (seconds < EARLIEST) return "";
  const since = Math.max(0, Date.now() / 1000 - seconds);
  return since < 60 ? "now" : `${span(since)} ago`;
}

/**
 * Creates a table. Columns whose head ends in "#" contain figures and are right-aligned.
 * @param {string} caption
 * @param {string[]} heads
 * @param {(Child | Child[])[][]} rows
 */
export function table(caption, heads, rows) {
  const right = heads.map((head) => head.endsWith("#"));
  const name = (/** @type {string} */ head) => (head.endsWith("#") ? head.slice(0, -1) : head);
  return el(
    "table",
    null,
    el("caption", null, caption),
    el("thead", null, el("tr", null, heads.map((head, at) => el("th", { scope: "col", class: right[at] ? "figure" : "" }, name(head))))),
    el(
      "tbody",
      null,
      rows.map((row) =>
        el("tr", null, row.map((cell, at) => el("td", { class: right[at] ? "figure" : "", "data-head": name(heads[at]) }, .../** @type {Child[]} */ ([cell].flat())))),
      ),
    ),
  );
}
