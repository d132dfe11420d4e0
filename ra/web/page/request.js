/** The selected call: its bill, its request piece by piece, and the history and text of one piece. */

import { clock, dollars, el, fill, many, moment, put, small, span, table, tokens } from "./dom.js";
import { SIGNS } from "./chart.js";
import { swatch } from "./paint.js";

const ROW = 46; // pixels of a line in the request
const AHEAD = 8; // lines drawn above and below the visible ones

/** @typedef {import("./recording.js").Line} Line */
/** @typedef {import("./recording.js").Recording} Recording */

export class CallPanel {
  /**
   * @param {Recording} recording
   * @param {import("./source.js").Remote | import("./source.js").Embedded} source
   * @param {import("./paint.js").Layer[]} layers
   */
  constructor(recording, source, layers) {
    this.recording = recording;
    this._source = source;
    this._layers = layers;
    this.call = 0;
    this.piece = -1;
    /** @type {Line[]} */
    this._lines = [];
    this._active = 0;
    this._asked = 0;
    this._bill = el("section", { class: "panel bill", "aria-label": "The bill of this call" });
    this._only = el("input", { type: "checkbox", id: "only-new", onchange: () => this._list() });
    this._title = el("h2", { id: "request-title" }, "The request");
    this._rows = el("div", { class: "rows" });
    this._scroller = el("div", {
      class: "scroller",
      role: "listbox",
      tabIndex: 0,
      "aria-labelledby": "request-title",
      onscroll: () => this._draw(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event),
    }, this._rows);
    this._detail = el("section", { class: "panel detail", "aria-label": "The selected piece" });
    this.element = el(
      "div",
      { class: "call-grid" },
      this._bill,
      el("section", { class: "panel request" }, el("div", { class: "bar" }, this._title, el("label", { for: "only-new" }, this._only, " only new pieces")), this._scroller),
      this._detail,
    );
    new ResizeObserver(() => this._draw()).observe(this._scroller);
  }

  /** @param {number} call */
  show(call) {
    this.call = call;
    this._showBill();
    this._list();
    if (this.piece >= 0) this._life();
    else this._hint();
  }

  /** @param {Recording} recording @param {import("./paint.js").Layer[]} layers */
  grow(recording, layers) {
    this.recording = recording;
    this._layers = layers;
  }

  // --- the bill ---

  _showBill() {
    const { recording, call } = this;
    const { session, calls } = recording;
    if (!recording.count) {
      fill(this._bill, el("p", null, "No model was called in this session."));
      return;
    }
    const rate = session.rates[calls.rate[call]];
    const factor = calls.dollars[call] / (((calls.input[call] * rate.input + calls.output[call] * rate.output + calls.read[call] * rate.read + calls.write[call] * rate.write) / 1e6) || Infinity);
    const kinds = /** @type {[string, number, number][]} */ ([
      ["Cache read", calls.read[call], rate.read],
      ["Cache write", calls.write[call], rate.write],
      ["New input", calls.input[call], rate.input],
      ["Output", calls.output[call], rate.output],
    ]);
    const marks = recording.marksAt(call);
    const reply = calls.reply[call];
    fill(
      this._bill,
      el("h2", null, `Call ${call + 1}`, el("small", null, ` of ${recording.count}`)),
      el("p", { class: "quiet" }, [moment(calls.time[call]) && `${moment(calls.time[call]).slice(0, 10)} ${clock(calls.time[call])}`, calls.seconds[call] ? span(calls.seconds[call]) : "", session.models[calls.model[call]]].filter(Boolean).join(" · ")),
      marks.map((mark) => el("p", { class: `note ${mark.kind}` }, el("b", { "aria-hidden": "true" }, SIGNS[mark.kind]), " ", mark.text)),
      table(
        session.billed ? "As the provider billed it" : "Estimated: this transcript carries no bills",
        ["", "tokens#", "$ per million#", "cost#"],
        [
          ...kinds.map(([name, count, each]) => [name, tokens(count), each ? String(Number(each.toFixed(4))) : "–", dollars((count * each * (factor || 0)) / 1e6)]),
          [el("b", null, "This call"), el("b", null, tokens(recording.total(call) + calls.output[call])), "", el("b", null, dollars(calls.dollars[call]))],
          ["Session so far", "", "", dollars(calls.spent[call])],
        ],
      ),
      el("h3", null, "By source"),
      this._shares(),
      el("h3", null, "The answer"),
      el("button", { class: "piece-link", onclick: () => this.open(reply) }, session.pieces[reply].label || "(empty)"),
    );
  }

