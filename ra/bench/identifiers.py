"""Which names does a text hold, and are they still in front of the model when it uses them again?"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ra.context.compaction.names import identifiers, strings
from ra.core.messages import Message, Text, ToolCall, ToolResult


def said(message: Message) -> frozenset[str]:
    """All identifiers of a message as the model reads it. Thinking is left out: providers drop it from later turns."""
    return identifiers("\n".join(_texts(message)))


def asked(message: Message) -> frozenset[str]:
    """The identifiers in the arguments of its tool calls."""
    return identifiers("\n".join(text for call in message.calls for text in strings(call.args)))


def _texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        match block:
            case Text(text):
                yield text
            case ToolCall():
                yield block.name
                yield from strings(block.args)
                yield block.broken
            case ToolResult(content=content):
                yield from (part.text for part in content if isinstance(part, Text))
            case _:
                pass


class Sight:
    """What the model sees, as a bag of identifiers that follows the conversation from request to request."""

    def __init__(self, known: dict[int, tuple[Message, frozenset[str]]]) -> None:
        self._known = known  # shared by all replays of a trace; holds the messages, so that no id is used twice
        self._messages: Sequence[Message] = ()
        self._bag: Counter[str] = Counter()

    def look(self, messages: Sequence[Message]) -> None:
        """These messages are in front of the model now."""
        same = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new:
                break
            same += 1
        for message in self._messages[same:]:
            self._bag.subtract(self._of(message))
        for message in messages[same:]:
            self._bag.update(self._of(message))
        self._messages = messages

    def sees(self, names: frozenset[str]) -> int:
        """How many of the names are visible."""
        return sum(self._bag[name] > 0 for name in names)

    def _of(self, message: Message) -> frozenset[str]:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, said(message))
        return known[1]
