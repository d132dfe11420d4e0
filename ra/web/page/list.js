/** The list of sessions: filters, totals by day, and a row with a small chart for each. */

import { age, day, dollars, el, fill, many, moment, svg, tokens } from "./dom.js";

const AGAIN_MS = 1500; // while transcripts are being read
const LATER_MS = 10000;

/** @typedef {import("./types").Card} Card */

export class ListView {
  /** @param {import("./source.js").Remote | import("./source.js").Embedded} source @param {import("./types").SessionOverview} listing */
  constructor(source, listing) {
    this._source = source;
    this._listing = listing;
    this._project = el("select", { id: "by-project", onchange: () => this._rows() });
    this._agent = el("select", { id: "by-agent", onchange: () => this._rows() });
    this._day = el("select", { id: "by-day", onchange: () => this._rows() });
    this._phrase = el("input", { type: "search", id: "by-words", placeholder: "title, model, file …", oninput: () => this._rows() });
    this._sum = el("p", { class: "quiet", role: "status" });
    this._days = el("div", { class: "days" });
    this._body = el("tbody");
    this._notes = el("div");
    this.element = el(
      "div",
      { class: "list" },
      el("h1", null, "Sessions"),
      el(
        "div",
        { class: "filters", role: "search" },
        ...[["Project", this._project], ["Agent", this._agent], ["Day", this._day], ["Search", this._phrase]].map(([name, input]) => el("p", { class: "field" }, el("label", { for: /** @type {HTMLElement} */ (input).id }, /** @type {string} */ (name)), /** @type {Node} */ (input))),
      ),
      this._sum,
      this._days,
      el(
        "table",
        { class: "sessions" },
        el("caption", null, "Sessions, newest first"),
        el("thead", null, el("tr", null, ["Session", "Agent", "Model", "Window", "Calls#", "Cost#", "Age#"].map((head) => el("th", { scope: "col", class: head.endsWith("#") ? "figure" : "" }, head.replace("#", ""))))),
        this._body,
      ),
      this._notes,
    );
    this.show(listing);
    this._plan();
  }

  close() {
    clearTimeout(this._timer);
  }

  _plan() {
    this._timer = setTimeout(async () => {
      try {
        this.show(await this._source.listing());
      } catch {
        // The server does not answer: keep the current list.
      }
      this._plan();
    }, this._listing.pending ? AGAIN_MS : LATER_MS);
  }

  /** @param {import("./types").SessionOverview} listing */
  show(listing) {
    if (this._body.hasChildNodes() && JSON.stringify(listing) === JSON.stringify(this._listing)) return;
    this._listing = listing;
    options(this._project, listing.cards.map((card) => card.project));
    options(this._agent, listing.cards.map((card) => card.agent));
    options(this._day, listing.cards.map((card) => day(card.updated)));
    this._rows();
    fill(
      this._notes,
      listing.skipped.length ? el("details", { open: !listing.cards.length }, el("summary", null, `${many(listing.skipped.length, "file")} could not be shown`), el("ul", null, listing.skipped.map((line) => el("li", null, line)))) : null,
    );
  }

  _rows() {
    const phrase = this._phrase.value.trim().toLowerCase();
    const cards = this._listing.cards.filter(
      (card) =>
        (!this._project.value || card.project === this._project.value) &&
        (!this._agent.value || card.agent === this._agent.value) &&
        (!this._day.value || day(card.updated) === this._day.value) &&
        (!phrase || `${card.title} ${card.model} ${card.file} ${card.project} ${card.chat} ${card.id}`.toLowerCase().includes(phrase)),
    );
    const total = cards.reduce((sum, card) => sum + (card.dollars || 0), 0);
    const unknown = cards.filter((card) => card.dollars === null).length;
    const pending = this._listing.pending ? ` Still reading ${many(this._listing.pending, "file")} …` : "";
    this._sum.textContent = cards.length || pending ? `${many(cards.length, "session")}, ${many(cards.reduce((sum, card) => sum + card.calls, 0), "call")}, ${dollars(total)}${unknown ? ` and ${unknown} without a known price` : ""}.${pending}` : "";
    fill(this._body, cards.length ? cards.map((card) => this._row(card)) : el("tr", null, el("td", { colspan: 7 }, this._emptyText())));
    this._bars();
  }

