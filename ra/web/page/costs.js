/** The costs of a session: by source, tool and model, its biggest spenders, and avoidable costs. */

import { dollars, el, fill, table, tokens } from "./dom.js";

/**
 * @param {import("./types").Overview} session
 * @param {import("./types").CostFindings} findings
 * @param {{ call: (call: number) => void, piece: (piece: number) => void }} go
 */
export function costsPanel(session, findings, go) {
  const avoidable = findings.avoidable.reduce((sum, each) => sum + each.dollars, 0);
  return el(
    "div",
    { class: "costs-grid" },
    el(
      "section",
      { class: "panel" },
      el("h2", null, "Avoidable costs"),
      el("p", { class: "quiet" }, findings.avoidable.length ? `These ${findings.avoidable.length} cost ${dollars(avoidable)} of ${dollars(session.total)}.` : "None: no lost cache, no long pause, nothing read twice."),
      el("ol", { class: "findings" }, findings.avoidable.map((each) => entry(each.text, each.dollars, session.total, `call ${each.call + 1}`, () => go.call(each.call)))),
    ),
    el(
      "section",
      { class: "panel" },
      el("h2", null, "The biggest spenders"),
      el("p", { class: "quiet" }, "The cost of each piece over the session: it is paid for with every request that carries it."),
      el("ol", { class: "findings" }, findings.spenders.map((each) => entry(each.text, each.dollars, session.total, `${tokens(session.pieces[each.piece].requests)} requests`, () => go.piece(each.piece)))),
    ),
    el(
      "section",
      { class: "panel" },
      ...[["source", findings.bySource], ["tool", findings.byTool], ["model", findings.byModel]].map(([name, lines]) => [el("h2", null, `By ${name}`), spending(findings.divided && name !== "model" ? `Estimated from the requests, because the bills of this session do not name their parts; ra cost --by ${name} counts them as other input` : `As ra cost --by ${name} counts it`, /** @type {import("./types").SpendLine[]} */ (lines))]).flat(),
    ),
  );
}

/** @param {string} text @param {number} amount @param {number} total @param {string} where @param {() => void} go */
function entry(text, amount, total, where, go) {
  return el("li", null, el("button", { onclick: go }, el("span", { class: "what" }, text), el("span", { class: "quiet" }, where), el("b", { class: "figure" }, dollars(amount))), bar(amount / (total || 1)));
}

/** @param {string} caption @param {import("./types").SpendLine[]} lines */
function spending(caption, lines) {
  const top = Math.max(1e-9, ...lines.map((line) => line.dollars));
  return table(caption, ["", "calls#", "input#", "output#", "cost#", " "], lines.map((line) => [line.key || "–", tokens(line.calls), tokens(line.input), tokens(line.output), dollars(line.dollars), bar(line.dollars / top)]));
}

/** @param {number} share */
function bar(share) {
  const line = el("span", { class: "meter", "aria-hidden": "true" }, el("span"));
  /** @type {HTMLElement} */ (line.firstChild).style.width = `${Math.min(100, Math.max(0.5, share * 100))}%`;
  return line;
}

/**
 * The events of the session, as links to their calls.
 * @param {Element} panel
 * @param {import("./types").Mark[]} marks
 * @param {Record<string, string>} signs
 * @param {(call: number) => void} go
 */
export function eventsPanel(panel, marks, signs, go) {
  fill(
    panel,
    el("section", { class: "panel" }, el("h2", null, "What happened"), marks.length ? el("ol", { class: "findings events" }, marks.map((mark) => el("li", null, el("button", { onclick: () => go(mark.call) }, el("b", { class: "sign", "aria-hidden": "true" }, signs[mark.kind]), el("span", { class: "what" }, mark.text), el("span", { class: "quiet" }, `call ${mark.call + 1}`))))) : el("p", { class: "quiet" }, "No cut, no rotation, no lost cache, no long pause.")),
  );
}
