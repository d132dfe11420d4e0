"""Turns a function of the user's program into a tool: the model reads its type hints and its docstring."""

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ra.core.errors import ConfigError
from ra.core.messages import Document, Image, Text
from ra.core.model import ToolSpec
from ra.core.value import JsonObject, Value
from ra.tools.tool import Mistake, Output, Say, Tool, schema_of, text_output, usage

TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_BLOCKS = (Text, Image, Document)


class _Parameter(Value, frozen=True):
    """A parameter for the model. One that may be None can be omitted, and is None then."""

    name: str
    hint: Any
    is_required: bool
    is_nullable: bool


class _Function:
    """The description of a function, which may be a method, a `functools.partial` or an object with `__call__`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.call = function
        inner = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        is_object = not (inspect.isroutine(inner) or isinstance(inner, type))
        # The hints are on an object's `__call__`, and on a partial's function.
        self._written: Any = type(inner).__call__ if is_object else inner
        self.name: str = type(inner).__name__ if is_object else getattr(inner, "__name__", "")
        self.where = f"Custom tool {self.name!r}"
        text = inspect.getdoc(self._written) or (is_object and inspect.getdoc(type(inner))) or ""
        self.words, self._notes = _docstring(text)

    def parameters(self) -> list[_Parameter]:
        """The parameters that the model fills in. Raises ConfigError."""
        try:
            hints = get_type_hints(self._written, include_extras=True)
        except (NameError, TypeError) as error:
            raise ConfigError(f"{self.where}: its type hints cannot be read: {error}.") from error
        bound = self.call.keywords if isinstance(self.call, functools.partial) else {}
        parameters = [part for part in inspect.signature(self.call).parameters.values() if part.name not in bound]
        return [self._parameter(parameter, hints) for parameter in parameters]

    async def run(self, arguments: JsonObject) -> Output:
        """Calls the function. Raises Mistake for any exception in it: the model sees the error, and the run goes on."""

        def call() -> Any:
            try:
                return self.call(**arguments)
            except (StopIteration, SystemExit) as error:  # a thread cannot pass on the first; the second would end ra
                raise RuntimeError(f"{type(error).__name__}: {error}") from error

        try:
            if inspect.iscoroutinefunction(self._written):
                answer = await self.call(**arguments)
            else:
                answer = await asyncio.to_thread(call)
                answer = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            raise Mistake(f"{self.name} failed: {type(error).__name__}: {error}") from error
        return _output(answer)

    def _parameter(self, parameter: inspect.Parameter, hints: dict[str, Any]) -> _Parameter:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"{self.where}: {parameter} cannot be described to a model; name each parameter.")
        if parameter.name not in hints:
            raise ConfigError(
                f"{self.where}: parameter {parameter.name!r} needs a type hint, such as {parameter.name}: str."
            )
        hint = hints[parameter.name]
        is_required = parameter.default is parameter.empty
        is_nullable = is_required and _may_be_none(hint)
        if note := self._notes.get(parameter.name):
            hint = Annotated[hint, Meta(description=note)]
        return _Parameter(parameter.name, hint, is_required and not is_nullable, is_nullable)


def function_tool(function: Callable[..., Any]) -> Tool:
    """A tool from a function with type hints and a docstring. Raises ConfigError with what is missing."""
    described = _Function(function)
    if not TOOL_NAME.fullmatch(described.name):
        raise ConfigError(f"{described.where}: a tool is a function with a name of letters, digits and _.")
    if not described.words:
        raise ConfigError(f"{described.where} needs a docstring: the model reads it to know when to use the tool.")
    parameters = described.parameters()
    try:
        return _plain_tool(described, parameters)
    except TypeError as error:  # start-up time: only such types load pydantic
        return _pydantic_tool(described, parameters, error)


def _plain_tool(function: _Function, parameters: Sequence[_Parameter]) -> Tool:
    """A tool whose arguments msgspec reads. Raises TypeError for other types."""
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.is_required:
            fields.append((parameter.name, parameter.hint))
        else:
            left_out = None if parameter.is_nullable else UNSET
            fields.append((parameter.name, parameter.hint | UnsetType, left_out))
    args = msgspec.defstruct("Args", fields, kw_only=True)
    spec = ToolSpec(function.name, function.words, schema_of(args))
    msgspec.json.Decoder(args)  # refuses types that JSON cannot represent

    async def run(given: msgspec.Struct, say: Say) -> Output:
        values = {field: getattr(given, field) for field in args.__struct_fields__}
        return await function.run({name: value for name, value in values.items() if value is not UNSET})

    return Tool(spec, run, args)


def _pydantic_tool(function: _Function, parameters: Sequence[_Parameter], unknown: TypeError) -> Tool:
    """A tool whose arguments pydantic reads: models, dataclasses, enums, dates, and limits such as `Field(ge=1)`."""
    from pydantic import Field, ValidationError
    from typing_extensions import TypedDict  # before Python 3.12, pydantic refuses the one in typing

    from ra.tools import pydantic_types

    fields = {part.name: _for_pydantic(part.hint, Field) for part in parameters}
    optional = {part.name for part in parameters if not part.is_required}
    make: Any = TypedDict  # the type is created at run time, beyond any type checker
    args = make("Args", {name: NotRequired[hint] if name in optional else hint for name, hint in fields.items()})
    try:
        reader, schema = pydantic_types.adapter(args)
    except TypeError as error:
        raise ConfigError(f"{function.where}: {unknown}. pydantic says: {error}.") from error
    spec = ToolSpec(function.name, function.words, schema)
    nothing = {part.name: None for part in parameters if part.is_nullable}

    async def run(given: JsonObject, say: Say) -> Output:
        stated = {name: value for name, value in given.items() if value is not None or name not in optional}
        try:
            arguments = reader.validate_python(stated)
        except ValidationError as error:
            why = pydantic_types.why(error)
            raise Mistake(f"Wrong arguments for {function.name}: {why}. {usage(spec)}") from error
        return await function.run({**nothing, **arguments})

    return Tool(spec, run)


def _for_pydantic(hint: Any, field: Any) -> Any:
    """The hint with its description as a pydantic `Field`."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *metas = get_args(hint)
    words = [meta if isinstance(meta, str) else getattr(meta, "description", None) for meta in metas]
    rest = tuple(meta for meta in metas if not isinstance(meta, str | Meta))
    described = field(description=next(filter(None, reversed(words)), None))
    return Annotated[(inner, *rest, described)]


