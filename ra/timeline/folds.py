"""Pure folds over events: repairs, live entries, spend, title and model of a session."""

from collections.abc import Iterable
from decimal import Decimal

from ra.core.facts import Configured, Edited, Entry, EntryRemoved, EntrySet, Fact, Said, Spent, TimelineEvent, Titled
from ra.core.messages import Message, ToolCall, ToolResult, result
from ra.core.model import Usage
from ra.core.text import one_line
from ra.core.value import Value

INTERRUPTED = "interrupted; it may or may not have run"
TITLE = 60  # characters


class Repairs:
    """Finds the facts to record on resume, so that every tool call has exactly one result and nothing runs twice.

    Calls in a stream that broke off do not count: they were not sent back and did not run.
    """

    def __init__(self) -> None:
        self._open: list[ToolCall] = []

    def apply(self, event: TimelineEvent) -> None:
        match event.fact:
            case Said(message):
                self._answer(message)
            case Edited(messages=messages) | Configured(base=tuple() as messages):
                self._open.clear()
                for message in messages:
                    self._answer(message)
            case _:
                pass

    def facts(self) -> tuple[Fact, ...]:
        return tuple(Said(result(call, INTERRUPTED, is_error=True)) for call in self._open)

    def _answer(self, message: Message) -> None:
        # Ids may repeat in a later turn: a result belongs to the oldest unanswered call with its id.
        for block in message.blocks:
            if isinstance(block, ToolResult):
                for number, call in enumerate(self._open):
                    if call.id == block.call_id:
                        del self._open[number]
                        break
            elif isinstance(block, ToolCall):
                self._open.append(block)


def repair(events: Iterable[TimelineEvent]) -> tuple[Fact, ...]:
    """The repairs of a whole session."""
    repairs = Repairs()
    for event in events:
        repairs.apply(event)
    return repairs.facts()


def entries(events: Iterable[TimelineEvent]) -> dict[str, Entry]:
    """The live entries, in the order of their positions."""
    live: dict[str, Entry] = {}
    for event in events:
        match event.fact:
            case EntrySet() as fact:
                live.pop(fact.id, None)  # a replacement moves to its new position
                live[fact.id] = Entry(fact.id, fact.name, fact.content, event.at, fact.attrs)
            case EntryRemoved(id):
                live.pop(id, None)
            case _:
                pass
    return live


class SpendTotal(Value, frozen=True):
    """What was spent. `priced` counts the calls with a known price; `dollars` is their sum."""

    calls: int = 0
    priced: int = 0
    usage: Usage = Usage()
    dollars: Decimal = Decimal(0)


def spend(events: Iterable[TimelineEvent]) -> SpendTotal:
    """The sum of all bills; `costs.ledger` divides them."""
    calls, priced, usage, dollars = 0, 0, Usage(), Decimal(0)
    for event in events:
        if isinstance(bill := event.fact, Spent):
            calls, priced, usage = calls + 1, priced + bool(bill.dollars), usage + bill.usage
            dollars += Decimal(bill.dollars or 0)
    return SpendTotal(calls, priced, usage, dollars)


def title(events: Iterable[TimelineEvent]) -> str:
    """The title that the user gave, else the first line of the first prompt, shortened."""
    first = ""
    for event in events:
        match event.fact:
            case Titled(title):
                return one_line(title, TITLE)
            case Said(message) if not first and _is_prompt(message) and message.text.strip():
                first = one_line(message.text.strip().splitlines()[0], TITLE)
            case _:
                pass
    return first


def model(events: Iterable[TimelineEvent]) -> str:
    """The model of the latest answer."""
    last = ""
    for event in events:
        match event.fact:
            case Spent(purpose="turn") | Configured():
                last = event.fact.model
            case _:
                pass
    return last


def _is_prompt(message: Message) -> bool:
    # A message with a name is context, not conversation.
    return message.role == "user" and not message.name
