// Generated from ra/web/values.py: python -m tests.regenerate

export interface Card {
  id: string;
  title: string;
  agent: string;
  project: string;
  model: string;
  started: number;
  updated: number;
  calls: number;
  dollars: number | null;
  windows: number[];
  file: string;
  chat: string;
}

export interface Day {
  day: string;
  calls: number;
  dollars: number;
}

export interface SessionOverview {
  cards: Card[];
  days: Day[];
  pending: number;
  skipped: string[];
  single: string;
}

export interface RequestPiece {
  at: number;
  role: string;
  source: number;
  tokens: number;
  label: string;
  first: number;
  last: number;
  requests: number;
  dollars: number;
}

export interface CallColumns {
  at: number[];
  time: number[];
  seconds: number[];
  model: number[];
  input: number[];
  output: number[];
  read: number[];
  write: number[];
  dollars: number[];
  spent: number[];
  rate: number[];
  keep: number[];
  added: number[][];
  reply: number[];
  stack: number[][];
  fresh: number[][];
}

export interface Mark {
  call: number;
  kind: "cut" | "rotation" | "edit" | "failure" | "model" | "pause" | "lost" | "aside" | "cache";
  text: string;
}

export interface SpendLine {
  key: string;
  calls: number;
  input: number;
  output: number;
  dollars: number;
}

export interface Rate {
  input: number;
  output: number;
  read: number;
  write: number;
}

export interface NextRequest {
  total: number;
  cached: number;
  cost: number | null;
  window: number | null;
}

export interface Overview {
  id: string;
  title: string;
  agent: string;
  project: string;
  model: string;
  file: string;
  stored: boolean;
  window: number | null;
  billed: boolean;
  total: number;
  unpriced: number;
  sources: string[];
  models: string[];
  rates: Rate[];
  calls: CallColumns;
  pieces: RequestPiece[];
  marks: Mark[];
  notes: string[];
}

export interface Avoidable {
  kind: "lost" | "pause" | "model" | "reread";
  text: string;
  dollars: number;
  call: number;
  piece: number;
}

export interface Spender {
  text: string;
  dollars: number;
  piece: number;
}

export interface CostFindings {
  avoidable: Avoidable[];
  spenders: Spender[];
  bySource: SpendLine[];
  byTool: SpendLine[];
  byModel: SpendLine[];
  divided: boolean;
}

export interface TextPart {
  kind: "text" | "thinking" | "call" | "result" | "error" | "attachment";
  name: string;
  text: string;
  more: number;
  size: number;
}

export interface PieceText {
  parts: TextPart[];
}

export interface SearchHit {
  piece: number;
  before: string;
  match: string;
  after: string;
}

export interface SearchHits {
  hits: SearchHit[];
  more: boolean;
}

export interface Curve {
  strategy: string;
  cost: number;
  withRereads: number;
  rereads: number;
  hitRate: number;
  peak: number;
  rewrites: number;
  names: number;
  lines: number;
  userWords: number;
  namesWithoutIndex: number;
  linesWithoutIndex: number;
  userWordsWithoutIndex: number;
  window: number[];
  cached: number[];
  spent: number[];
  cuts: number[];
}

export interface WhatIf {
  window: number;
  pricedAs: string;
  lifetimeS: number;
  recorded: Curve;
  rows: Curve[];
  billed: number | null;
  skipped: string[];
}

export interface Choices {
  strategies: string[];
  models: string[];
}

export interface Exported {
  session: Overview;
  findings: CostFindings;
  texts: PieceText[];
  whatIf: WhatIf | null;
}