  _emptyText() {
    if (this._listing.pending) return "Reading …";
    if (this._listing.cards.length) return "No session matches these filters.";
    if (this._listing.skipped.length) return "None of these files could be shown; the reasons are below.";
    return ["No sessions yet. Open the transcripts of any agent: ", el("code", null, "ra open ~/.claude/projects"), ", ", el("code", null, "ra open ~/.codex/sessions"), ", or all sessions of ra: ", el("code", null, "ra open --all"), "."];
  }

  /** @param {Card} card */
  _row(card) {
    const place = [card.chat, card.project, card.file].filter(Boolean)[0] || "";
    const cells = /** @type {[string, any, string][]} */ ([
      ["Agent", card.agent, ""],
      ["Model", card.model || "–", ""],
      ["Window", spark(card.windows), ""],
      ["Calls", tokens(card.calls), "figure"],
      ["Cost", dollars(card.dollars), "figure"],
      ["Age", el("time", { title: moment(card.updated) }, age(card.updated)), "figure"],
    ]);
    return el("tr", null, el("th", { scope: "row" }, el("a", { href: `#/${card.id}` }, card.title || card.id), el("div", { class: "quiet place" }, place)), cells.map(([head, value, kind]) => el("td", { "data-head": head, class: kind }, value)));
  }

  _bars() {
    const days = [...this._listing.days].sort((a, b) => (a.day < b.day ? -1 : 1)).slice(-60);
    const top = Math.max(1e-9, ...days.map((each) => each.dollars));
    fill(
      this._days,
      days.length > 1
        ? el(
            "ol",
            { class: "day-bars", "aria-label": "Dollars by day" },
            days.map((each) => {
              const bar = el("span", { class: "day-bar", "aria-hidden": "true" });
              bar.style.height = `${Math.max(2, (each.dollars / top) * 64)}px`;
              return el("li", null, el("button", { title: `${each.day}: ${dollars(each.dollars)}, ${many(each.calls, "call")}`, "aria-label": `${each.day}: ${dollars(each.dollars)}, ${many(each.calls, "call")}`, "aria-pressed": this._day.value === each.day ? "true" : "false", onclick: () => this._pick(each.day) }, el("span", { class: "day-cost" }, dollars(each.dollars)), bar, el("span", { class: "day-name" }, each.day.slice(5))));
            }),
          )
        : null,
    );
  }

  /** @param {string} chosen */
  _pick(chosen) {
    this._day.value = this._day.value === chosen ? "" : chosen;
    if (this._day.value !== chosen && this._day.selectedIndex < 0) this._day.value = "";
    this._rows();
  }
}

/** @param {HTMLSelectElement} select @param {string[]} values */
function options(select, values) {
  const chosen = select.value;
  const distinct = [...new Set(values)].filter(Boolean).sort();
  fill(select, el("option", { value: "" }, "all"), distinct.map((value) => el("option", { value }, value)));
  select.value = distinct.includes(chosen) ? chosen : "";
}

/** A small chart of the window over the session. @param {number[]} windows */
function spark(windows) {
  if (!windows.length) return "";
  const [width, height] = [120, 26];
  const top = Math.max(...windows, 1);
  const step = width / windows.length;
  const points = windows.map((size, at) => `L${(at * step).toFixed(1)} ${(height - (size / top) * (height - 2)).toFixed(1)}H${((at + 1) * step).toFixed(1)}`).join("");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "spark", "aria-label": `Window: peak ${tokens(top)} tokens, last ${tokens(windows[windows.length - 1])}` }, svg("path", { d: `M0 ${height}${points}V${height}Z` }));
}
