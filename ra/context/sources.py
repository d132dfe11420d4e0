"""How do named sources share a token budget? Checked when they are registered, composed once per run."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeGuard, get_args

import msgspec

from ra.context.fit import Part, Row, allot, fair
from ra.context.settings import ContextSettings, SourceSettings
from ra.context.timed import TimestampedMessage
from ra.context.tokens import Estimator, Where
from ra.context.trim import ByGroup, ByText, Trimmed, groups
from ra.core.errors import ConfigError, RaError, UsageError, UserError
from ra.core.messages import Message, Role, say
from ra.core.model import TIERS, Section, Tier
from ra.core.text import clean
from ra.core.value import Value

Content = str | Sequence[Message | TimestampedMessage]
Keep = Literal["head", "tail", "middle"]
SourceRole = Literal["system", "user", "assistant"]

_ENDS: dict[Keep, Where] = {"head": "head", "tail": "tail", "middle": "both"}
_STEP = 0.05  # limits follow the model's factor in steps, so that learning it seldom moves a cut that is cached


class Source(msgspec.Struct, frozen=True):
    """Named content with limits.

    `content` is text, or a function, sync or async, that returns text, messages, or messages with their times.
    `max` is in the model's tokens. Of text that exceeds it `trim` is kept: its head, its tail, or both ends without
    the middle; of messages the newest. `role` is that of text.
    """

    content: str | Callable[[], Content | Awaitable[Content]]
    max: float | None = None
    cache: Tier = "volatile"
    role: SourceRole | None = None
    trim: Keep = "head"
    priority: int = 0
    position: int | None = None


class Composition(Value, frozen=True):
    """What the sources put in front of the model: the system part, then messages.

    `kept` holds what was cut, by its reference, so that it can be stored and recalled.
    """

    sections: tuple[Section, ...]
    messages: tuple[Message, ...]
    kept: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


class Loaded(msgspec.Struct, frozen=True):
    """A source with its content in hand."""

    name: str
    source: Source
    messages: tuple[Message, ...]
    times: tuple[float | None, ...]
    trim: ByText | ByGroup
    warning: str = ""


# --- registration ---


def check(
    source_budget: object,
    sources: object,
    *,
    error: type[UserError] = UsageError,
    budget_key: str = "use_context: source_budget",
    source_key: str = "use_context: sources",
) -> None:
    """Refuse what cannot be composed, in one sentence with the key, the value and what is legal."""
    if not _is_amount(source_budget):
        raise error(f"{budget_key} is {_told(source_budget)}; use a positive, finite number of tokens.")
    if not isinstance(sources, Mapping) or not sources:
        raise error(f"{source_key} is {sources!r}; name at least one source.")
    for name, source in sources.items():
        if not isinstance(source, Source):
            raise error(f"{source_key}.{name} is a {type(source).__name__}; use Source(content, max=…, cache=…).")
    for name, source in sources.items():
        if source.cache not in TIERS:
            raise error(f"{source_key}.{name}: cache is {source.cache!r}; use {', '.join(TIERS)}.")
    for name, source in sources.items():
        if source.max is not None and not _is_amount(source.max):
            raise error(f"{source_key}.{name}: max is {_told(source.max)}; use a positive, finite number of tokens.")
    for name, source in sources.items():
        if source.max is None and source.cache != "volatile":
            raise error(f"{source_key}.{name}: max is missing; only a volatile source needs none.")
    reserved = sum(source.max or 0 for source in sources.values() if source.cache != "volatile")
    if reserved > source_budget:
        raise error(
            f"{budget_key} is {source_budget:.10g}, but the sources that are not volatile may use {reserved:.10g}; "
            "lower their max or raise it."
        )
    for name, source in sources.items():
        _check_rest(f"{source_key}.{name}", source, error)


def _check_rest(key: str, source: Source, error: type[UserError]) -> None:
    if not isinstance(source.content, str) and not callable(source.content):
        raise error(f"{key}: content is a {type(source.content).__name__}; use a string or a function.")
    for option, value, legal in (
        ("role", source.role, (None, *get_args(SourceRole))),
        ("trim", source.trim, get_args(Keep)),
    ):
        if value not in legal:
            raise error(f"{key}: {option} is {value!r}; use {', '.join(filter(None, legal))}.")
    for option, number in (("priority", source.priority), ("position", source.position or 0)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise error(f"{key}: {option} is {number!r}; use an integer.")


def _is_amount(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _told(value: object) -> str:
    """A number as it was written: settings hold every number of tokens as a float."""
    return f"{value:.10g}" if isinstance(value, float) else repr(value)


def from_settings(
    settings: ContextSettings,
    *,
    read: Callable[[str], Content | Awaitable[Content]],
    run: Callable[[str], Content | Awaitable[Content]],
    load: Callable[[str], Callable[[], Content | Awaitable[Content]]],
    timeline: Callable[[], Content | Awaitable[Content]],
) -> dict[str, Source]:
    """The sources of `agent.context`, checked; none when it names none.

    `read` gives the content of a file, `run` that of a command, `load` finds a Python function, and `timeline` gives
    the conversation. Each is called when the content is wanted, except `load`.
    """

    def content(name: str, one: SourceSettings) -> str | Callable[[], Content | Awaitable[Content]]:
        named = {"file": one.file, "command": one.command, "text": one.text, "python": one.python}
        kinds = {kind: value for kind, value in named.items() if value is not None}
        if one.timeline:
            kinds["timeline"] = ""
        match list(kinds.items()):
            case [("file", path)]:
                return partial(read, path)
            case [("command", command)]:
                return partial(run, command)
            case [("text", text)]:
                return text
            case [("python", place)]:
                return load(place)
            case [("timeline", _)]:
                return timeline
            case _:
                found = ", ".join(kinds) or "none"
                raise ConfigError(
                    f"agent.context.sources.{name} has {found}; "
                    "set exactly one of file, command, text, timeline, python."
                )

    if settings.source_budget is None:
        if settings.sources:
            raise ConfigError("agent.context.sources needs agent.context.sourceBudget: the tokens that they share.")
        return {}
    sources = {
        name: Source(content(name, one), one.max, one.cache, one.role, one.trim, one.priority, one.position)
        for name, one in settings.sources.items()
    }
    check(
        settings.source_budget,
        sources,
        error=ConfigError,
        budget_key="agent.context.sourceBudget",
        source_key="agent.context.sources",
    )
    return sources


# --- composition ---


async def compose(
    source_budget: float, sources: Mapping[str, Source], estimator: Estimator, *, prompt: Message | None = None
) -> Composition:
    """Load every source once, cut each to its share, and put them in order. `prompt` is the current input.

    Sources stand by tier, then position (unset: the number of the source in its tier), then declaration. Text above
    the volatile tier is the system part, as long as no messages stand before it.
    """
    check(source_budget, sources)
    ordered = _in_order(sources)
    loaded = await asyncio.gather(*(_load(name, source, estimator) for name, source in ordered))
    limits = _limits(loaded, source_budget, estimator.factor, prompt)
    taken = [one.trim.take(limit) for one, limit in zip(loaded, limits, strict=True)]

    sections: list[Section] = []
    messages: list[Message] = []
    volatile: list[tuple[float, Sequence[Message]]] = []
    for one, left in zip(loaded, taken, strict=True):
        if one.source.cache == "volatile":
            volatile += _timed(one, left)
        elif isinstance(one.trim, ByText) and not messages and one.source.role in (None, "system"):
            most = None if one.source.max is None else int(one.source.max)
            sections += [
                Section(one.name, one.source.cache, message.text, max=most, cut=left.cut) for message in left.messages
            ]
        else:
            messages += left.messages
    # The sort is stable and the times of one source never fall, so that no source is reordered.
    messages += [message for _, group in sorted(volatile, key=lambda item: item[0]) for message in group]
    return Composition(
        tuple(sections),
        tuple(messages),
        {ref: text for left in taken for ref, text in left.kept.items()},
        (*(one.warning for one in loaded if one.warning), *_input_warning(loaded, taken, prompt)),
        tuple(_row(one, left, estimator) for one, left in zip(loaded, taken, strict=True)),
    )


def _in_order(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    ordered: list[tuple[str, Source]] = []
    for tier in TIERS:
        own = [(name, source) for name, source in sources.items() if source.cache == tier]
        places = [number if source.position is None else source.position for number, (_, source) in enumerate(own)]
        ordered += [own[index] for index in sorted(range(len(own)), key=lambda index: places[index])]
    return ordered


async def _load(name: str, source: Source, estimator: Estimator) -> Loaded:
    warning = ""
    try:
        content: Any = source.content if isinstance(source.content, str) else source.content()
        if inspect.isawaitable(content):
            content = await content
        _check_content(content)
    except Exception as error:  # noqa: BLE001 - a source is foreign code, and its failure must not end the run
        # The error may hold a time or an address, and what the model sees has to be the same in every run.
        content = f"[The source {name} could not be read.]"
        said = str(error) if isinstance(error, RaError) else f"{type(error).__name__}: {error}"
        warning = f"Source {name!r} could not be read: {said}"
    if isinstance(content, str):
        text = clean(content)
        role: Role = source.role or "system"
        messages: tuple[Message, ...] = (say(role, text, name=name),) if text else ()
        by_text = ByText(messages, estimator, where=_ENDS[source.trim])
        return Loaded(name, source, messages, (None,) * len(messages), by_text, warning)
    messages = tuple(item.message if isinstance(item, TimestampedMessage) else item for item in content)
    times = tuple(item.at if isinstance(item, TimestampedMessage) else None for item in content)
    by_group = ByGroup(messages, estimator, name=name, at_least_one=True)
    return Loaded(name, source, messages, times, by_group)


def _check_content(content: object) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        raise TypeError(f"it returned a {type(content).__name__}; return a string or a list of messages")
    for item in content:
        if not isinstance(item, Message | TimestampedMessage):
            raise TypeError(f"it returned a list that holds a {type(item).__name__}; use Message or TimestampedMessage")


def _limits(loaded: Sequence[Loaded], budget: float, factor: float, prompt: Message | None) -> list[int]:
    """The room of each source, in o200k_base: its max; the volatile ones share what the others leave, evenly first."""
    step = math.ceil(round(factor / _STEP, 6)) * _STEP

    def plain(tokens: float) -> int:
        return int(round(tokens / step, 6))

    limits = [one.trim.size if one.source.max is None else plain(one.source.max) for one in loaded]
    shared = [index for index, one in enumerate(loaded) if one.source.cache == "volatile"]
    used = sum(one.trim.fit(limits[index]) for index, one in enumerate(loaded) if index not in shared)
    left = max(0, plain(budget) - used)
    minimums = _shares([loaded[index] for index in shared], [limits[index] for index in shared], left, prompt)
    parts = [
        Part(loaded[index].trim.size, loaded[index].trim.fit, limits[index], minimum, loaded[index].source.priority)
        for index, minimum in zip(shared, minimums, strict=True)
    ]
    for index, limit in zip(shared, allot(parts, left).limits, strict=True):
        limits[index] = limit
    return limits


def _shares(loaded: Sequence[Loaded], caps: Sequence[int], budget: int, prompt: Message | None) -> list[int]:
    """Fair shares; but the current input, and what came after it, goes before everybody's share."""
    wanted = [min(one.trim.size, cap) for one, cap in zip(loaded, caps, strict=True)]
    shares = fair(wanted, budget)
    for index, one in enumerate(loaded):
        start = next((at for at, message in enumerate(one.messages) if message is prompt), None)
        if start is not None and isinstance(one.trim, ByGroup):
            need = min(wanted[index], budget, one.trim.needed(start))
            if need > shares[index]:
                others = fair([*wanted[:index], *wanted[index + 1 :]], budget - need)
                shares = [*others[:index], need, *others[index:]]
    return shares