  _shares() {
    const { recording, call } = this;
    const total = recording.total(call) || 1;
    const { stack, fresh } = recording.calls;
    return el(
      "ul",
      { class: "shares" },
      this._layers.map((layer) => {
        const size = layer.members.reduce((sum, source) => sum + stack[call][source], 0);
        const news = layer.members.reduce((sum, source) => sum + fresh[call][source], 0);
        if (!size) return null;
        const line = el("span", { class: "meter", "aria-hidden": "true" }, el("span", { class: "cached" }), el("span", { class: "new" }));
        /** @type {HTMLElement} */ (line.firstChild).style.width = `${((size - news) / total) * 100}%`;
        /** @type {HTMLElement} */ (line.lastChild).style.width = `${(news / total) * 100}%`;
        for (const part of /** @type {HTMLElement[]} */ ([...line.children])) part.style.background = `var(--source-${layer.slot})`;
        return el("li", null, swatch(layer.slot), el("span", { class: "name" }, layer.name), el("span", { class: "figure" }, tokens(size)), el("span", { class: "figure quiet" }, news ? `${tokens(news)} new` : "cached"), line);
      }),
    );
  }

  // --- the request ---

  _list() {
    const all = this.recording.lines(this.call);
    this._lines = this._only.checked ? all.filter((line) => line.fresh > 0.5) : all;
    const news = all.filter((line) => line.fresh > 0.5).length;
    fill(this._title, "The request", el("small", null, ` ${many(all.length, "piece")}, ${news} new`));
    this._rows.style.height = `${this._lines.length * ROW}px`;
    const at = this._lines.findIndex((line) => line.piece === this.piece);
    this._active = at >= 0 ? at : Math.max(0, this._lines.length - 1);
    // The new pieces are at the end of a request.
    this._scroller.scrollTop = at >= 0 ? Math.max(0, at * ROW - 3 * ROW) : this._lines.length * ROW;
    this._draw();
  }

  _draw() {
    const first = Math.max(0, Math.floor(this._scroller.scrollTop / ROW) - AHEAD);
    const last = Math.min(this._lines.length, Math.ceil((this._scroller.scrollTop + this._scroller.clientHeight) / ROW) + AHEAD);
    const rows = [];
    for (let at = first; at < last; at++) rows.push(this._row(at));
    fill(this._rows, rows);
    this._scroller.setAttribute("aria-activedescendant", this._lines.length ? `line-${this._active}` : "");
  }

  /** @param {number} at */
  _row(at) {
    const line = this._lines[at];
    const { session } = this.recording;
    const piece = session.pieces[line.piece];
    const source = session.sources[piece.source];
    const size = line.cached + line.fresh;
    const state = line.fresh < 0.5 ? "cached" : line.cached < 0.5 ? "new" : "partly cached";
    const row = el(
      "div",
      {
        class: `row ${state.replace(" ", "-")}${line.piece === this.piece ? " open" : ""}${at === this._active ? " active" : ""}`,
        id: `line-${at}`,
        role: "option",
        "aria-selected": line.piece === this.piece ? "true" : "false",
        "aria-posinset": at + 1,
        "aria-setsize": this._lines.length,
        "aria-label": `${piece.role}, ${source}, ${tokens(size)} tokens, ${state}, ${small(line.dollars)}: ${piece.label}`,
        onclick: () => {
          this._active = at;
          this.open(line.piece);
        },
      },
      swatch(this._slot(piece.source)),
      el("span", { class: "label" }, piece.label),
      el("span", { class: "figure" }, tokens(size)),
      el("span", { class: "source" }, source === "conversation" ? piece.role : source, " · ", el("span", { class: "state" }, state)),
      el("span", { class: "figure price" }, small(line.dollars)),
    );
    row.style.top = `${at * ROW}px`;
    return row;
  }

  /** @param {number} source */
  _slot(source) {
    const layer = this._layers.find((each) => each.members.includes(source));
    return layer ? layer.slot : 8;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const page = Math.max(1, Math.floor(this._scroller.clientHeight / ROW) - 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this._active = Math.max(0, Math.min(this._lines.length - 1, this._active + steps[event.key]));
      const top = this._active * ROW;
      if (top < this._scroller.scrollTop) this._scroller.scrollTop = top;
      if (top + ROW > this._scroller.scrollTop + this._scroller.clientHeight) this._scroller.scrollTop = top + ROW - this._scroller.clientHeight;
      this._draw();
    } else if ((event.key === "Enter" || event.key === " ") && this._lines[this._active]) {
      event.preventDefault();
      this.open(this._lines[this._active].piece);
    }
  }

  // --- a piece ---

  _hint() {
    fill(this._detail, el("h2", null, "A piece"), el("p", { class: "quiet" }, "Choose a line of the request to read it, and to see when it was added, how many requests carried it and what it has cost."));
  }

