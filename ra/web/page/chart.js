/** The chart of a session: the window call by call, events, and the dollars so far. */

import { clock, dollars, el, fill, moment, percent, short, tokens } from "./dom.js";
import { colour, hatching, layersOf, style } from "./paint.js";

/** The signs of events; each has its own shape, so that no colour is needed. */
export const SIGNS = { cut: "✂", rotation: "↻", lost: "!", pause: "Ⅱ", failure: "×", model: "⇄", edit: "✎", aside: "◇", cache: "◔" };
const RANK = ["lost", "cut", "rotation", "pause", "failure", "model", "edit", "cache", "aside"];
const DASHES = [[7, 4], [2, 3], [10, 3, 2, 3], [4, 2], [12, 5], [1, 4], [6, 2, 2, 2], [3, 6], [9, 2]];

/** @typedef {import("./types").Curve} Curve */

export class Chart {
  /**
   * @param {import("./recording.js").Recording} recording
   * @param {(call: number) => void} choose
   */
  constructor(recording, choose) {
    this.recording = recording;
    this._choose = choose;
    this.chosen = Math.max(0, recording.count - 1);
    this.from = 0;
    this.to = Math.max(1, recording.count);
    this.layers = layersOf(recording.session);
    /** @type {Curve[]} */
    this.curves = [];
    /** @type {import("./types").Mark[]} */
    this.marks = recording.session.marks;
    this._wheel = 0;
    this._hover = -1;
    this._planned = false;
    /** @type {ReturnType<Chart["_measure"]> | null} */
    this._place = null;
    this.picture = el("canvas", { "aria-hidden": "true", class: "picture" });
    this.cursor = el("div", { "aria-hidden": "true", class: "cursor" });
    this.pointer = el("div", { "aria-hidden": "true", class: "cursor faint" });
    this.bubble = el("div", { class: "bubble", "aria-hidden": "true" });
    this.stage = el(
      "div",
      {
        class: "stage",
        role: "slider",
        tabIndex: 0,
        "aria-label": "Model calls. Arrow keys move by one, Page Up and Page Down by ten, [ and ] to the next event.",
        "aria-orientation": "horizontal",
      },
      this.picture,
      this.pointer,
      this.cursor,
      this.bubble,
    );
    this.element = el("div", { class: "chart" }, this.stage);
    this._listen();
    this._observer = new ResizeObserver(() => this.draw());
    this._observer.observe(this.stage);
  }

  close() {
    this._observer.disconnect();
  }

  /** Shows the session after it has grown. @param {import("./recording.js").Recording} recording */
  grow(recording) {
    const all = this.to - this.from >= this.recording.count;
    const last = this.chosen >= this.recording.count - 1;
    this.recording = recording;
    this.layers = layersOf(recording.session);
    if (all) [this.from, this.to] = [0, Math.max(1, recording.count)];
    if (last) this.chosen = Math.max(0, recording.count - 1);
    this.curves = [];
    this.draw();
  }

  // --- moving ---