def _timed(one: Loaded, left: Trimmed) -> list[tuple[float, Sequence[Message]]]:
    """Groups with their times: without one, a group stands where the one before it stands, the first ones first."""
    latest = -math.inf
    timed: list[tuple[float, Sequence[Message]]] = []
    place = iter(left.indexes)
    for group in groups(left.messages):
        first, *_ = [next(place) for _ in group]
        at = one.times[first] if first < len(one.times) else None
        latest = latest if at is None else max(latest, at)
        timed.append((latest, group))
    return timed


def _input_warning(loaded: Sequence[Loaded], taken: Sequence[Trimmed], prompt: Message | None) -> list[str]:
    return [
        f"The current input was cut in source {one.name!r}: {left.cut}."
        for one, left in zip(loaded, taken, strict=True)
        if any(message is prompt for message in one.messages)
        and not any(message is prompt for message in left.messages)
    ]


def _row(one: Loaded, left: Trimmed, estimator: Estimator) -> Row:
    size = estimator.scaled(one.trim.size)
    role = one.messages[0].role if one.messages else one.source.role or "system"
    return Row(
        one.name,
        role,
        estimator.scaled(left.tokens),
        size,
        size if one.source.max is None else int(one.source.max),
        priority=one.source.priority,
        tier=one.source.cache,
        cut=left.cut,
    )
