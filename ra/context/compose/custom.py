"""Runs a strategy file's `async def on_context_build(ctx)`, and makes the ctx that it gets."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from ra.context.compose.slots import Rendered, Slots
from ra.context.tokens import Estimator
from ra.context.trim import groups
from ra.core.errors import HookFailed, RaError, UsageError
from ra.core.facts import Entry
from ra.core.messages import Message, plain_message
from ra.core.model import Section


class PromptBudget:
    """What the prompt of this run may have. Ratios of slots are of this."""

    def __init__(self, remaining_input_tokens: int) -> None:
        self.remaining_input_tokens = remaining_input_tokens


class History:
    """The conversation before the current input, oldest first."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = tuple(messages)

    def all(self) -> list[Message]:
        return list(self._messages)

    def recent(self, count: int) -> list[Message]:
        """The newest messages, at most `count`; a call is never parted from its results, so that it may be fewer.

        The newest group is there whole even if it alone has more messages. Raises UsageError.
        """
        _check_count(count)
        newest: list[tuple[Message, ...]] = []
        room = count
        for group in reversed(groups(self._messages)):
            if count == 0 or (newest and len(group) > room):
                break
            newest.append(group)
            room -= len(group)
        return [message for group in reversed(newest) for message in group]


class StrategyContext:
    """The `ctx` of a strategy file: slots to fill, and what to fill them with."""

    def __init__(
        self,
        *,
        input: Message,
        history: Sequence[Message],
        remaining_input_tokens: int,
        estimator: Estimator,
        entries: Sequence[Entry] = (),
        session: str = "",
        model: str = "",
    ) -> None:
        self.input = input
        self.history = History(history)
        self.budget = PromptBudget(remaining_input_tokens)
        self.slots = Slots(remaining_input_tokens, estimator, prompt=input)
        self.entries = tuple(entries)
        self.session = session
        self.model = model


OnContextBuild = Callable[[StrategyContext], object | Awaitable[object]]


async def build(function: OnContextBuild, ctx: StrategyContext) -> Rendered | None:
    """What the strategy made: the prompt, or None when it leaves it to the default.

    Raises UsageError for a wrong call or answer, and HookFailed when the strategy itself fails.
    """
    try:
        result = function(ctx)
        if inspect.isawaitable(result):
            result = await result
    except RaError:
        raise
    except Exception as error:
        raise HookFailed(f"on_context_build raised {type(error).__name__}: {error}") from error
    match result:
        case None | Rendered():
            return result
        case _:
            return Rendered(_messages(result))


def _messages(result: object) -> tuple[Message, ...]:
    try:
        if isinstance(result, list | tuple):
            return tuple(message if isinstance(message, Message) else plain_message(message) for message in result)
        reason = ""
    except TypeError as error:
        reason = f" ({error})"
    raise UsageError(
        f"on_context_build returned a {type(result).__name__}; return ctx.slots.render(), a list of messages, "
        f"or None for the default{reason}."
    )


def _check_count(count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise UsageError(f"history.recent: count is {count!r}; use 0 or a positive integer.")


def system_part(messages: Sequence[Message]) -> tuple[tuple[Section, ...], tuple[Message, ...]]:
    """System messages that open a prompt are its system part; the others stay where they are."""
    sections: list[Section] = []
    for message in messages:
        if message.role != "system":
            break
        sections.append(Section(message.name or "system", "stable", message.text))
    return tuple(sections), tuple(messages[len(sections) :])
