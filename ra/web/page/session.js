/** The view of one session: its figures, the chart, and below it the call, costs, what-if, events and search. */

import { Chart, SIGNS } from "./chart.js";
import { costsPanel, eventsPanel } from "./costs.js";
import { day, dollars, el, fill, many, moment, percent, short, tokens } from "./dom.js";
import { swatch } from "./paint.js";
import { Recording } from "./recording.js";
import { CallPanel } from "./request.js";
import { WhatIfPanel } from "./whatif.js";

const TABS = /** @type {[string, string][]} */ ([["call", "This call"], ["costs", "Costs"], ["whatif", "What if"], ["events", "Events"], ["search", "Search"]]);

const TEXT_MS = 60;

export class SessionView {
  /** @param {import("./source.js").Remote | import("./source.js").Embedded} source @param {import("./types").Overview} session */
  constructor(source, session) {
    this._source = source;
    this.id = session.id;
    this.recording = new Recording(session);
    this.chart = new Chart(this.recording, (call) => this._chosen(call));
    this.panel = new CallPanel(this.recording, source, this.chart.layers);
    this.whatIf = new WhatIfPanel(session, source, (curves) => {
      this.chart.curves = curves;
      this.chart.draw();
      if (curves.length === 1) this.chart.stage.scrollIntoView({ block: "nearest" }); // shows the first result in the chart
    });
    this._head = el("div", { class: "head" });
    this._legend = el("ul", { class: "legend", "aria-label": "Sources and signs" });
    this._phrase = el("input", { type: "search", id: "phrase", placeholder: "Search the conversation", "aria-label": "Search in this session", autocomplete: "off" });
    this._hits = el("div", { role: "region", "aria-label": "Search results", "aria-live": "polite" });
    /** @type {Record<string, HTMLElement>} */
    this._panels = {
      call: this.panel.element,
      costs: el("div", null, el("p", { class: "quiet" }, "Computing …")),
      whatif: this.whatIf.element,
      events: el("div"),
      search: el("section", { class: "panel" }, el("form", { class: "bar", role: "search", onsubmit: (/** @type {Event} */ event) => this._search(event) }, this._phrase, el("button", { type: "submit", class: "primary" }, "Search")), this._hits),
    };
    this._tabs = el("div", { role: "tablist", class: "tabs", "aria-label": "About this session", onkeydown: (/** @type {KeyboardEvent} */ event) => this._tabKey(event) });
    this._zoom = el(
      "div",
      { class: "zoom" },
      ...[["−", "Zoom out", () => this.chart.zoom(1.7, this.chart.chosen)], ["+", "Zoom in", () => this.chart.zoom(0.6, this.chart.chosen)], ["‹", "Previous event", () => this.chart.event(-1)], ["›", "Next event", () => this.chart.event(1)]].map(([sign, name, act]) => el("button", { "aria-label": name, title: name, onclick: act }, /** @type {string} */ (sign))),
    );
    this.element = el(
      "div",
      { class: "session" },
      this._head,
      el("section", { class: "panel picture-panel", "aria-label": "The window over time" }, el("div", { class: "bar" }, this._legend, this._zoom), this.chart.element, this._now = el("p", { class: "now" })),
      this._tabs,
      ...TABS.map(([name]) => el("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "tabpanel", hidden: true }, this._panels[name])),
    );
    this.panel.element.addEventListener("jump", (event) => this.go(/** @type {CustomEvent} */ (event).detail));
    this._headers();
    this._tab("call");
    this._chosen(this.chart.chosen);
    this._findings();
    this._next();
    this._stop = source.follow(session.id, () => this._grown());
  }

  /** Called when the view is in the page and has a size. */
  entered() {
    this.chart.draw();
    this.panel.show(this.chart.chosen);
    requestAnimationFrame(() => performance.mark("picture"));
  }

  close() {
    this._stop();
    this.chart.close();
  }

  /** @param {number} call */
  go(call) {
    this.chart.choose(call);
    this.chart.stage.scrollIntoView({ block: "nearest" });
  }

  // --- figures ---

  _headers() {
    const { session, count } = this.recording;
    const { calls } = session;
    let read = 0;
    let all = 0;
    let peak = 0;
    for (let call = 0; call < count; call++) {
      read += calls.read[call];
      all += this.recording.total(call);
      peak = Math.max(peak, this.recording.total(call));
    }
    const days = count ? [...new Set([day(calls.time[0]), day(calls.time[count - 1])])].filter(Boolean).join(" to ") : "";
    const tiles = /** @type {[string, string, string][]} */ ([
      ["Calls", tokens(count), count ? `${session.models.length > 1 ? many(session.models.length, "model") : session.models[0]}` : ""],
      ["Spent", dollars(session.total), session.billed ? (session.unpriced ? `${session.unpriced} calls without a known price` : "as billed") : "estimated: no bills recorded"],
      ["Peak window", short(peak), session.window ? `${percent(peak / session.window)} of ${short(session.window)}` : ""],
      ["Read from cache", all ? percent(read / all) : "–", `${short(read)} of ${short(all)} tokens`],
    ]);
    fill(
      this._head,
      el("div", { class: "title" }, el("h1", null, session.title || session.id), el("p", { class: "quiet" }, [session.agent, days, session.project || session.file].filter(Boolean).join(" · "))),
      el("dl", { class: "tiles" }, tiles.map(([name, figure, more]) => el("div", null, el("dt", null, name), el("dd", null, figure, el("small", null, more)))), this._avoidable = el("div", { class: "tile-link", hidden: true }), this._nextTile = el("div", { hidden: true })),
      session.notes.length ? el("details", { class: "notes" }, el("summary", null, many(session.notes.length, "remark")), el("ul", null, session.notes.map((note) => el("li", null, note)))) : null,
    );
    this._signs();
    eventsPanel(this._panels.events, this.chart.marks, SIGNS, (call) => this._show(call));
  }

  _signs() {
    const kinds = [...new Set(this.chart.marks.map((mark) => mark.kind))];
    const names = /** @type {Record<string, string>} */ ({ cut: "cut", rotation: "new segment", lost: "lost cache", pause: "long pause", failure: "failure", model: "other model", edit: "edited", aside: "extra call", cache: "cache decision" });
    fill(
      this._legend,
      this.chart.layers.map((layer) => el("li", null, swatch(layer.slot), layer.name)),
      el("li", { class: "key" }, el("span", { class: "sample pale", "aria-hidden": "true" }), "cached"),
      el("li", { class: "key" }, el("span", { class: "sample", "aria-hidden": "true" }), "new"),
      kinds.map((kind) => el("li", { class: "key" }, el("b", { class: `sign ${kind}`, "aria-hidden": "true" }, SIGNS[kind]), names[kind])),
    );
  }

  async _findings() {
    try {
      const findings = await this._source.findings(this.id);
      const { session } = this.recording;
      fill(this._panels.costs, costsPanel(session, findings, { call: (call) => this._show(call), piece: (piece) => this._showPiece(piece) }));
      const avoidable = findings.avoidable.reduce((sum, each) => sum + each.dollars, 0);
      const tile = /** @type {HTMLElement} */ (this._avoidable);
      tile.hidden = !findings.avoidable.length;
      fill(tile, el("dt", null, "Avoidable"), el("dd", null, dollars(avoidable), el("small", null, el("button", { class: "jump", onclick: () => this._tab("costs") }, `${many(findings.avoidable.length, "finding")}`))));
    } catch (error) {
      fill(this._panels.costs, el("p", { class: "note failure", role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  async _next() {
    const next = await this._source.next(this.id).catch(() => null);
    const tile = /** @type {HTMLElement} */ (this._nextTile);
    if (!next) return;
    tile.hidden = false;
    fill(tile, el("dt", null, "Next request"), el("dd", null, dollars(next.cost), el("small", null, `${tokens(next.total)} tokens, ${tokens(next.cached)} cached`)));
  }

  // --- moving ---

  /** @param {number} call */
  _chosen(call) {
    if (!this.recording.count) {
      this.panel.show(0);
      return;
    }
    this._stale = true;
    if (this._planned) return;
    this._planned = true;
    // The chart follows every frame; figures and texts wait until scrubbing pauses.
    setTimeout(() => {
      this._planned = false;
      if (this._now) this._now.textContent = this.chart.sentence(this.chart.chosen);
      if (this._panels.call.closest("[hidden]")) return; // shown when its panel is opened
      this._stale = false;
      this.panel.show(this.chart.chosen);
    }, TEXT_MS);
  }

  /** @param {number} call */
  _show(call) {
    this._tab("call");
    this.go(call);
  }

  /** @param {number} piece */
  _showPiece(piece) {
    const { first, last } = this.recording.session.pieces[piece];
    this._tab("call");
    if (first >= 0 && (this.chart.chosen < first || this.chart.chosen > last)) this.go(first);
    this.panel.open(piece);
  }

  /** @param {string} chosen @param {boolean} [focus] */
  _tab(chosen, focus) {
    fill(
      this._tabs,
      TABS.map(([name, label]) => el("button", { role: "tab", id: `tab-${name}`, "aria-selected": name === chosen ? "true" : "false", "aria-controls": `panel-${name}`, tabIndex: name === chosen ? 0 : -1, onclick: () => this._tab(name) }, label)),
    );
    for (const [name] of TABS) /** @type {HTMLElement} */ (this._panels[name].parentElement).hidden = name !== chosen;
    if (chosen === "call" && this._stale) {
      this._stale = false;
      this.panel.show(this.chart.chosen);
    }
    if (focus) document.getElementById(`tab-${chosen}`)?.focus();
    if (chosen === "search") this._phrase.focus();
  }

  /** @param {KeyboardEvent} event */
  _tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = TABS.findIndex(([name]) => document.getElementById(`tab-${name}`)?.getAttribute("aria-selected") === "true");
    this._tab(TABS[(at + step + TABS.length) % TABS.length][0], true);
  }

  /** Show the search. */
  find() {
    this._tab("search");
  }

  /** @param {Event} event */
  async _search(event) {
    event.preventDefault();
    const phrase = this._phrase.value;
    if (!phrase.trim()) return;
    try {
      const result = await this._source.search(this.id, phrase);
      const { session } = this.recording;
      fill(
        this._hits,
        el("p", { class: "quiet" }, result.hits.length ? `${result.more ? "The first " : ""}${many(result.hits.length, "piece")}.` : this._source.hasTexts ? "No match." : "This page was exported without text."),
        el("ol", { class: "findings" }, result.hits.map((hit) => el("li", null, el("button", { onclick: () => this._showPiece(hit.piece) }, el("span", { class: "what" }, hit.before, el("mark", null, hit.match), hit.after), el("span", { class: "quiet" }, `${session.sources[session.pieces[hit.piece].source]}, ${session.pieces[hit.piece].first < 0 ? "in no request" : `call ${session.pieces[hit.piece].first + 1}`}`))))),
      );
    } catch (error) {
      fill(this._hits, el("p", { class: "note failure", role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  // --- live ---

  async _grown() {
    if (this._growing) {
      this._again = true;
      return;
    }
    this._growing = true;
    try {
      const session = await this._source.session(this.id);
      this.recording = new Recording(session);
      this.chart.marks = session.marks;
      this.chart.grow(this.recording);
      this.panel.grow(this.recording, this.chart.layers);
      this._headers();
      this._chosen(this.chart.chosen);
      await Promise.all([this._findings(), this._next()]);
    } catch {
      // The next change triggers another attempt.
    }
    this._growing = false;
    if (this._again) {
      this._again = false;
      setTimeout(() => this._grown(), 300);
    }
  }
}

/** @param {import("./types").Overview} session */
export function titleOf(session) {
  return `${session.title || session.id} · ${moment(session.calls.time[0] || 0).slice(0, 10)}`.replace(/ · $/, "");
}
