/** Loads the page's data: from the server's API, or from an exported page itself. */

/**
 * @typedef {object} Conditions
 * @property {string} strategy
 * @property {string} model
 * @property {string} window
 * @property {string} lifetime
 */

/** Loads data from the server. */
export class Remote {
  live = true;
  hasTexts = true;

  /** @param {string} path @returns {Promise<any>} */
  async _get(path) {
    let response;
    try {
      response = await fetch(`api/${path}`, { credentials: "same-origin" });
    } catch {
      throw new Error("The server does not answer. Is `ra open` still running?");
    }
    const body = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(body.error || `The server answered ${response.status}.`);
    return body;
  }

  /** @returns {Promise<import("./types").SessionOverview>} */
  listing() {
    return this._get("sessions");
  }

  /** @returns {Promise<import("./types").Choices>} */
  choices() {
    return this._get("choices");
  }

  /** @param {string} id @returns {Promise<import("./types").Overview>} */
  session(id) {
    return this._get(`sessions/${id}`);
  }

  /** @param {string} id @returns {Promise<import("./types").CostFindings>} */
  findings(id) {
    return this._get(`sessions/${id}/findings`);
  }

  /** @param {string} id @returns {Promise<import("./types").NextRequest | null>} */
  next(id) {
    return this._get(`sessions/${id}/next`);
  }

  /** @param {string} id @param {number} piece @param {number} [part] @param {number} [start] @returns {Promise<import("./types").PieceText>} */
  piece(id, piece, part, start) {
    return this._get(`sessions/${id}/pieces/${piece}${part === undefined ? "" : `?part=${part}&start=${start}`}`);
  }

  /** @param {string} id @param {string} phrase @returns {Promise<import("./types").SearchHits>} */
  search(id, phrase) {
    return this._get(`sessions/${id}/search?q=${encodeURIComponent(phrase)}`);
  }

  /** @param {string} id @param {Conditions} asked @returns {Promise<import("./types").WhatIf>} */
  whatIf(id, asked) {
    const query = new URLSearchParams({ strategies: asked.strategy, model: asked.model, window: asked.window, lifetime: asked.lifetime });
    return this._get(`sessions/${id}/what-if?${query}`);
  }

  /**
   * Calls `grown` whenever the session has grown; returns a function that ends this.
   * @param {string} id
   * @param {() => void} grown
   * @returns {() => void}
   */
  follow(id, grown) {
    const stream = new EventSource(`api/sessions/${id}/changes`);
    stream.addEventListener("grown", grown);
    stream.addEventListener("gone", () => stream.close());
    return () => stream.close();
  }
}

/** Reads the data of an exported page. */
export class Embedded {
  live = false;

  /** @param {import("./types").Exported} carried */
  constructor(carried) {
    this.carried = carried;
    this.hasTexts = carried.texts.length > 0;
  }

  /** @returns {Promise<import("./types").SessionOverview>} */
  async listing() {
    return { cards: [], days: [], pending: 0, skipped: [], single: this.carried.session.id };
  }

  /** @returns {Promise<import("./types").Choices>} */
  async choices() {
    return { strategies: this.carried.whatIf ? this.carried.whatIf.rows.map((row) => row.strategy) : [], models: [] };
  }

  async session() {
    return this.carried.session;
  }

  async findings() {
    return this.carried.findings;
  }

  /** @returns {Promise<import("./types").NextRequest | null>} */
  async next() {
    return null;
  }

  /** @param {string} _ @param {number} piece @returns {Promise<import("./types").PieceText>} */
  async piece(_, piece) {
    return this.carried.texts[piece] || { parts: [] };
  }

  /** @param {string} _ @param {string} phrase @returns {Promise<import("./types").SearchHits>} */
  async search(_, phrase) {
    const folded = phrase.toLowerCase();
    /** @type {import("./types").SearchHit[]} */
    const hits = [];
    for (const [piece, text] of this.carried.texts.entries()) {
      for (const part of text.parts) {
        const at = part.text.toLowerCase().indexOf(folded);
        if (at < 0) continue;
        const end = at + phrase.length;
        hits.push({ piece, before: part.text.slice(Math.max(0, at - 60), at), match: part.text.slice(at, end), after: part.text.slice(end, end + 60) });
        break;
      }
      if (hits.length >= 200) return { hits, more: true };
    }
    return { hits, more: false };
  }

  /** @param {string} _ @param {Conditions} asked @returns {Promise<import("./types").WhatIf>} */
  async whatIf(_, asked) {
    const all = this.carried.whatIf;
    if (!all) throw new Error("This page was exported without replays.");
    return { ...all, rows: all.rows.filter((row) => row.strategy === asked.strategy) };
  }

  follow() {
    return () => {};
  }
}