  /** @param {number} number */
  open(number) {
    this.piece = number;
    const at = this._lines.findIndex((line) => line.piece === number);
    if (at >= 0) this._active = at;
    this._draw();
    const piece = this.recording.session.pieces[number];
    this._facts = el("dl", { class: "life" });
    this._words = el("div", { class: "words", role: "region", "aria-label": "The text of the piece", tabIndex: 0 });
    fill(
      this._detail,
      el("h2", null, this.recording.session.sources[piece.source], el("small", null, ` ${piece.role}${piece.at ? ` · #${piece.at}` : ""}`)),
      this._facts,
      this._words,
    );
    this._life();
    this._read(number);
  }

  _life() {
    const { recording, call } = this;
    const { session } = recording;
    const piece = session.pieces[this.piece];
    const soFar = recording.soFar(this.piece, call);
    const visible = this._lines.some((line) => line.piece === this.piece) || recording.request(call).includes(this.piece);
    const hidden = piece.first >= 0 && piece.last < recording.count - 1;
    const why = hidden ? recording.marksAt(piece.last + 1).find((mark) => ["cut", "rotation", "edit"].includes(mark.kind)) : null;
    const facts = /** @type {[string, any][]} */ ([
      ["Size", `${tokens(piece.tokens)} tokens`],
      ["Added", piece.first < 0 ? "in no request" : [this._jump(piece.first), ` ${moment(session.calls.time[piece.first])}`]],
      ["Sent", `in ${many(soFar.requests, "request")} up to call ${call + 1}, of ${tokens(piece.requests)} in all`],
      ["Cost so far", `${small(soFar.dollars)} up to call ${call + 1}, ${small(piece.dollars)} in all`],
      ["Now", visible ? "in the window" : piece.first > call ? "not yet in the session" : "not in the window"],
      ["Hidden", hidden ? ["from ", this._jump(piece.last + 1), why ? `: ${why.text}` : ""] : "never"],
    ]);
    const recall = this._recall(piece);
    if (recall) facts.push(["Read it back", recall]);
    if (this._facts) fill(this._facts, facts.map(([name, value]) => [el("dt", null, name), el("dd", null, ...[value].flat())]).flat());
  }

  /** @param {import("./types").RequestPiece} piece */
  _recall(piece) {
    const { session } = this.recording;
    if (!piece.at) return null;
    if (session.stored) return el("code", null, `ra recall --session ${session.id} "#${piece.at}"`);
    if (!session.file) return null;
    return [el("code", null, `ra sessions import ${quoted(session.file)}`), el("br"), el("code", null, `ra recall "#${piece.at}"`)];
  }

  /** @param {number} call */
  _jump(call) {
    return el("button", { class: "jump", onclick: () => this.element.dispatchEvent(new CustomEvent("jump", { detail: call, bubbles: true })) }, `call ${call + 1}`);
  }

  /** @param {number} number */
  async _read(number) {
    const asked = ++this._asked;
    const words = /** @type {HTMLElement} */ (this._words);
    if (!this._source.hasTexts) {
      fill(words, el("p", { class: "quiet" }, "This page was exported without text."));
      return;
    }
    try {
      const text = await this._source.piece(this.recording.session.id, number);
      if (asked !== this._asked) return;
      fill(words, text.parts.map((part, at) => this._part(number, part, at)));
      if (!text.parts.length) put(words, el("p", { class: "quiet" }, "Empty."));
    } catch (error) {
      if (asked === this._asked) fill(words, el("p", { class: "note failure", role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  /** @param {number} number @param {import("./types").TextPart} part @param {number} at */
  _part(number, part, at) {
    const heads = { text: "", thinking: "Thinking", call: "Call of ", result: "Result of ", error: "Failed result of ", attachment: "Attached" };
    const head = `${heads[part.kind]}${part.name}`;
    const box = el("div", { class: `part ${part.kind}` }, head ? el("h3", null, head) : null, el("pre", null, part.text));
    if (part.more) this._more(box, number, part, at);
    return box;
  }

  /** @param {HTMLElement} box @param {number} number @param {import("./types").TextPart} part @param {number} at */
  _more(box, number, part, at) {
    const button = el("button", {
      onclick: async () => {
        button.disabled = true;
        const next = (await this._source.piece(this.recording.session.id, number, at, part.more)).parts[0];
        button.remove();
        put(box, el("pre", null, next.text));
        if (next.more) this._more(box, number, next, at);
      },
    }, `Show more (${tokens(part.size - part.more)} characters left)`);
    put(box, button);
  }
}

/** @param {string} path */
function quoted(path) {
  return /^[\w./~+@:-]+$/.test(path) ? path : `'${path.replace(/'/g, "'\\''")}'`;
}
