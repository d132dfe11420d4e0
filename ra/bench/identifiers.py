"""Which names does a text hold, and are they still in front of the model when it uses them again?"""

from collections import Counter
from collections.abc import Sequence

from ra.context.compaction.names import identifiers, spoken, strings
from ra.core.messages import Message


def asked(message: Message) -> frozenset[str]:
    """The identifiers in the arguments of its tool calls."""
    return identifiers("\n".join(text for call in message.calls for text in strings(call.args)))


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
            known = self._known[id(message)] = (message, spoken(message))
        return known[1]
