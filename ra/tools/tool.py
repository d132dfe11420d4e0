"""Defines a tool: a name and a description for the model, typed arguments, and a function that runs."""

import types
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from ra.core.events import FileChange
from ra.core.facts import Fact
from ra.core.messages import Content, Text
from ra.core.model import ToolSpec
from ra.core.redaction import redacted
from ra.core.text import clean
from ra.core.value import JsonObject, Value

Say = Callable[[str], None]
"""How a tool shows output while it is running."""


class Mistake(Exception):
    """A mistake of the model: the call gets an error result with this text, which says how to correct it."""

    def __init__(self, text: str) -> None:
        super().__init__(redacted(text))  # an MCP server may echo the keys that it was sent


class Output(Value, frozen=True):
    """The output of a call: blocks for the model, facts for the timeline, and the change of a file for the user."""

    content: tuple[Content, ...]
    is_error: bool = False
    facts: tuple[Fact, ...] = ()
    change: FileChange | None = None


_BLANK: tuple[object, ...] = ("", 0, [], {})

RunTool = Callable[[Any, Say], Awaitable[str | Output]]


class Tool(msgspec.Struct, frozen=True):
    """`args` is the struct that arguments are read into; without it they are passed on unchanged.

    `reads_only` calls may run concurrently. With `own_timeout`, the tool ends its calls itself. A tool that is not
    `listed` can be called, but requests do not mention it. `passes_on` returns the call of another tool that the
    arguments stand for, if any: that call is checked and run. A `free` tool touches nothing that a rule has to guard.
    A tool that `polls` may be called repeatedly with the same arguments: it reports what happened since.
    """

    spec: ToolSpec
    run: RunTool
    args: type[msgspec.Struct] | None = None
    reads_only: bool = False
    own_timeout: bool = False
    listed: bool = True
    passes_on: Callable[[JsonObject], tuple[str, JsonObject] | None] | None = None
    free: bool = False
    polls: bool = False

    @property
    def name(self) -> str:
        return self.spec.name

    def told_like(self, other: "Tool") -> bool:
        """Whether a model that knows this tool can call the other: it has the same name and the same arguments."""
        return self.listed == other.listed and self.name == other.name and self.spec.schema == other.spec.schema


def declare(
    args: type[msgspec.Struct],
    run: RunTool,
    *,
    name: str,
    description: str,
    reads_only: bool = False,
    own_timeout: bool = False,
    free: bool = False,
    polls: bool = False,
) -> Tool:
    spec = ToolSpec(name, description, schema_of(args))
    return Tool(spec, run, args, reads_only, own_timeout, free=free, polls=polls)


def text_output(
    text: str, *, is_error: bool = False, facts: tuple[Fact, ...] = (), change: FileChange | None = None
) -> Output:
    """Text for the model. Only lone surrogates, which JSON cannot represent, are replaced."""
    return Output((Text(clean(text)),), is_error, facts, change)


def read_args(tool: Tool, args: JsonObject) -> tuple[Any, str]:
    """The arguments as the tool's struct, and a note on unknown ones. Raises Mistake."""
    if tool.args is None:
        return args, ""
    field_names = tool.args.__struct_encode_fields__
    unknown = sorted(set(args) - set(field_names))
    arguments = {name: value for name, value in args.items() if name in field_names and value is not None}
    # Models that fill in every argument write 0 or "" for one that they mean to omit.
    required = tool.spec.schema.get("required", ())
    filled = {name: value for name, value in arguments.items() if name in required or value not in _BLANK}
    try:
        value = _converted(arguments, filled, tool.args)
    except (msgspec.ValidationError, UnicodeError) as error:
        ignored = f" (unknown: {', '.join(unknown)})" if unknown else ""
        raise Mistake(f"Wrong arguments for {tool.name}: {error}{ignored}. {usage(tool.spec)}") from error
    return value, f"(Ignored unknown arguments: {', '.join(unknown)}.)" if unknown else ""


def _converted(given: JsonObject, filled: JsonObject, struct: type[msgspec.Struct]) -> msgspec.Struct:
    """The arguments as a struct, leniently: models write "10" for 10. Raises msgspec.ValidationError, UnicodeError."""
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError:
        if filled == given:
            raise
        return msgspec.convert(filled, struct, strict=False)


def usage(spec: ToolSpec) -> str:
    """One sentence that lists a tool's arguments."""
    properties: JsonObject = spec.schema.get("properties", {})
    required = spec.schema.get("required", [])
    parts = [
        f"{name} ({schema.get('type', 'any')}{', required' if name in required else ''})"
        for name, schema in properties.items()
    ]
    return f"{spec.name} takes {', '.join(parts)}." if parts else f"{spec.name} takes no arguments."


_SIMPLE: dict[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(struct: type[msgspec.Struct]) -> JsonObject:
    """A small JSON schema that describes a struct to a model: types, descriptions, required fields."""
    hints = get_type_hints(struct, include_extras=True)
    # Not with msgspec.json.schema, whose $defs, titles and defaults cost tokens and do not help a model.
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    optional = len(struct.__struct_fields__) - len(struct.__struct_defaults__)
    required = [
        names[field]
        for place, field in enumerate(struct.__struct_fields__)
        if place < optional or struct.__struct_defaults__[place - optional] is msgspec.NODEFAULT
    ]
    schema: JsonObject = {"type": "object", "properties": {names[f]: _of(hints[f]) for f in struct.__struct_fields__}}
    return {**schema, "required": required} if required else schema


def _of(hint: Any) -> JsonObject:
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if strange := [meta for meta in inner[1:] if not isinstance(meta, msgspec.Meta | str)]:
            raise TypeError(f"{strange[0]!r} would not hold; use msgspec.Meta")
        words = [meta if isinstance(meta, str) else meta.description for meta in inner[1:]]
        description = next(filter(None, words), None)
        return {**_of(inner[0]), **({"description": description} if description else {})}
    if origin is Literal:
        return (
            {"type": "string", "enum": list(inner)} if all(isinstance(v, str) for v in inner) else {"enum": list(inner)}
        )
    if origin in (Union, types.UnionType):
        # An optional argument needs no null: omitting it means null.
        options = [_of(option) for option in inner if option not in (type(None), msgspec.UnsetType)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin in (list, tuple, set, frozenset) or hint in (list, tuple, set, frozenset):
        items = [option for option in inner if option is not Ellipsis]
        return {"type": "array", **({"items": _of(items[0])} if items else {})}
    if origin is dict or hint is dict:
        for part in inner:
            _of(part)  # raises TypeError for types that JSON cannot represent
        return {"type": "object"}
    if is_typeddict(hint):
        fields = {name: _of(part) for name, part in get_type_hints(hint).items()}
        return {"type": "object", "properties": fields, "required": sorted(hint.__required_keys__)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return schema_of(hint)
    raise TypeError(f"no JSON schema for {hint!r}; use str, int, float, bool, list, dict, Literal or a Struct")
