/** What if: replays the session with another strategy, window, model or cache lifetime. */

import { dollars, el, fill, percent, span, table, tokens } from "./dom.js";

const WORDS = /** @type {Record<string, string>} */ ({
  nothing: "sends everything, always",
  truncate: "hides the oldest groups at the threshold",
  summarize: "asks a model for a summary",
  digest: "puts an index in the place of what it hides",
  auto: "cuts when carrying costs more than rewriting",
  "rolling-mask": "hides all but the newest tool output",
  "batch-prune": "hides old tool output in batches",
  layered: "layers and a short history, sessions rotate",
  planner: "a small model chooses what each turn sees",
});
const NOTHING = "nothing";
const FIRST = ["auto", NOTHING];

/** @typedef {import("./types").Curve} Curve */

export class WhatIfPanel {
  /**
   * @param {import("./types").Overview} session
   * @param {import("./source.js").Remote | import("./source.js").Embedded} source
   * @param {(curves: Curve[]) => void} draw
   */
  constructor(session, source, draw) {
    this._session = session;
    this._source = source;
    this._draw = draw;
    this._round = 0;
    /** @type {HTMLInputElement[]} */
    this._boxes = [];
    this._window = el("input", { type: "number", id: "if-window", min: "1000", max: "10000000", step: "1000", placeholder: session.window ? String(session.window) : "as it was" });
    this._model = el("input", { type: "text", id: "if-model", list: "if-models", placeholder: session.model, autocomplete: "off", spellcheck: false });
    this._models = el("datalist", { id: "if-models" });
    this._lifetime = el("select", { id: "if-lifetime" }, el("option", { value: "" }, "as it was"), el("option", { value: "5m" }, "5 minutes"), el("option", { value: "1h" }, "1 hour"));
    this._choices = el("fieldset", null, el("legend", null, "Strategy"));
    this._results = el("div", { class: "results" });
    this._status = el("p", { class: "quiet", role: "status" });
    const fixed = !source.live;
    this.element = el(
      "div",
      { class: "whatif-grid" },
      el(
        "form",
        { class: "panel", onsubmit: (/** @type {Event} */ event) => this._submit(event) },
        el("h2", null, "What if …"),
        this._choices,
        fixed ? null : el("div", { class: "fields" }, field("Window in tokens", this._window), field("Prices of model", this._model, this._models), field("Cache lifetime", this._lifetime)),
        el("div", { class: "bar" }, el("button", { type: "submit", class: "primary" }, "Replay"), el("button", { type: "button", onclick: () => this.clear() }, "Clear")),
      ),
      el("section", { class: "panel", "aria-label": "Results" }, this._status, this._results),
    );
    this._offer();
    this.clear();
  }

  async _offer() {
    try {
      const choices = await this._source.choices();
      for (const strategy of choices.strategies) {
        const box = el("input", { type: "checkbox", value: strategy, checked: FIRST.includes(strategy), id: `if-${strategy}` });
        this._boxes.push(box);
        this._choices.append(el("label", { for: `if-${strategy}` }, box, el("span", null, el("b", null, strategy), el("span", { class: "quiet" }, ` ${WORDS[strategy] || ""}`))));
      }
      fill(this._models, choices.models.map((model) => el("option", { value: model })));
    } catch (error) {
      this._status.textContent = /** @type {Error} */ (error).message;
    }
  }

  clear() {
    this._round += 1;
    fill(this._results);
    this._status.textContent = "Replays the session with the code of `ra bench context`: the assistant's actions stay the same, but its context differs. The curves appear in the chart above.";
    this._draw([]);
  }

  /** @param {Event} event */
  async _submit(event) {
    event.preventDefault();
    const round = ++this._round;
    const chosen = this._boxes.filter((box) => box.checked).map((box) => box.value);
    /** @type {Curve[]} */
    const rows = [];
    /** @type {import("./types").WhatIf | null} */
    let last = null;
    const problems = [];
    fill(this._results);
    if (!chosen.length) this._status.textContent = "Choose a strategy.";
    for (const [number, strategy] of chosen.entries()) {
      this._status.textContent = `Replaying ${strategy} (${number + 1} of ${chosen.length}) …`;
      try {
        last = await this._source.whatIf(this._session.id, { strategy, model: this._model.value.trim(), window: this._window.value, lifetime: this._lifetime.value });
        if (round !== this._round) return;
        rows.push(...last.rows);
        problems.push(...last.skipped);
      } catch (error) {
        if (round !== this._round) return;
        problems.push(/** @type {Error} */ (error).message);
      }
      this._show(last, rows, problems);
      this._draw([...rows]);
    }
    if (chosen.length) this._status.textContent = last ? this._conditions(last) : "Nothing could be replayed.";
  }

  /** @param {import("./types").WhatIf} last */
  _conditions(last) {
    const bill = last.billed === null ? "The transcript has no bills, so all costs are estimates." : `The recorded bill is ${dollars(last.billed)}; its replay costs ${dollars(last.recorded.cost)}.`;
    return `Window ${tokens(last.window)}, prices of ${last.pricedAs}, caches live ${span(last.lifetimeS)}. ${bill}`;
  }

  /** @param {import("./types").WhatIf | null} last @param {Curve[]} rows @param {string[]} problems */
  _show(last, rows, problems) {
    const curves = last ? [last.recorded, ...[...rows].sort((a, b) => a.cost - b.cost)] : [];
    const uncut = rows.find((row) => row.strategy === NOTHING) || (last && last.recorded);
    fill(
      this._results,
      curves.length
        ? table(
            "Counted as by `ra bench context`. Names, lines and user words: the share of later needed content that was still visible; in brackets, without content that only an index shows.",
            ["strategy", "cost#", `against ${uncut ? uncut.strategy : NOTHING}#`, "with re-reads#", "hit rate#", "peak window#", "rewrites#", "names#", "lines#", "user words#"],
            curves.map((curve) => [
              curve.strategy,
              dollars(curve.cost),
              uncut && uncut.cost && curve !== uncut && curve !== curves[0] ? against(curve.cost / uncut.cost - 1) : "",
              dollars(curve.withRereads),
              `${(curve.hitRate * 100).toFixed(1)}%`,
              tokens(curve.peak),
              tokens(curve.rewrites),
              visible(curve.names, curve.namesWithoutIndex),
              visible(curve.lines, curve.linesWithoutIndex),
              visible(curve.userWords, curve.userWordsWithoutIndex),
            ]),
          )
        : null,
      problems.map((problem) => el("p", { class: "note failure" }, problem)),
    );
  }
}

/** @param {number} change */
function against(change) {
  return `${change >= 0 ? "+" : "−"}${percent(Math.abs(change))}`;
}

/** @param {number} share @param {number} without */
function visible(share, without) {
  return share === without ? share.toFixed(3) : `${share.toFixed(3)} (${without.toFixed(3)})`;
}

/** @param {string} name @param {HTMLElement} input @param {...Node} more */
function field(name, input, ...more) {
  return el("p", { class: "field" }, el("label", { for: input.id }, name), input, ...more);
}
