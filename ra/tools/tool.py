"""What is a tool? A name and words for the model, typed arguments, and a function that runs."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ra.core.facts import Fact
from ra.core.messages import Content, Text
from ra.core.model import ToolSpec
from ra.core.text import clean
from ra.core.value import JsonObject, Value
from ra.tools.schema import schema_of

Say = Callable[[str], None]
"""How a tool shows output while it still runs."""


class Mistake(Exception):
    """The model's mistake: the call gets an error result with this text, which says what would be right."""


class Output(Value, frozen=True):
    """What a run gave: blocks for the model, and facts for the timeline."""

    content: tuple[Content, ...]
    is_error: bool = False
    facts: tuple[Fact, ...] = ()


Run = Callable[[Any, Say], Awaitable[str | Output]]


class Tool(msgspec.Struct, frozen=True):
    """`args` is the struct that arguments are read into; without one they are handed on as they came.

    `reads_only` calls may run side by side. `own_timeout` says that the tool ends its calls itself. A tool that is not
    `listed` can be called, but requests do not tell of it. `passes_on` says which call the arguments really make, if
    it is one of another tool: that is what is judged and run. A `free` tool touches nothing that a rule would have to
    guard.
    """

    spec: ToolSpec
    run: Run
    args: type[msgspec.Struct] | None = None
    reads_only: bool = False
    own_timeout: bool = False
    listed: bool = True
    passes_on: Callable[[JsonObject], tuple[str, JsonObject] | None] | None = None
    free: bool = False

    @property
    def name(self) -> str:
        return self.spec.name


def declare(
    args: type[msgspec.Struct],
    run: Run,
    *,
    name: str,
    description: str,
    reads_only: bool = False,
    own_timeout: bool = False,
    free: bool = False,
) -> Tool:
    return Tool(ToolSpec(name, description, schema_of(args)), run, args, reads_only, own_timeout, free=free)


def text_output(text: str, *, is_error: bool = False, facts: tuple[Fact, ...] = ()) -> Output:
    """Text for the model. Only what JSON cannot carry (lone surrogates) is replaced."""
    return Output((Text(clean(text)),), is_error, facts)


def read_args(tool: Tool, args: JsonObject) -> tuple[Any, str]:
    """The arguments as the tool's struct, and a word about those that it does not know."""
    if tool.args is None:
        return args, ""
    known = tool.args.__struct_encode_fields__
    unknown = sorted(set(args) - set(known))
    try:
        # Not strict: models write "10" for 10, and null for an argument that they leave out.
        value = msgspec.convert(
            {k: v for k, v in args.items() if k in known and v is not None}, tool.args, strict=False
        )
    except (msgspec.ValidationError, UnicodeError) as error:
        ignored = f" (unknown: {', '.join(unknown)})" if unknown else ""
        raise Mistake(f"Wrong arguments for {tool.name}: {error}{ignored}. {usage(tool.spec)}") from error
    return value, f"(Ignored unknown arguments: {', '.join(unknown)}.)" if unknown else ""


def usage(spec: ToolSpec) -> str:
    """One sentence on what a tool takes."""
    properties: JsonObject = spec.schema.get("properties", {})
    required = spec.schema.get("required", [])
    parts = [
        f"{name} ({schema.get('type', 'any')}{', required' if name in required else ''})"
        for name, schema in properties.items()
    ]
    return f"{spec.name} takes {', '.join(parts)}." if parts else f"{spec.name} takes no arguments."
