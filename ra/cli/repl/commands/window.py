"""Commands on the window: list its messages, take them out, bring them back, pin them, and rewind to a prompt."""

from ra.cli.repl.core import Repl
from ra.cli.repl.offers import Offer
from ra.cli.repl.terminal import Choice
from ra.cli.table import age, money
from ra.core.errors import UsageError
from ra.core.model import Usage
from ra.core.text import one_line, visible, visible_line
from ra.core.value import Value
from ra.session.message_list import SessionMessage, WindowChange
from ra.session.snapshot import Snapshot

STATES = {"shown": " ", "shortened": "~", "hidden": "×"}
EXPLAINED = (
    "First the sources before the conversation (–), then its messages by number. × is hidden, ~ shortened, ! kept. "
    "/recall #N reads a text back word for word; there N is the position in the session."
)
YES_NO = {"n": "no", "y": "yes"}


async def browse(repl: Repl) -> None:
    """Shows the contents of the window as a list: the sources before the conversation, and its messages."""
    marked: int | None = None
    repl.say(EXPLAINED, "dim")
    while True:
        sources, listed = _sources(await repl.session.context()), repl.session.messages()
        if not sources and not listed:
            raise UsageError("The window is empty; ask something first.")
        rows: list[WindowSource | SessionMessage] = [*sources, *listed]
        keys = {"o": "omit", "k": "keep", "p": "pin"}
        choices = [row.choice if isinstance(row, WindowSource) else _choice(repl, row) for row in rows]
        start = len(rows) - 1 if marked is None else min(marked, len(rows) - 1)
        picked = await repl.terminal.pick("The window.", choices, keys, search=False, marked=start)
        if picked is None:
            return
        marked, row = picked.row, rows[picked.row]
        if isinstance(row, WindowSource):
            _source_key(repl, row, picked.key)
            continue
        match picked.key:
            case "o":
                await _omit(repl, row)
            case "k":
                await _keep(repl, row)
            case "p":
                await _pin(repl, row)
            case _:
                repl.show(repl.paper.line(f"{row.number}. {row.role}, recall #{row.at}", "bold"))
                repl.show(await repl.session.recall(f"#{row.at}") + "\n")


class WindowSource(Value, frozen=True):
    """A source before the conversation in every request: instructions, tools, entries, slots."""

    name: str
    text: str
    choice: Choice


def _sources(snapshot: Snapshot) -> list[WindowSource]:
    """The sources of the next request, in its order, with what each adds to a call while the cache is warm."""
    texts: dict[str, list[str]] = {}
    for section in snapshot.request.sections:
        texts.setdefault(section.name, []).append(section.content)
    texts["tools"] = [f"{tool.name}: {one_line(tool.description, 200)}" for tool in snapshot.request.tools]
    sources = []
    for row in snapshot.report.rows:
        if not texts.get(row.name):
            continue
        text = "\n".join(texts.pop(row.name))
        state = "cached" if row.cached >= row.tokens else "new"
        cost = snapshot.price(Usage(cache_read=row.tokens))
        each = f" · {money(cost)} each call while the cache is warm" if cost else ""
        shown = f"   –   {row.name:<9} {row.tokens:>7,}  {one_line(text, 300)}"
        preview = f"{row.tier} source · about {row.tokens:,} tokens · {state}{each} · in every request\n{text}"
        sources.append(WindowSource(row.name, text, Choice(shown, preview=preview)))
    return sources


def _source_key(repl: Repl, source: WindowSource, key: str) -> None:
    """Shows a source, or says that it is always kept, and how to remove it, which depends on its origin."""
    if not key:
        repl.show(repl.paper.line(source.name, "bold"))
        repl.show(visible(source.text).rstrip("\n") + "\n")
        return
    ids = ", ".join(entry.id for entry in repl.session.entries())
    out = {
        "entries": f"/forget ID removes an entry: {ids}." if ids else "/entries lists them.",
        "tools": "ra --no-tools leaves the tools out.",
        "system": "ra --system-prompt TEXT replaces it.",
    }
    words = f"{visible_line(source.name, 40)} is in every request already; no compaction touches it."
    other = "!ra --show-context says where it comes from."
    repl.say(f"{words} {out.get(source.name, other)}" if key == "o" else words, "dim")


async def omit(repl: Repl, argument: str) -> None:
    await _omit(repl, _message(repl, argument, "omit"))


async def keep(repl: Repl, argument: str) -> None:
    await _keep(repl, _message(repl, argument, "keep"))


def offers(repl: Repl, begun: str) -> list[Offer]:
    return [(f"#{message.number}", one_line(message.text, 50)) for message in repl.session.messages()]


async def _omit(repl: Repl, message: SessionMessage) -> None:
    change = repl.session.omit(message, preview=True)
    what = f"message {message.number} ({message.role}, about {message.tokens:,} tokens)"
    if await _agreed(repl, f"Omitting {what}", change):
        repl.session.omit(message)
        repl.status.shortened = change.after
        repl.say(f"Message {message.number} is hidden; /keep {message.number} brings it back.", "dim")


async def _keep(repl: Repl, message: SessionMessage) -> None:
    change = repl.session.keep(message, preview=True)
    if message.kept and change.before == change.after:
        repl.say(f"Message {message.number} is already kept.", "dim")
        return
    if await _agreed(repl, f"Keeping message {message.number}", change):
        repl.session.keep(message)
        repl.status.shortened = change.after
        repl.say(f"Message {message.number} stays in the window, also after compactions.", "dim")


