/** Starts the page: one session or the list of them, depending on the address after #. */

import { el, fill } from "./dom.js";
import { ListView } from "./list.js";
import { repaint } from "./paint.js";
import { SessionView, titleOf } from "./session.js";
import { Embedded, Remote } from "./source.js";

const carried = document.getElementById("carried");
const source = carried ? new Embedded(JSON.parse(carried.textContent || "{}")) : new Remote();
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const header = /** @type {HTMLElement} */ (document.getElementById("top"));

/** @type {SessionView | ListView | null} */
let view = null;
let single = "";
let round = 0;

async function show() {
  const asked = ++round;
  const id = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  try {
    if (/^[0-9a-f]{4,32}$/.test(id)) {
      const session = await source.session(id);
      if (asked === round) enter(new SessionView(source, session), titleOf(session));
      return;
    }
    const listing = await source.listing();
    if (asked !== round) return;
    single = listing.single;
    if (single) {
      const session = await source.session(single);
      if (asked === round) enter(new SessionView(source, session), titleOf(session));
    } else if (listing.pending && listing.cards.length === 0) {
      setTimeout(() => asked === round && show(), 60);
    } else {
      enter(new ListView(source, listing), "Sessions");
    }
  } catch (error) {
    if (asked === round) fill(main, el("p", { class: "note failure", role: "alert" }, /** @type {Error} */ (error).message), el("button", { onclick: show }, "Try again"));
  }
}

/** @param {SessionView | ListView} next @param {string} title */
function enter(next, title) {
  if (view) view.close();
  view = next;
  document.title = `${title} · ra open`;
  bar();
  fill(main, next.element);
  if (next instanceof SessionView) next.entered();
}

function bar() {
  const session = view instanceof SessionView ? view : null;
  const theme = el("button", { onclick: turn, "aria-label": "Light or dark", title: "Light or dark" }, "◐");
  const help = el("details", { class: "help" }, el("summary", { "aria-label": "Keys", title: "Keys" }, "?"), el("div", { class: "keys" }, el("dl", null, KEYS.map(([key, what]) => [el("dt", null, key), el("dd", null, what)]).flat())));
  fill(
    header,
    el("a", { href: "#/", class: "brand" }, "ra", el("span", null, " open")),
    session && !single ? el("a", { href: "#/", class: "back" }, "All sessions") : null,
    el("span", { class: "grow" }),
    session ? el("button", { onclick: () => session.find() }, "Search") : null,
    session ? help : null,
    theme,
  );
}

const KEYS = [
  ["← →", "one call"],
  ["Page Up, Page Down", "ten calls"],
  ["Home, End", "first and last call"],
  ["[ ]", "previous and next event"],
  ["+ − 0", "zoom in, out, everything"],
  ["/", "search"],
  ["wheel", "scrub; with Ctrl: zoom"],
];

const darkness = matchMedia("(prefers-color-scheme: dark)");

/** The theme that the reader chose; otherwise that of the system. */
function preferredTheme() {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "dark" || chosen === "light") return chosen;
  } catch {
    // A page opened from a file may have no storage.
  }
  return darkness.matches ? "dark" : "light";
}

/** @param {string} name */
function dress(name) {
  document.documentElement.dataset.theme = name;
  redraw();
}

function turn() {
  const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("theme", other);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  dress(other);
}

function redraw() {
  repaint();
  if (view instanceof SessionView) view.chart.draw();
}

document.addEventListener("keydown", (event) => {
  if (!(view instanceof SessionView) || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {HTMLElement} */ (event.target);
  if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    view.find();
  } else if (target === document.body || target === main || ["[", "]"].includes(event.key)) {
    view.chart.key(event);
  }
});
window.addEventListener("hashchange", show);
darkness.addEventListener("change", () => dress(preferredTheme()));
dress(preferredTheme());
show();