  _listen() {
    const { stage } = this;
    stage.addEventListener("pointerdown", (event) => {
      stage.setPointerCapture(event.pointerId);
      this.choose(this._callAt(event));
    });
    stage.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.choose(this._callAt(event));
      this._hover = this._callAt(event);
      this._later();
    });
    stage.addEventListener("pointerleave", () => {
      this._hover = -1;
      this._later();
    });
    stage.addEventListener("wheel", (event) => this._scroll(event), { passive: false });
    stage.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {WheelEvent} event */
  _scroll(event) {
    if (event.shiftKey && !event.deltaX) return; // sideways scrolling belongs to the page
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this._callAt(event));
      return;
    }
    const unit = event.deltaMode === 1 ? 16 : 1;
    this._wheel += (Math.abs(event.deltaY) > Math.abs(event.deltaX) ? event.deltaY : event.deltaX) * unit;
    const steps = Math.trunc(this._wheel / 40);
    if (steps) {
      this._wheel -= steps * 40;
      this.choose(this.chosen + steps);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.recording.count - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.choose(this.chosen - 1),
      ArrowRight: () => this.choose(this.chosen + 1),
      ArrowDown: () => this.choose(this.chosen - 1),
      ArrowUp: () => this.choose(this.chosen + 1),
      PageDown: () => this.choose(this.chosen - 10),
      PageUp: () => this.choose(this.chosen + 10),
      Home: () => this.choose(0),
      End: () => this.choose(last),
      "[": () => this.event(-1),
      "]": () => this.event(1),
      "+": () => this.zoom(0.6, this.chosen),
      "=": () => this.zoom(0.6, this.chosen),
      "-": () => this.zoom(1.7, this.chosen),
      0: () => this.zoom(Infinity, 0),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** Moves to the next event, forwards (1) or backwards (-1). @param {number} way */
  event(way) {
    const places = [...new Set(this.marks.filter((mark) => mark.kind !== "aside").map((mark) => mark.call))].sort((a, b) => (a - b) * way);
    const next = places.find((call) => (call - this.chosen) * way > 0);
    if (next !== undefined) this.choose(next);
  }

  /** @param {number} call */
  choose(call) {
    const within = Math.max(0, Math.min(this.recording.count - 1, call));
    if (within === this.chosen) return;
    this.chosen = within;
    const width = this.to - this.from;
    if (within < this.from || within >= this.to) {
      this.from = Math.max(0, Math.min(this.recording.count - width, within - Math.floor(width / 2)));
      this.to = this.from + width;
      this.draw();
    }
    this._later();
    this._choose(within);
  }

  /** @param {number} factor @param {number} around */
  zoom(factor, around) {
    const count = this.recording.count;
    const width = Math.max(Math.min(12, count), Math.min(count, Math.round((this.to - this.from) * factor)));
    const share = (around - this.from) / (this.to - this.from);
    this.from = Math.max(0, Math.min(count - width, Math.round(around - width * share)));
    this.to = this.from + Math.max(1, width);
    this.draw();
  }

  _later() {
    if (this._planned) return;
    this._planned = true;
    requestAnimationFrame(() => {
      this._planned = false;
      this._cursor();
    });
  }

  // --- geometry ---

  _measure() {
    const width = this.stage.clientWidth;
    const height = this.stage.clientHeight;
    const narrow = width < 560;
    const left = narrow ? 40 : 56;
    const money = Math.round(height * 0.22);
    const axis = 20;
    const marks = 22;
    const top = 18;
    const floor = height - axis - money - marks; // of the window
    return { width, height, narrow, left, right: width - 10, top, floor, marks: floor + marks / 2, moneyTop: floor + marks + 2, moneyFloor: height - axis };
  }

  /** @param {PointerEvent | WheelEvent} event */
  _callAt(event) {
    const place = this._place || this._measure();
    const x = event.clientX - this.stage.getBoundingClientRect().left;
    const share = (x - place.left) / Math.max(1, place.right - place.left);
    return Math.max(0, Math.min(this.recording.count - 1, Math.floor(this.from + share * (this.to - this.from))));
  }

  _scales() {
    const { session, count } = this.recording;
    const calls = session.calls;
    let peak = 1;
    for (let call = this.from; call < Math.min(this.to, count); call++) peak = Math.max(peak, this.recording.total(call));
    for (const curve of this.curves) for (let call = this.from; call < this.to; call++) peak = Math.max(peak, curve.window[call] || 0);
    const limit = session.window || 0;
    const shown = limit && limit < peak * 2.2;
    const first = this.from ? calls.spent[this.from - 1] : 0;
    let last = calls.spent[Math.min(this.to, count) - 1] || 0;
    for (const curve of this.curves) last = Math.max(last, curve.spent[Math.min(this.to, count) - 1] || 0);
    return { top: (shown ? Math.max(limit, peak) : peak) * 1.06, limit: shown ? limit : 0, above: limit && !shown ? limit : 0, low: this.curves.length ? 0 : first, high: last || 1e-9 };
  }

  // --- drawing ---

  draw() {
    const place = this._measure();
    if (place.width < 40 || place.height < 40) return;
    this._place = place;
    const context = sized(this.picture, place.width, place.height);
    for (const line of [this.cursor, this.pointer]) {
      line.style.top = `${place.top - 6}px`;
      line.style.height = `${place.moneyFloor - place.top + 10}px`;
      line.style.setProperty("--column", `${Math.max(3, (place.right - place.left) / (this.to - this.from))}px`);
    }
    const { session, count } = this.recording;
    const scale = this._scales();
    const span = this.to - this.from;
    const perCall = (place.right - place.left) / span;
    const x = (/** @type {number} */ call) => place.left + (call - this.from) * perCall;
    const y = (/** @type {number} */ size) => place.floor - (size / scale.top) * (place.floor - place.top);
    this._grid(context, place, scale, y);

    // A column for each call, or for the largest call of those that share a pixel.
    const step = Math.max(1, Math.ceil(1 / perCall));
    const gap = perCall > 7 ? 1 : 0;
    /** @type {number[]} */
    const columns = [];
    for (let call = this.from; call < Math.min(this.to, count); call += step) {
      let largest = call;
      for (let other = call + 1; other < Math.min(call + step, this.to, count); other++) if (this.recording.total(other) > this.recording.total(largest)) largest = other;
      columns.push(largest);
    }
    const cached = this.layers.map(() => new Path2D());
    const fresh = this.layers.map(() => new Path2D());
    const edge = new Path2D();
    for (const [index, call] of columns.entries()) {
      const stack = session.calls.stack[call];
      const news = session.calls.fresh[call];
      const left = x(this.from + index * step);
      const width = Math.max(1, Math.min(perCall * step, place.right - left)) - gap;
      let at = 0;
      const bar = (/** @type {Path2D} */ path, /** @type {number} */ size) => {
        if (size <= 0) return;
        path.rect(left, y(at + size), width + (gap ? 0 : 0.4), y(at) - y(at + size));
        at += size;
      };
      this.layers.forEach((layer, number) => bar(cached[number], sum(layer.members, stack) - sum(layer.members, news)));
      edge.moveTo(left, y(at));
      edge.lineTo(left + width, y(at));
      this.layers.forEach((layer, number) => bar(fresh[number], sum(layer.members, news)));
    }
    for (const [paths, strength] of /** @type {[Path2D[], number][]} */ ([[cached, 0.42], [fresh, 1]])) {
      this.layers.forEach((layer, number) => {
        context.globalAlpha = strength;
        context.fillStyle = colour(layer.slot);
        context.fill(paths[number]);
        const pattern = hatching(context, layer.slot, style("--hatch"));
        if (pattern) {
          context.globalAlpha = strength === 1 ? 0.9 : 0.55;
          context.fillStyle = pattern;
          context.fill(paths[number]);
        }
      });
    }
    context.globalAlpha = 1;
    context.strokeStyle = style("--ink");
    context.lineWidth = 1;
    context.stroke(edge);
    this._names(context, columns, x, y, place, step);
    this._limit(context, place, scale, y);
    this._money(context, place, scale, x);
    this._curves(context, place, scale, x, y);
    this._signs(context, place, x, perCall);
    this._times(context, place, x);
    this._cursor();
  }

  /** @param {CanvasRenderingContext2D} context @param {any} place @param {any} scale @param {(size: number) => number} y */
  _grid(context, place, scale, y) {
    context.font = `11px ${style("--sans")}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.lineWidth = 1;
    for (const size of ticks(scale.top, place.narrow ? 3 : 5)) {
      context.strokeStyle = style("--line");
      stroke(context, place.left, y(size), place.right, y(size));
      context.fillStyle = style("--muted");
      context.fillText(short(size), place.left - 6, y(size));
    }
    context.textAlign = "left";
    context.fillText("tokens in the window", place.left, 7);
    context.strokeStyle = style("--line");
    stroke(context, place.left, place.moneyFloor, place.right, place.moneyFloor);
  }

  /** Draws names inside the areas that have room. @param {CanvasRenderingContext2D} context @param {number[]} columns @param {(call: number) => number} x @param {(size: number) => number} y @param {any} place @param {number} step */
  _names(context, columns, x, y, place, step) {
    const { stack } = this.recording.session.calls;
    context.font = `600 11px ${style("--sans")}`;
    context.textAlign = "center";
    const tops = columns.map(() => 0);
    const bottoms = columns.map(() => 0);
    this.layers.forEach((layer, number) => {
      columns.forEach((call, index) => {
        bottoms[index] = number ? tops[index] : 0;
        tops[index] = bottoms[index] + sum(layer.members, stack[call]);
      });
      // The position where the layer has room for its name over the name's full width.
      const width = context.measureText(layer.name).width;
      const half = Math.ceil((width / 2 + 12) / Math.max(1, x(step) - x(0)));
      let [best, height, middle] = [-1, 0, 0];
      for (let index = half; index < columns.length - half; index += Math.max(1, half >> 2)) {
        const ceiling = y(Math.min(...tops.slice(index - half, index + half + 1)));
        const floor = y(Math.max(...bottoms.slice(index - half, index + half + 1)));
        if (floor - ceiling > height) [best, height, middle] = [x(this.from + index * step), floor - ceiling, (floor + ceiling) / 2];
      }
      if (height < 22 || best < 0 || width > 180) return;
      context.fillStyle = style("--panel");
      context.globalAlpha = 0.86;
      context.beginPath();
      context.roundRect(best - width / 2 - 5, middle - 9, width + 10, 18, 4);
      context.fill();
      context.globalAlpha = 1;
      context.fillStyle = style("--ink");
      context.fillText(layer.name, best, middle + 0.5);
    });
    context.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} context @param {any} place @param {any} scale @param {(size: number) => number} y */
  _limit(context, place, scale, y) {
    context.font = `11px ${style("--sans")}`;
    context.fillStyle = context.strokeStyle = style("--alarm");
    context.textAlign = "right";
    if (scale.limit) {
      context.lineWidth = 1.5;
      context.setLineDash([5, 3]);
      stroke(context, place.left, y(scale.limit), place.right, y(scale.limit));
      context.setLineDash([]);
      context.textAlign = "left";
      context.fillText(`limit ${tokens(scale.limit)}`, place.left + 6, y(scale.limit) - 8);
    } else if (scale.above) {
      context.fillText(`limit ${tokens(scale.above)} ↑ above the picture`, place.right, 7);
    }
    context.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} context @param {any} place @param {any} scale @param {(call: number) => number} x */
  _money(context, place, scale, x) {
    const { spent } = this.recording.session.calls;
    const y = this._moneyScale(place, scale);
    const path = new Path2D();
    path.moveTo(x(this.from), place.moneyFloor);
    for (let call = this.from; call < Math.min(this.to, this.recording.count); call++) {
      path.lineTo(x(call), y(spent[call]));
      path.lineTo(x(call + 1), y(spent[call]));
    }
    path.lineTo(x(Math.min(this.to, this.recording.count)), place.moneyFloor);
    context.fillStyle = style("--money");
    context.globalAlpha = 0.22;
    context.fill(path);
    context.globalAlpha = 1;
    context.strokeStyle = style("--money");
    context.lineWidth = 1.5;
    context.save();
    context.beginPath();
    context.rect(place.left, place.moneyTop - 2, place.right - place.left, place.moneyFloor - place.moneyTop + 1);
    context.clip();
    context.stroke(path);
    context.restore();
    context.fillStyle = style("--muted");
    context.font = `11px ${style("--sans")}`;
    context.textAlign = "right";
    context.fillText(money(scale.high), place.left - 6, place.moneyTop + 5);
    context.textAlign = "left";
    context.fillText("dollars so far", place.left + 4, place.moneyTop + 6);
  }

  /** @param {any} place @param {any} scale */
  _moneyScale(place, scale) {
    return (/** @type {number} */ amount) => place.moneyFloor - ((amount - scale.low) / Math.max(1e-9, scale.high - scale.low)) * (place.moneyFloor - place.moneyTop - 4);
  }

  /** Draws the curves of other strategies. @param {CanvasRenderingContext2D} context @param {any} place @param {any} scale @param {(call: number) => number} x @param {(size: number) => number} y */
  _curves(context, place, scale, x, y) {
    const moneyY = this._moneyScale(place, scale);
    /** @type {number[]} */
    const taken = []; // heights of names drawn so far
    this.curves.forEach((curve, number) => {
      context.lineJoin = "round";
      for (const [values, to] of /** @type {[number[], (value: number) => number][]} */ ([[curve.window, y], [curve.spent, moneyY]])) {
        const path = new Path2D();
        for (let call = this.from; call < Math.min(this.to, values.length); call++) {
          path.lineTo(x(call), to(values[call]));
          path.lineTo(x(call + 1), to(values[call]));
        }
        context.setLineDash([]);
        context.strokeStyle = style("--panel");
        context.lineWidth = 4;
        context.stroke(path);
        context.setLineDash(DASHES[number % DASHES.length]);
        context.strokeStyle = style(`--curve-${number % 4}`);
        context.lineWidth = 2;
        context.stroke(path);
      }
      context.setLineDash([]);
      const last = Math.min(this.to, curve.window.length) - 1;
      if (last < this.from) return;
      context.font = `600 11px ${style("--sans")}`;
      context.textAlign = "right";
      const width = context.measureText(curve.strategy).width;
      let at = Math.max(place.top + 8, y(curve.window[last]) - 10);
      while (taken.some((other) => Math.abs(other - at) < 17)) at += 17;
      taken.push(at);
      context.fillStyle = style("--panel");
      context.fillRect(place.right - width - 8, at - 8, width + 8, 16);
      context.fillStyle = style(`--curve-${number % 4}`);
      context.fillText(curve.strategy, place.right - 4, at);
      context.textAlign = "left";
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {any} place @param {(call: number) => number} x @param {number} perCall */
  _signs(context, place, x, perCall) {
    context.textAlign = "center";
    context.font = `700 11px ${style("--sans")}`;
    let last = -100;
    for (const [call, marks] of byCall(this.marks)) {
      if (call < this.from || call >= this.to) continue;
      const at = x(call) + Math.min(perCall, 14) / 2;
      const first = marks.reduce((best, mark) => (RANK.indexOf(mark.kind) < RANK.indexOf(best.kind) ? mark : best));
      const strong = ["lost", "cut", "rotation", "pause"].includes(first.kind);
      context.strokeStyle = style(first.kind === "lost" || first.kind === "failure" ? "--alarm" : "--ink");
      context.globalAlpha = strong ? 0.55 : 0.2;
      context.lineWidth = 1;
      stroke(context, at, strong ? place.top : place.floor - 6, at, place.floor + 3);
      context.globalAlpha = 1;
      if (at - last < 13) continue; // signs would overlap; only the lines are drawn
      last = at;
      context.fillStyle = style(first.kind === "lost" ? "--alarm" : strong ? "--ink" : "--muted");
      context.fillText(SIGNS[first.kind], at, place.marks);
    }
    context.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} context @param {any} place @param {(call: number) => number} x */
  _times(context, place, x) {
    const { time } = this.recording.session.calls;
    context.font = `11px ${style("--sans")}`;
    context.fillStyle = context.strokeStyle = style("--muted");
    context.lineWidth = 1;
    const most = Math.max(2, Math.floor((place.right - place.left) / (place.narrow ? 90 : 130)));
    const step = nice((this.to - this.from) / most);
    let today = "";
    for (let call = Math.ceil(this.from / step) * step; call < Math.min(this.to, this.recording.count); call += step) {
      const at = x(call);
      if (at > place.right - 60) break;
      const when = moment(time[call]);
      const label = when && when.slice(0, 10) !== today ? when.slice(5) : when.slice(11);
      today = when.slice(0, 10);
      stroke(context, at + 0.5, place.moneyFloor, at + 0.5, place.moneyFloor + 4);
      context.fillText(`${call + 1}${label && !place.narrow ? ` · ${label}` : ""}`, at, place.moneyFloor + 12);
    }
  }

  /** Moves only two lines, because it runs at every step of scrubbing. */
  _cursor() {
    const place = this._place;
    if (!place || !this.recording.count) return;
    const perCall = (place.right - place.left) / (this.to - this.from);
    const move = (/** @type {HTMLElement} */ line, /** @type {number} */ call) => {
      line.hidden = call < this.from || call >= this.to;
      line.style.transform = `translateX(${place.left + (call - this.from + 0.5) * perCall}px)`;
    };
    move(this.cursor, this.chosen);
    move(this.pointer, this._hover === this.chosen ? -1 : this._hover);
    this._say(place, perCall);
  }

  /** @param {any} place @param {number} perCall */
  _say(place, perCall) {
    const shown = this._hover >= 0 ? this._hover : -1;
    const { stage } = this;
    stage.setAttribute("aria-valuemin", "1");
    stage.setAttribute("aria-valuemax", String(this.recording.count));
    stage.setAttribute("aria-valuenow", String(this.chosen + 1));
    stage.setAttribute("aria-valuetext", this.sentence(this.chosen));
    this.bubble.hidden = shown < 0;
    if (shown < 0) return;
    const marks = this.marks.filter((mark) => mark.call === shown).map((mark) => el("div", null, `${SIGNS[mark.kind]} ${mark.text}`));
    fill(this.bubble, el("b", null, `Call ${shown + 1}`), ` ${clock(this.recording.session.calls.time[shown])}`, el("div", null, this.figures(shown)), marks.slice(0, 3));
    const at = place.left + (shown - this.from + 0.5) * perCall;
    const side = at > place.width / 2;
    this.bubble.style.left = side ? "auto" : `${at + 12}px`;
    this.bubble.style.right = side ? `${place.width - at + 12}px` : "auto";
  }

  /** The figures of a call in one line. @param {number} call */
  figures(call) {
    const { recording } = this;
    return `${tokens(recording.total(call))} tokens, ${percent(recording.share(call))} cached, ${dollars(recording.session.calls.dollars[call])}`;
  }

  /** The description of a call for screen readers. @param {number} call */
  sentence(call) {
    const marks = this.marks.filter((mark) => mark.call === call).map((mark) => mark.text);
    return [`Call ${call + 1} of ${this.recording.count}: ${this.figures(call)}.`, ...marks].join(" ");
  }
}

/** @param {number[]} members @param {number[]} sizes */
function sum(members, sizes) {
  let total = 0;
  for (const member of members) total += sizes[member];
  return total;
}

/** @param {import("./types").Mark[]} marks @returns {[number, import("./types").Mark[]][]} */
function byCall(marks) {
  /** @type {Map<number, import("./types").Mark[]>} */
  const groups = new Map();
  for (const mark of marks) groups.set(mark.call, [...(groups.get(mark.call) || []), mark]);
  return [...groups].sort((a, b) => a[0] - b[0]);
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sized(canvas, width, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.globalAlpha = 1;
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {CanvasRenderingContext2D} context @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function stroke(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, Math.round(y1) + 0.5);
  context.lineTo(x2, Math.round(y2) + 0.5);
  context.stroke();
}

/** The next round number above a size. @param {number} size */
function nice(size) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, size)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= size) || 1;
}

/** @param {number} top @param {number} most */
function ticks(top, most) {
  const step = nice(top / most);
  const places = [];
  for (let at = 0; at <= top; at += step) places.push(at);
  return places;
}

/** @param {number} amount */
function money(amount) {
  return amount >= 100 ? `$${Math.round(amount)}` : amount >= 1 ? `$${amount.toFixed(amount >= 10 ? 0 : 1)}` : amount >= 0.01 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`;
}