async def _pin(repl: Repl, message: SessionMessage) -> None:
    pinned = {entry.id for entry in repl.session.entries()}
    name = next(f"pin-{n}" for n in range(1, len(pinned) + 2) if f"pin-{n}" not in pinned)
    snapshot = await repl.session.context()
    total = snapshot.report.total + message.tokens
    # An entry precedes the conversation: everything after it is written to the cache again, once.
    prices = [snapshot.price(usage) for usage in (Usage(cache_write=total), Usage(cache_read=message.tokens))]
    first, each = (money(price) for price in prices)
    cost = f" Input of the next call at most {first}, then {each} more each call." if all(prices) else ""
    repl.say(f"Pinning message {message.number}: about {message.tokens:,} tokens more in every request.{cost}")
    if await repl.terminal.choose("Do it?", YES_NO) != "y":
        return
    repl.session.pin(name, message.text)
    repl.say(f"Pinned as {name}: its text is in every request, for good. /forget {name} removes it.", "dim")


async def _agreed(repl: Repl, what: str, change: WindowChange) -> bool:
    """Shows the cost; asks only if there is something to decide."""
    repl.say(f"{what}: {priced(change)}")
    return change.before == change.after or await repl.terminal.choose("Do it?", YES_NO) == "y"


def priced(change: WindowChange) -> str:
    """`12,400 → 9,100 tokens. Next call $0.0340 instead of $0.0037 (the cache is written anew), then $0.0027.`"""
    sizes = f"{change.before:,} → {change.after:,} tokens."
    if not change.now or not float(change.now):
        return sizes
    first, now, later = money(change.first), money(change.now), money(change.later)
    return f"{sizes} Input of the next call {first} instead of {now} (the cache is written anew), then {later}."


def _messages(repl: Repl) -> list[SessionMessage]:
    listed = repl.session.messages()
    if not listed:
        raise UsageError("Nothing was said yet; ask something first.")
    return listed


def _message(repl: Repl, argument: str, command: str) -> SessionMessage:
    listed = _messages(repl)
    number = argument.removeprefix("#")
    match = next((message for message in listed if str(message.number) == number), None)
    if match is None:
        last = listed[-1].number
        raise UsageError(f"/{command} takes the number of a message, 1 to {last}; /context messages lists them.")
    return match


def _choice(repl: Repl, message: SessionMessage) -> Choice:
    state = "!" if message.kept and message.state == "shown" else STATES[message.state]
    line = one_line(message.text, 300) or "(no text)"
    age_text = age(repl.app.clock() - message.time)
    row = f"{message.number:>4} {state} {message.role:<9} {message.tokens:>7,}  {line}"
    preview = (
        f"{age_text} ago · about {message.tokens:,} tokens · {message.state} · recall #{message.at}\n{message.text}"
    )
    return Choice(row, preview=preview)


# --- going back ---


async def rewind(repl: Repl, argument: str) -> None:
    """Goes back to before one of the prompts: the conversation, the files, or both."""
    prompts = [message for message in repl.session.messages() if message.is_prompt]
    if not prompts:
        raise UsageError("Nothing was asked yet.")
    prompt = _chosen_prompt(argument, prompts) if argument else await _pick_prompt(repl, prompts)
    if prompt is None:
        return
    files = repl.session.changed_files(prompt)
    change = repl.session.rewind(prompt, preview=True)
    repl.say(f"Back to before “{visible_line(prompt.text, 60)}”: {change.before:,} → {change.after:,} tokens.")
    listed = ", ".join(visible_line(path, 60) for path in files[:5]) + (" …" if len(files) > 5 else "")
    repl.say(f"Files changed since: {listed}." if files else "The file tools changed no files since, in this process.")
    keys = {"n": "no", "c": "conversation"} | ({"f": "files", "b": "both"} if files else {})
    key = await repl.terminal.choose("Go back?", keys)
    if key in ("f", "b"):
        for line in repl.session.restore_files(prompt):
            repl.say(line, "dim")
    if key in ("c", "b"):
        repl.session.rewind(prompt)
        repl.status.shortened = change.after
        repl.unfinished = False
        repl.say("Rewound. /recall still reads what came after. Changes made by commands stay.", "dim")
        repl.terminal.offer(prompt.text)


def _chosen_prompt(argument: str, prompts: list[SessionMessage]) -> SessionMessage:
    """`/rewind 2` goes back two prompts; `/rewind #7` to message 7."""
    if argument.startswith("#"):
        match = next((prompt for prompt in prompts if f"#{prompt.number}" == argument), None)
        if match is None:
            numbers = ", ".join(f"#{prompt.number}" for prompt in prompts[-8:])
            raise UsageError(f"{visible_line(argument, 20)} is not one of your prompts; those are {numbers}.")
        return match
    if not argument.isdecimal() or not 1 <= int(argument) <= len(prompts):
        raise UsageError(f"/rewind takes how many prompts to go back, 1 to {len(prompts)}, or #N.")
    return prompts[-int(argument)]


async def _pick_prompt(repl: Repl, prompts: list[SessionMessage]) -> SessionMessage | None:
    now = repl.app.clock()
    choices = [
        Choice(
            f"#{prompt.number:<4} {age(now - prompt.time):>6} ago  {one_line(prompt.text, 300)}", preview=prompt.text
        )
        for prompt in prompts
    ]
    picked = await repl.terminal.pick("Go back to before which prompt?", choices, {}, marked=len(choices) - 1)
    return prompts[picked.row] if picked is not None else None
