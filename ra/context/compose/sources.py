"""Composes named sources within a token budget. They are checked at registration and read once per run."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard, get_args

import msgspec

from ra.context.fit import Claim, FitRow, allot, fair
from ra.context.items import TimestampedMessage
from ra.context.settings import ContextSettings, SourceSettings
from ra.context.tokens import Estimator, Where
from ra.context.trim import ByGroup, ByText, Trimmed, groups
from ra.core.errors import ConfigError, RaError, UsageError, UserError
from ra.core.messages import Message, Role, plain_message, say
from ra.core.model import TIERS, Section, Tier
from ra.core.text import clean
from ra.core.value import Value

Content = str | Sequence[Message | TimestampedMessage | Mapping[str, Any]]
Keep = Literal["head", "tail", "middle"]
SourceRole = Literal["system", "user", "assistant"]

_ENDS: dict[Keep, Where] = {"head": "head", "tail": "tail", "middle": "both"}
_STEP = 0.05  # limits follow the model's factor in steps, so that learning it seldom moves a cut that is cached


class Source(msgspec.Struct, frozen=True):
    """Named content with limits.

    `content` is text, or a sync or async function that returns text, messages, or messages with times. `max` is in
    the model's tokens. Text that exceeds it keeps its head, its tail or both ends, as `trim` says; message lists keep
    the newest. `role` applies to text.
    """

    content: str | Callable[[], Content | Awaitable[Content]]
    max: float | None = None
    cache: Tier = "volatile"
    role: SourceRole | None = None
    trim: Keep = "head"
    priority: int = 0
    position: int | None = None


class Composition(Value, frozen=True):
    """What the model sees of the sources: the system part, then messages.

    `kept` maps references to what was cut, so that it can be stored and recalled.
    """

    sections: tuple[Section, ...]
    messages: tuple[Message, ...]
    kept: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    rows: tuple[FitRow, ...] = ()


class LoadedSource(msgspec.Struct, frozen=True):
    """A source whose content has been read."""

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
    """Refuse an impossible composition, in one sentence with the key, the value and the legal values."""
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
            raise error(f"{source_key}.{name}: max is missing; only volatile sources may leave it out.")
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
    """A number as the user wrote it: settings store all numbers of tokens as floats."""
    return f"{value:.10g}" if isinstance(value, float) else repr(value)


class Contents(Protocol):
    """Returns functions that read the content of a source in ra.yaml."""

    def file(self, path: str) -> Content: ...

    async def command(self, command: str) -> Content: ...

    def python(self, place: str) -> Callable[[], Content | Awaitable[Content]]:
        """The function `file.py:name`, looked up at once."""
        ...

    def timeline(self) -> Content: ...


def check_settings(settings: ContextSettings) -> None:
    """Refuse an impossible composition when the configuration is loaded. Raises ConfigError."""
    from_settings(settings, None)


def from_settings(settings: ContextSettings, contents: Contents | None) -> dict[str, Source]:
    """The sources of `agent.context`, checked. Without `contents` they are only checked."""
    if settings.source_budget is None:
        if settings.sources:
            raise ConfigError("agent.context.sources needs agent.context.sourceBudget: the tokens that they share.")
        return {}
    sources = {
        name: Source(
            _content(name, source, contents),
            source.max,
            source.cache,
            source.role,
            source.trim,
            source.priority,
            source.position,
        )
        for name, source in settings.sources.items()
    }
    check(
        settings.source_budget,
        sources,
        error=ConfigError,
        budget_key="agent.context.sourceBudget",
        source_key="agent.context.sources",
    )
    return sources


def _content(
    name: str, settings: SourceSettings, contents: Contents | None
) -> str | Callable[[], Content | Awaitable[Content]]:
    named = {
        "file": settings.file,
        "command": settings.command,
        "text": settings.text,
        "python": settings.python,
        "timeline": "" if settings.timeline else None,
    }
    kinds = [(kind, value) for kind, value in named.items() if value is not None]
    if len(kinds) != 1:
        listed = ", ".join(kind for kind, _ in kinds) or "none"
        raise ConfigError(
            f"agent.context.sources.{name} has {listed}; set exactly one of file, command, text, timeline, python."
        )
    kind, value = kinds[0]
    if kind == "text" or contents is None:
        return value
    match kind:
        case "file":
            return partial(contents.file, value)
        case "command":
            return partial(contents.command, value)
        case "python":
            return contents.python(value)
        case _:
            return contents.timeline


# --- composition ---


async def compose(
    source_budget: float, sources: Mapping[str, Source], estimator: Estimator, *, prompt: Message | None = None
) -> Composition:
    """Load every source once, cut each to its share, and put them in order. `prompt` is the current input.

    Sources are ordered by tier, then position (unset: the source's number in its tier), then declaration. Text above
    the volatile tier becomes the system part, as long as no messages come before it.
    """
    check(source_budget, sources)
    ordered = _in_order(sources)
    loaded = await asyncio.gather(*(_load(name, source, estimator) for name, source in ordered))
    limits = _limits(loaded, source_budget, estimator.factor, prompt)
    cuts = [one.trim.take(limit) for one, limit in zip(loaded, limits, strict=True)]

    sections: list[Section] = []
    messages: list[Message] = []
    volatile: list[_Volatile] = []
    for one, cut in zip(loaded, cuts, strict=True):
        if one.source.cache == "volatile":
            volatile += _timed(one, cut, prompt)
        elif isinstance(one.trim, ByText) and not messages and one.source.role in (None, "system"):
            most = None if one.source.max is None else int(one.source.max)
            sections += [
                Section(one.name, one.source.cache, message.text, max=most, cut=cut.cut) for message in cut.messages
            ]
        else:
            messages += cut.messages
    # The sort is stable and the times of one source never fall, so that no source is reordered. What has no time
    # changes with each prompt: it stands behind the conversation, which stays a cached prefix, and the input is last.
    volatile.sort(key=lambda group: (group.is_input, group.at))
    messages += [message for group in volatile for message in group.messages]
    return Composition(
        tuple(sections),
        tuple(messages),
        {ref: text for cut in cuts for ref, text in cut.kept.items()},
        (*(one.warning for one in loaded if one.warning), *_input_warning(loaded, cuts, prompt)),
        tuple(_row(one, cut, estimator) for one, cut in zip(loaded, cuts, strict=True)),
    )


def _in_order(sources: Mapping[str, Source]) -> list[tuple[str, Source]]:
    ordered: list[tuple[str, Source]] = []
    for tier in TIERS:
        members = [(name, source) for name, source in sources.items() if source.cache == tier]
        places = [number if source.position is None else source.position for number, (_, source) in enumerate(members)]
        ordered += [members[index] for index in sorted(range(len(members)), key=lambda index: places[index])]
    return ordered


async def _load(name: str, source: Source, estimator: Estimator) -> LoadedSource:
    warning = ""
    try:
        content: Any = source.content if isinstance(source.content, str) else source.content()
        if inspect.isawaitable(content):
            content = await content
        timed = () if isinstance(content, str) else _timestamped(content)
    except Exception as error:  # noqa: BLE001 - a source is foreign code, and its failure must not end the run
        # The error may contain a time or an address, but what the model sees must be the same in every run.
        content, timed = f"[The source {name} could not be read.]", ()
        reason = str(error) if isinstance(error, RaError) else f"{type(error).__name__}: {error}"
        warning = f"Source {name!r} could not be read: {reason}"
    if isinstance(content, str):
        text = clean(content)
        role: Role = source.role or "system"
        messages: tuple[Message, ...] = (say(role, text, name=name),) if text else ()
        by_text = ByText(messages, estimator, where=_ENDS[source.trim])
        return LoadedSource(name, source, messages, (None,) * len(messages), by_text, warning)
    messages = tuple(item.message for item in timed)
    times = tuple(item.at for item in timed)
    by_group = ByGroup(messages, estimator, name=name, at_least_one=True, turns=True)
    return LoadedSource(name, source, messages, times, by_group)


def _timestamped(content: object) -> tuple[TimestampedMessage, ...]:
    """The content as messages, each with its time if it has one. Accepts {role, content} objects. Raises TypeError."""
    if not isinstance(content, list | tuple):
        raise TypeError(f"it returned a {type(content).__name__}; return a string or a list of messages")
    timed = []
    for item in content:
        match item:
            case TimestampedMessage():
                timed.append(item)
            case Message():
                timed.append(TimestampedMessage(item))
            case {"message": message, "at": int() | float() as at}:
                timed.append(TimestampedMessage(_as_it_is(message), at))
            case {"at": int() | float() as at} | {"timestamp": int() | float() as at}:
                timed.append(TimestampedMessage(plain_message(item), at))
            case _:
                timed.append(TimestampedMessage(plain_message(item)))
    return tuple(timed)


def _as_it_is(message: object) -> Message:
    return message if isinstance(message, Message) else plain_message(message)


def _limits(loaded: Sequence[LoadedSource], budget: float, factor: float, prompt: Message | None) -> list[int]:
    """Each source's limit in o200k_base tokens: its max. Volatile sources share what the others leave, fairly."""
    step = math.ceil(round(factor / _STEP, 6)) * _STEP

    def plain(tokens: float) -> int:
        return int(round(tokens / step, 6))

    limits = [source.trim.size if source.source.max is None else plain(source.source.max) for source in loaded]
    shared = [index for index, source in enumerate(loaded) if source.source.cache == "volatile"]
    used = sum(source.trim.fit(limits[index]) for index, source in enumerate(loaded) if index not in shared)
    available = max(0, plain(budget) - used)
    minimums = _shares([loaded[index] for index in shared], [limits[index] for index in shared], available, prompt)
    parts = [
        Claim(loaded[index].trim.size, loaded[index].trim.fit, limits[index], minimum, loaded[index].source.priority)
        for index, minimum in zip(shared, minimums, strict=True)
    ]
    for index, limit in zip(shared, allot(parts, available).limits, strict=True):
        limits[index] = limit
    return limits


def _shares(loaded: Sequence[LoadedSource], caps: Sequence[int], budget: int, prompt: Message | None) -> list[int]:
    """Fair shares. The current input, and what came after it, takes precedence over the shares."""
    needs = [min(source.trim.size, cap) for source, cap in zip(loaded, caps, strict=True)]
    shares = fair(needs, budget)
    for index, source in enumerate(loaded):
        start = next((at for at, message in enumerate(source.messages) if message is prompt), None)
        if start is not None and isinstance(source.trim, ByGroup):
            need = min(needs[index], budget, source.trim.needed(start))
            if need > shares[index]:
                remaining = fair([*needs[:index], *needs[index + 1 :]], budget - need)
                shares = [*remaining[:index], need, *remaining[index:]]
    return shares


class _Volatile(NamedTuple):
    """A group of messages that stay together. `at` is infinite if the source has no times."""

    at: float
    messages: Sequence[Message]
    is_input: bool


def _timed(one: LoadedSource, left: Trimmed, prompt: Message | None) -> list[_Volatile]:
    """Groups with their times: without one, a group stands where the one before it stands, the first ones with the
    first that has one."""
    latest = next((at for at in one.times if at is not None), math.inf)
    timed: list[_Volatile] = []
    place = iter(left.indexes)
    for group in groups(left.messages):
        first, *_ = [next(place) for _ in group]
        at = one.times[first] if first < len(one.times) else None
        latest = latest if at is None else max(latest, at)
        # The input may have been shortened; it is recognised all the same.
        is_input = first < len(one.messages) and one.messages[first] is prompt
        timed.append(_Volatile(latest, group, is_input))
    return timed


def _input_warning(loaded: Sequence[LoadedSource], cuts: Sequence[Trimmed], prompt: Message | None) -> list[str]:
    return [
        f"The current input was cut in source {source.name!r}: {cut.cut}."
        for source, cut in zip(loaded, cuts, strict=True)
        if any(message is prompt for message in source.messages)
        and not any(message is prompt for message in cut.messages)
    ]


def _row(one: LoadedSource, left: Trimmed, estimator: Estimator) -> FitRow:
    size = estimator.scaled(one.trim.size)
    role = one.messages[0].role if one.messages else one.source.role or "system"
    return FitRow(
        one.name,
        role,
        estimator.scaled(left.tokens),
        size,
        size if one.source.max is None else int(one.source.max),
        priority=one.source.priority,
        tier=one.source.cache,
        cut=left.cut,
    )
