"""What is shown or hidden as one? A unit: a message, or an assistant's message with the results of all its calls."""

from typing import Literal

import msgspec

from ra.core.messages import Message
from ra.core.model import Section

Place = tuple[int, int]
"""A position of the timeline, and the number of a block in it: a fact may hold many messages."""


class Item(msgspec.Struct, frozen=True):
    """A message, and the place of its first block."""

    place: Place
    message: Message


class Unit(msgspec.Struct, frozen=True):
    """A group of the conversation, or one piece of context among it. Never split."""

    kind: Literal["said", "notice", "entry", "marker", "handover"]
    item: Item
    results: tuple[Item | None, ...] = ()  # one for each call, None while it is missing
    section: Section | None = None  # of a notice
    id: str = ""  # of an entry

    @property
    def place(self) -> Place:
        return self.item.place

    @property
    def at(self) -> int:
        return self.item.place[0]

    @property
    def items(self) -> tuple[Item, ...]:
        """Its messages as they were recorded."""
        return (self.item, *(item for item in self.results if item))

    @property
    def last_at(self) -> int:
        return max(item.place[0] for item in self.items)

    @property
    def is_prompt(self) -> bool:
        """Did the user say it? A message with a name is context."""
        return self.kind == "said" and self.item.message.role == "user" and not self.item.message.name

    @property
    def open(self) -> bool:
        return None in self.results
