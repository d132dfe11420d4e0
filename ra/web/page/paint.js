/** Colours and patterns of sources: they differ in hue, lightness and hatching, so that colour alone is never needed. */

const MOST = 8; // layers; the smallest sources share the last one

/** A hatching for each colour in the palette of the style sheet. */
const HATCHES = ["none", "rising", "dots", "falling", "level", "cross", "upright", "rings", "none"];

/**
 * A layer of the chart, from the bottom up: `members` are indexes of the session's sources.
 * @typedef {{ name: string, members: number[], slot: number }} Layer
 */

/**
 * A layer for each of the largest sources, and one for the others together.
 * @param {import("./types").Overview} session
 * @returns {Layer[]}
 */
export function layersOf(session) {
  const sums = session.sources.map(() => 0);
  for (const sizes of session.calls.stack) sizes.forEach((size, source) => (sums[source] += size));
  const bySize = session.sources.map((_, source) => source).sort((a, b) => sums[b] - sums[a]);
  const large = bySize.slice(0, session.sources.length > MOST ? MOST - 1 : MOST).sort((a, b) => a - b); // in the order of a request
  const layers = large.map((source, slot) => ({ name: session.sources[source], members: [source], slot }));
  const rest = bySize.slice(large.length);
  if (rest.length) layers.push({ name: `${rest.length} others`, members: rest, slot: MOST });
  return layers;
}

/** @type {Map<string, string>} */
const styles = new Map();

/** A value of the style sheet, looked up once: every lookup makes the browser recompute all styles. @param {string} name */
export function style(name) {
  let value = styles.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    styles.set(name, value);
  }
  return value;
}

/** The colour of a layer. @param {number} slot */
export function colour(slot) {
  return style(`--source-${slot}`);
}

/**
 * The hatching to draw over a colour; null for none.
 * @param {CanvasRenderingContext2D} context
 * @param {number} slot
 * @param {string} ink
 */
export function hatching(context, slot, ink) {
  const kind = HATCHES[slot];
  if (kind === "none") return null;
  const size = 8;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const draw = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  draw.strokeStyle = draw.fillStyle = ink;
  draw.lineWidth = 1;
  draw.beginPath();
  if (kind === "rising" || kind === "cross") line(draw, [-2, 2, 2, -2], [-2, 10, 10, -2], [6, 10, 10, 6]);
  if (kind === "falling" || kind === "cross") line(draw, [-2, 6, 2, 10], [-2, -2, 10, 10], [6, -2, 10, 2]);
  if (kind === "level") line(draw, [0, 3.5, size, 3.5]);
  if (kind === "upright") line(draw, [3.5, 0, 3.5, size]);
  draw.stroke();
  if (kind === "dots") draw.fillRect(2, 2, 1.6, 1.6), draw.fillRect(6, 6, 1.6, 1.6);
  if (kind === "rings") {
    draw.beginPath();
    draw.arc(4, 4, 1.8, 0, 7);
    draw.stroke();
  }
  return context.createPattern(tile, "repeat");
}

/** @param {CanvasRenderingContext2D} draw @param {...number[]} lines */
function line(draw, ...lines) {
  for (const [x1, y1, x2, y2] of lines) {
    draw.moveTo(x1, y1);
    draw.lineTo(x2, y2);
  }
}

/** A small square in the colour and hatching of a layer. @param {number} slot */
export function swatch(slot) {
  const square = document.createElement("span");
  square.className = `swatch slot-${slot}`;
  square.setAttribute("aria-hidden", "true");
  return square;
}

/** Reads the colours again and paints all squares: at the start, and when the colour scheme changes. */
export function repaint() {
  styles.clear();
  for (let slot = 0; slot <= MOST; slot++) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 28;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(2, 2);
    for (const paint of [colour(slot), hatching(context, slot, style("--hatch"))]) {
      if (!paint) continue;
      context.fillStyle = paint;
      context.fillRect(0, 0, 14, 14);
    }
    document.documentElement.style.setProperty(`--swatch-${slot}`, `url(${canvas.toDataURL()})`);
  }
}
