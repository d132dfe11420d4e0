// Calls the default export of a hook file with `ctx`, read as JSON from stdin, and writes its changes to stdout.
import { readFileSync } from "node:fs";
import module from "node:module";
import { pathToFileURL } from "node:url";

const file = process.argv[2];
const [major, minor] = process.versions.node.split(".").map(Number);
const strips = major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);

// Without a package.json, a file is a module if it imports or exports, and TypeScript always is one.
// A node that strips types detects this itself.
const loader = `
  import { readFile } from "node:fs/promises";
  export async function load(url, context, next) {
    const path = url.split("?")[0];
    const isTs = /\\.m?ts$/.test(path);
    if (!url.startsWith("file:") || !(isTs || path.endsWith(".js")) || (isTs && ${strips})) return next(url, context);
    const source = await readFile(new URL(path), "utf8");
    const isModule = isTs || /^\\s*(export|import)\\b[^(]/m.test(source);
    return isModule ? { format: "module", source, shortCircuit: true } : next(url, context);
  }`;
if (module.register) module.register("data:text/javascript," + encodeURIComponent(loader));

// stdout carries only the answer.
for (const name of ["log", "info", "debug"]) console[name] = (...words) => console.error(...words);

const VERBATIM = new Set(["args", "schema", "attrs", "parts"]);
const renamed = (value, rename) =>
  Array.isArray(value)
    ? value.map((item) => renamed(item, rename))
    : value && typeof value === "object"
      ? Object.fromEntries(
          Object.entries(value).map(([key, item]) => [rename(key), VERBATIM.has(key) ? item : renamed(item, rename)]),
        )
      : value;
const camel = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const snake = (key) => key.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());

// Besides its blocks, a message has `content`: its text.
const textOf = (message) =>
  (message.blocks ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
const isMessage = (value) => value && typeof value === "object" && value.role && Array.isArray(value.blocks);
const withContent = (value) => {
  if (Array.isArray(value)) return value.map(withContent);
  if (isMessage(value)) return { ...value, content: textOf(value) };
  if (!value || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, VERBATIM.has(key) ? item : withContent(item)]),
  );
};
const withoutContent = (value) => {
  if (Array.isArray(value)) return value.map(withoutContent);
  if (!value || typeof value !== "object") return value;
  if (isMessage(value)) {
    const { content, ...message } = value;
    return content === textOf(value) || content === undefined ? message : { role: value.role, content };
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, VERBATIM.has(key) ? item : withoutContent(item)]),
  );
};

const received = JSON.parse(readFileSync(0, "utf8"));
const answer = {};
const ctx = withContent(renamed(received, camel));
const before = JSON.parse(JSON.stringify(ctx));
ctx.stop = (reason) => { answer.stop ??= reason || true; };
ctx.deny = (reason) => { answer.deny ??= reason || true; };
ctx.compact = () => { answer.compact = true; };
// A call is never separated from its results, so `recent` may return fewer messages, or more if one group is larger.
const groupsOf = (messages) => {
  const groups = [];
  for (const message of messages) {
    const blocks = message.blocks ?? [];
    const answers = blocks.filter((block) => block.type === "tool-result").map((block) => block.callId);
    const calls = (groups.at(-1) ?? []).flatMap((earlier) => earlier.blocks ?? []).map((block) => block.id);
    if (answers.length && answers.every((id) => calls.includes(id))) groups.at(-1).push(message);
    else groups.push([message]);
  }
  return groups;
};
const recent = (messages, count) => {
  const newest = [];
  for (const group of groupsOf(messages).reverse()) {
    if (count <= 0 || (newest.length && newest.length + group.length > count)) break;
    newest.unshift(...group);
  }
  return newest;
};

// The added slots, in order; ra cuts them to its budget when the hook has returned.
const slots = [];
const rendered = {
  get messages() {
    const placed = slots.filter(({ content }) => content !== null && content !== "" && content.length !== 0);
    const ordered = placed.map((slot, index) => ({ ...slot, position: slot.position ?? index }));
    ordered.sort((a, b) => a.position - b.position);
    return withContent(
      ordered.flatMap(({ content, role }) =>
        typeof content === "string" ? [{ role: role ?? "user", content }] : content,
      ),
    );
  },
};
if (ctx.slots) {
  const history = ctx.history;
  ctx.history = { all: () => history, recent: (count) => recent(history, count) };
  ctx.slots = {
    add: (name, content, options = {}) => { slots.push({ name, content: withoutContent(content ?? null), ...options }); },
    render: () => rendered,
  };
}

const fail = (message) => { console.error(message); process.exit(1); };
// The error on one line: its message, then where it occurred, without the frames of this file and of node.
const describe = (error) => {
  const [message, ...frames] = `${error?.stack ?? error}`.split(/\n\s*(?=at )/);
  const hookFrames = frames.filter((frame) => frame.includes(file)).slice(0, 3);
  return [message.trim().replaceAll("\n", " "), ...hookFrames].join(" ");
};
let exported;
try {
  exported = await import(pathToFileURL(file));
} catch (error) {
  const typed = error instanceof SyntaxError && /\.m?ts$/.test(file) && !strips;
  fail(
    typed
      ? `${file} holds TypeScript types (${error.message}), and node ${process.versions.node} cannot strip them: ` +
          "use node 22.18 or newer, or leave the types out."
      : describe(error),
  );
}
const named = exported[received.hook] ?? exported.default?.[received.hook];
const hook = [exported.default, exported.default?.default, named].find((value) => typeof value === "function");
if (!hook) fail(`${file} has no default export that is a function: write \`export default async (ctx) => { … }\`.`);
let result;
try {
  result = await hook(ctx);
} catch (error) {
  fail(describe(error));
}
if (result !== undefined && result !== ctx && result !== rendered)
  fail(`${received.hook} returned ${typeof result}; a hook returns nothing: it changes ctx, or calls ctx.stop(reason).`);

// Only changes are sent back: reading costs nothing, and no other value can change by accident.
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const context = {};
for (const [key, value] of Object.entries(ctx)) {
  if (typeof value === "function" || key === "slots" || key === "history" || same(value, before[key])) continue;
  const parts = value && typeof value === "object" && !Array.isArray(value) && !isMessage(value);
  context[key] = parts
    ? Object.fromEntries(Object.entries(value).filter(([name, part]) => !same(part, before[key]?.[name])))
    : value;
}
if (slots.length) context.slots = slots;
if (Object.keys(context).length) answer.context = renamed(withoutContent(context), snake);
process.stdout.write(JSON.stringify(answer) + "\n");
// An open connection or timer does not keep the process alive; pending work has a second to end.
setTimeout(() => process.exit(0), 1000).unref();