def _may_be_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _may_be_none(get_args(hint)[0])
    return hint is None or type(None) in get_args(hint)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The text before the parameters, and the description of each parameter: `name: text` or `name (type): text`."""
    head = re.split(r"\n\s*(?:Args|Arguments|Parameters|Returns|Raises)\s*:?\s*\n", text)[0]
    notes = re.finditer(r"^[ \t]*(?::param )?(\w+)(?: \([^)]*\))?: (.+)$", text, re.MULTILINE)
    lines = [line for line in head.splitlines() if not re.match(r"\s*:(param|return)", line)]
    return " ".join(" ".join(lines).split()), {match[1]: match[2].strip() for match in notes}


def _output(value: Any) -> Output:
    """A function's return value for the model: text, images and documents unchanged, anything else as JSON."""
    if isinstance(value, Output):
        return value
    if value is None:
        return text_output("Done.")
    if isinstance(value, str):
        return text_output(value)
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(part, _BLOCKS) for part in parts) and all(isinstance(part, (str, *_BLOCKS)) for part in parts):
        return Output(tuple(Text(part) if isinstance(part, str) else part for part in parts))
    try:
        return text_output(msgspec.json.encode(value, enc_hook=_plain).decode())
    except (TypeError, ValueError):
        return text_output(str(value))


def _plain(value: Any) -> Any:
    """A pydantic model as plain data. Raises TypeError for anything else."""
    if (dump := getattr(value, "model_dump", None)) is None:
        raise TypeError(f"{type(value).__name__} is not JSON")
    return dump(mode="json")
