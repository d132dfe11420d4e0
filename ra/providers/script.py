"""Defines the script of a scripted model: steps from Python, or from a YAML or JSON file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ra.core.errors import UserError
from ra.core.model import Stop, Usage
from ra.core.value import JsonObject, Value

MAX_BYTES = 16 * 1024 * 1024
MAX_VALUES = 100_000  # in one step; with YAML aliases, a few bytes can expand to billions

_SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Call(Value, frozen=True, forbid_unknown_fields=True):
    """A tool call. `raw` is sent literally as its arguments, well formed or not."""

    name: str
    args: JsonObject = {}
    id: str = ""
    raw: str | None = None


class Fault(Value, frozen=True, forbid_unknown_fields=True):
    """A fault of an answer.

    `status`: an HTTP error instead of an answer. `cut`: the connection ends after `after_bytes` of the body.
    `stall`: silence of `seconds` after `after_bytes`. `garbage`: bytes that are not an event. `error`: an error event
    inside the stream, of the kind that corresponds to `status`.
    """

    kind: Literal["status", "cut", "stall", "garbage", "error"]
    status: int = 529
    retry_after: str = ""  # seconds or a date, as in the header
    retry_after_ms: str = ""
    message: str = ""
    after_bytes: int | None = None  # None: in the middle of the body
    seconds: float = 3600.0


class Step(Value, frozen=True, forbid_unknown_fields=True):
    """One answer. Omitted values (usage, stop, ids) get plausible defaults."""

    text: str = ""
    thinking: str = ""
    signature: str = ""  # of the thinking
    redacted: str = ""  # encrypted thinking that the provider hides
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    stop: Stop | None = None
    delay_s: float = 0.0  # before the first event
    pace_s: float = 0.0  # between events
    fault: Fault | None = None

    @property
    def ends(self) -> Stop:
        return self.stop or ("tools" if self.calls else "end")


R = TypeVar("R")


class Script(Generic[R]):
    """Steps, served one after the other, or chosen by a function of the request.

    `by="turn"` chooses by the number of answers in the request: a run that is repeated or resumed in another process
    then continues at the right step.
    """

    def __init__(
        self,
        steps: Iterable[Step] | Callable[[R], Step],
        *,
        by: Literal["arrival", "turn"] = "arrival",
        origin: str = "the script",
    ) -> None:
        self._choose = steps if callable(steps) else None
        self._steps: Sequence[Step] = () if callable(steps) else tuple(steps)
        self._by = by
        self._origin = origin
        self._next = 0

    def step(self, request: R, *, turn: int) -> Step:
        """The step that answers this request, the same until `done` is called. `turn` counts the earlier answers."""
        if self._choose:
            return self._choose(request)
        at = turn if self._by == "turn" else self._next
        if at >= len(self._steps):
            raise UserError(
                f"{self._origin} has {len(self._steps)} steps, and a model call asked for number {at + 1}; add a step."
            )
        return self._steps[at]

    def done(self) -> None:
        self._next += 1


def load(path: Path | str) -> "Script[Any]":
    """Loads a script from a file: a list of steps, or `{by: turn, steps: [...]}`. Raises UserError."""
    file = Path(path)
    value = _read(file)
    by: Any = "arrival"
    if isinstance(value, dict):
        if unknown := sorted(set(value) - {"by", "steps"}):
            raise UserError(f"{file}: unknown key {unknown[0]!r}; a script has steps, and by (arrival or turn).")
        by = value.get("by", by)
        value = value.get("steps")
    if by not in ("arrival", "turn"):
        raise UserError(f"{file}: by is {by!r}; use arrival or turn.")
    if not isinstance(value, list):
        raise UserError(f"{file}: a script is a list of steps, such as `- text: Hello`.")
    return Script([_step(file, i, item) for i, item in enumerate(value, start=1)], by=by, origin=str(file))


def _step(file: Path, number: int, item: Any) -> Step:
    if isinstance(item, str):
        return Step(text=item)
    try:
        return msgspec.convert(_snake(item, iter(range(MAX_VALUES))), Step)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        place = f", {where.rstrip('`').lstrip('.')}" if where.strip("`") else ""
        fields = ", ".join(Step.__struct_fields__)
        raise UserError(f"{file}: step {number}{place}: {message}. A step has {fields}.") from error
    except (StopIteration, RecursionError) as error:
        raise UserError(f"{file}: step {number} holds more than {MAX_VALUES} values, or itself.") from error


def _snake(value: Any, left: Iterator[int], *, rename: bool = True) -> Any:
    """The value with keys in snake_case, except in a tool's arguments. Raises StopIteration for too many values."""
    next(left)
    if isinstance(value, list):
        return [_snake(item, left, rename=rename) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, item in value.items():
        name = _SNAKE.sub("_", key).lower() if rename and isinstance(key, str) else key
        renamed[name] = _snake(item, left, rename=rename and name != "args")
    return renamed


def _read(file: Path) -> Any:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: the script cannot be read: {error.strerror}.") from error
    if len(raw) > MAX_BYTES:
        raise UserError(f"{file}: a script has at most {MAX_BYTES // 1024 // 1024} MiB.")
    if file.suffix == ".json":
        try:
            return msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UserError(f"{file}: not JSON: {error}.") from error
    import yaml  # start-up time: only for scripts

    try:
        return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UserError(f"{file}{place}: not valid YAML: {getattr(error, 'problem', None) or error}.") from error
