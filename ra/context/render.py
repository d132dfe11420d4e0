"""Renders the facts of a timeline as the messages that the model sees."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from ra.context.tokens import Estimator
from ra.core.facts import Entry
from ra.core.messages import Block, Content, Document, Image, Message, Text, Thinking, ToolCall, ToolResult, result, say
from ra.core.model import Section
from ra.core.text import quoted
from ra.core.value import encode

LONGEST_CHARACTER = 4  # bytes; a token is at least one
SHOWN = 10_000  # tokens of one tool result that the model sees
TERSE = 60  # below this many tokens, a marker is only a reference

ENTRIES = "entries"  # the name of the section with live entries
COMPACTED = "compacted"  # the name of a gap's marker
HANDOVER = "handover"  # the name of the message that opens a new segment

_ENTRY_TAG = re.compile(r"<(?=\s*/?\s*entr(?:y|ies)\b)", re.IGNORECASE)
_SUMMARY_TAG = re.compile(r"<(?=\s*/?\s*compacted-context\b)", re.IGNORECASE)


def text_of(message: Message) -> str:
    """All text of a message, tool results included."""
    parts = (
        part for block in message.blocks for part in (block.content if isinstance(block, ToolResult) else (block,))
    )
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def missing(call: ToolCall) -> Message:
    """The stand-in for a result that was never recorded: providers refuse a call without a result."""
    return result(call, "interrupted; it may or may not have run", is_error=True)


def notice(section: Section) -> Message:
    return say(section.role, section.content, name=section.name)


def entry(live: Entry) -> str:
    """An entry in its tags, escaped so that its text cannot close them or open others."""
    attributes = {"id": live.id, "name": live.name, **{f"data-{key}": live.attrs[key] for key in sorted(live.attrs)}}
    attributes_text = "".join(f' {_attribute(key)}="{quoted(value)}"' for key, value in attributes.items() if value)
    return f"<entry{attributes_text}>\n{_ENTRY_TAG.sub('&lt;', live.content)}\n</entry>"


def entries(live: Iterable[Entry]) -> Section | None:
    """The section of the pinned tier with the entries, oldest first."""
    rows = "\n".join(entry(item) for item in sorted(live, key=lambda item: item.inserted_at))
    return Section(ENTRIES, "pinned", f"<entries>\n{rows}\n</entries>") if rows else None


def standing(live: Entry) -> Message:
    """A new entry as a message, at the place where it entered the conversation."""
    return say("user", entry(live), name=ENTRIES)


def summarized(prompt: Message, summary: str) -> Message:
    """The first prompt word for word, followed by the summary of hidden messages."""
    if not summary:
        return prompt
    return msgspec.structs.replace(prompt, blocks=(*prompt.blocks, Text(under_prompt(summary))))


def under_prompt(summary: str) -> str:
    return f"<compacted-context>\n{_SUMMARY_TAG.sub('&lt;', summary)}\n</compacted-context>"


def is_small(message: Message) -> bool:
    """Whether no tool result can exceed the limit, judged by the length of the text, without counting tokens."""
    for block in message.blocks:
        if isinstance(block, ToolResult):
            length = 0
            for part in block.content:
                if not isinstance(part, Text):
                    return False
                length += len(part.text)
            if length * LONGEST_CHARACTER > SHOWN:
                return False
    return True


def clipped(message: Message, ref: str, keep: Sequence[int | None], estimator: Estimator) -> Message:
    """The message with each block shortened to the tokens that `keep` allows it; a message that fits is unchanged."""
    blocks = tuple(
        block if allowed is None else clip(block, ref, allowed, estimator)
        for block, allowed in zip(message.blocks, keep, strict=True)
    )
    if all(shown is old for shown, old in zip(blocks, message.blocks, strict=True)):
        return message
    return msgspec.structs.replace(message, blocks=tuple(block for block in blocks if block is not None))


def clip(block: Block, ref: str, keep: int, estimator: Estimator) -> Block | None:
    """Both ends of a block in at most `keep` tokens, with a reference to the rest between them; nothing for 0."""
    match block:
        case Text() | Image() | Document():
            return _content(block, ref, keep, estimator) if keep else None
        case ToolResult():
            content = _contents(block.content, ref, keep, estimator)
            return block if content is block.content else msgspec.structs.replace(block, content=content)
        case ToolCall():
            return _call(block, ref, keep, estimator)
        case Thinking():
            # The signature covers the whole text: a shortened block would be refused, a missing one is not.
            return block if size(block, estimator) <= keep else None


def size(block: Block, estimator: Estimator) -> int:
    """The tokens of a block that `clip` can remove, without the structure around them."""
    match block:
        case Text():
            return estimator.text(block.text)
        case Thinking():
            return estimator.thinking(block)
        case ToolResult():
            return sum(size(part, estimator) for part in block.content)
        case ToolCall():
            return estimator.text(block.broken or encode(block.args).decode())
        case Image() | Document():
            return estimator.message(Message("user", (block,)))


def _contents(content: tuple[Content, ...], ref: str, keep: int, estimator: Estimator) -> tuple[Content, ...]:
    if sum(_most(part, estimator) for part in content) <= keep:
        return content
    sizes = [size(part, estimator) for part in content]
    if sum(sizes) <= keep:
        return content
    share = level(sizes, keep)
    return tuple(
        part if tokens <= share else _content(part, ref, share, estimator)
        for part, tokens in zip(content, sizes, strict=True)
    )


def _content(part: Content, ref: str, keep: int, estimator: Estimator) -> Content:
    match part:
        case Text():
            text = estimator.clip(part.text, keep, marker=_marker(ref, keep, f"{len(part.text)} characters in all"))
            return part if text is part.text else Text(text)
        case Image() | Document() if size(part, estimator) > keep:
            return Text(_marker(ref, keep, f"a file of {part.media_type}").strip())
        case _:
            return part


def _call(call: ToolCall, ref: str, keep: int, estimator: Estimator) -> ToolCall:
    """A call with its long arguments shortened. It has already run, so they are only read."""
    if call.broken:
        return msgspec.structs.replace(call, broken=estimator.clip(call.broken, keep))
    share = keep
    while share > 0:
        marker = _marker(ref, share, "shortened argument")
        args = {key: _shortened(value, share, marker, estimator) for key, value in call.args.items()}
        tokens = estimator.text(encode(args).decode())
        if tokens <= keep:
            return call if args == call.args else msgspec.structs.replace(call, args=args)
        share = share * keep // (tokens + 1)
    # It is not the strings that are long. As a string itself what is left grows again: each quote becomes two signs.
    arguments, share = encode(call.args).decode(), keep
    while share > 0:
        args = {"shortened": estimator.clip(arguments, share, marker=_marker(ref, share, "shortened arguments"))}
        tokens = estimator.text(encode(args).decode())
        if tokens <= keep:
            return msgspec.structs.replace(call, args=args)
        share = share * keep // (tokens + 1)
    return msgspec.structs.replace(call, args={})


def _shortened(value: object, keep: int, marker: str, estimator: Estimator) -> object:
    match value:
        case str():
            return estimator.clip(value, keep, marker=marker)
        case list():
            return [_shortened(item, keep, marker, estimator) for item in value]
        case dict():
            return {key: _shortened(item, keep, marker, estimator) for key, item in value.items()}
        case _:
            return value


def level(sizes: Iterable[int], room: int) -> int:
    """The highest limit at which items of these sizes, each cut to it, fit into `room`: the largest are cut first."""
    remaining, mark = max(0, room), 0
    ordered = sorted(sizes)
    for index, tokens in enumerate(ordered):
        mark = remaining // (len(ordered) - index)
        if tokens > mark:
            return mark
        remaining -= tokens
    return max(ordered, default=0)


def _marker(ref: str, keep: int, what: str) -> str:
    return f'\n[… {what}; recall("{ref}") reads the rest …]\n' if keep >= TERSE else f"[… {ref} …]"


def _most(part: Content, estimator: Estimator) -> int:
    """No less than its tokens, without counting: a token is at least a byte."""
    if not isinstance(part, Text):
        return size(part, estimator)
    return len(part.text) if part.text.isascii() else 4 * len(part.text)


def _attribute(key: str) -> str:
    return re.sub(r"[^\w.-]", "_", key)
