/** A session in the browser: the pieces of each request, how much of them was cached, and their costs. */

const STRIDE = 64; // calls between two requests that are stored completely

/**
 * A piece in a request: `cached` and `fresh` are its tokens in the provider's count.
 * @typedef {{ piece: number, cached: number, fresh: number, dollars: number }} Line
 */

export class Recording {
  /** @param {import("./types").Overview} session */
  constructor(session) {
    this.session = session;
    this.calls = session.calls;
    this.count = session.calls.at.length;
    /** @type {number[][]} */
    this._snapshots = [];
    /** @type {number[]} */
    const pieces = [];
    for (let call = 0; call < this.count; call++) {
      this._apply(pieces, call);
      if (call % STRIDE === 0) this._snapshots.push(pieces.slice());
    }
  }

  /** @param {number} call */
  total(call) {
    return this.calls.input[call] + this.calls.read[call] + this.calls.write[call];
  }

  /** @param {number[]} pieces @param {number} call */
  _apply(pieces, call) {
    pieces.length = this.calls.keep[call];
    for (const piece of this.calls.added[call]) pieces.push(piece);
  }

  /** The pieces of a request, in order. @param {number} call @returns {number[]} */
  request(call) {
    if (call < 0 || call >= this.count) return [];
    const from = Math.floor(call / STRIDE);
    const pieces = this._snapshots[from].slice();
    for (let number = from * STRIDE + 1; number <= call; number++) this._apply(pieces, number);
    return pieces;
  }

  /** The ratio of the paid to the list price. @param {number} call */
  _factor(call) {
    const { calls, session } = this;
    const rate = session.rates[calls.rate[call]];
    const listed = (calls.input[call] * rate.input + calls.output[call] * rate.output + calls.read[call] * rate.read + calls.write[call] * rate.write) / 1e6;
    return listed ? calls.dollars[call] / listed : 1;
  }

  /**
   * The cost of the tokens from `start` to `end` of a request, as positions in the provider's count.
   * @param {number} call @param {number} start @param {number} end
   * @returns {[number, number]} dollars and cached tokens
   */
  _price(call, start, end) {
    const rate = this.session.rates[this.calls.rate[call]];
    const read = this.calls.read[call];
    const write = read + this.calls.write[call];
    const inside = (/** @type {number} */ low, /** @type {number} */ high) => Math.max(0, Math.min(end, high) - Math.max(start, low));
    const cached = inside(0, read);
    const paid = cached * rate.read + inside(read, write) * rate.write + inside(write, Infinity) * rate.input;
    return [(paid * this._factor(call)) / 1e6, cached];
  }

  /** The request of a call, piece by piece. @param {number} call @returns {Line[]} */
  lines(call) {
    const pieces = this.request(call);
    const all = this.session.pieces;
    let counted = 0;
    for (const piece of pieces) counted += all[piece].tokens;
    const scale = counted ? this.total(call) / counted : 0;
    let start = 0;
    return pieces.map((piece) => {
      const end = start + all[piece].tokens * scale;
      const [paid, cached] = this._price(call, start, end);
      const line = { piece, cached, fresh: end - start - cached, dollars: paid };
      start = end;
      return line;
    });
  }

  /**
   * The number of requests that carried a piece up to a call, and its cost until then.
   * @param {number} piece @param {number} last
   * @returns {{ requests: number, dollars: number }}
   */
  soFar(piece, last) {
    const all = this.session.pieces;
    const { keep, added } = this.calls;
    /** @type {number[]} */
    const pieces = [];
    /** @type {number[]} */
    const ends = [];
    let at = -1; // position of the piece in the request
    let requests = 0;
    let paid = 0;
    for (let call = 0; call <= Math.min(last, this.count - 1); call++) {
      pieces.length = ends.length = keep[call];
      if (at >= keep[call]) at = -1;
      for (const number of added[call]) {
        if (number === piece) at = pieces.length;
        pieces.push(number);
        ends.push((ends.length ? ends[ends.length - 1] : 0) + all[number].tokens);
      }
      const counted = ends.length ? ends[ends.length - 1] : 0;
      if (at < 0) continue;
      requests += 1;
      if (!counted) continue;
      const scale = this.total(call) / counted;
      paid += this._price(call, (at ? ends[at - 1] : 0) * scale, ends[at] * scale)[0];
    }
    return { requests, dollars: paid };
  }

  /** The marks before a call. @param {number} call */
  marksAt(call) {
    return this.session.marks.filter((mark) => mark.call === call);
  }

  /** The share of a call's input that was read from the cache. @param {number} call */
  share(call) {
    const total = this.total(call);
    return total ? this.calls.read[call] / total : 0;
  }
}
