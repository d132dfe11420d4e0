import asyncio
import enum
import functools
import os
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from msgspec import Meta
from pydantic import BaseModel, Field

from ra.core.errors import ConfigError
from ra.core.messages import Image, Text
from ra.tools.functions import function_tool
from ra.tools.scripts import script_tool
from ra.tools.tool import Tool
from tests.tools.kit import Kit

PNG = b"\x89PNG\r\n\x1a\n"


def weather(city: str, days: int = 3, unit: Literal["c", "f"] = "c") -> str:
    """Say what the weather will be.

    Args:
        city: Name of the city
        days (int): How many days
    """
    return f"{city} {days} {unit}"


def test_a_function_becomes_a_tool(tmp_path: Path) -> None:
    tool = function_tool(weather)
    assert (tool.name, tool.spec.description) == ("weather", "Say what the weather will be.")
    assert tool.spec.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": "integer", "description": "How many days"},
            "unit": {"type": "string", "enum": ["c", "f"]},
        },
        "required": ["city"],
    }
    kit = Kit(tmp_path, custom=[tool])
    assert kit.text("weather", city="Bern") == "Bern 3 c"
    assert kit.text("weather", city="Bern", days=1, unit="f") == "Bern 1 f"
    assert "weather takes city (string, required)" in kit.error("weather", days=1)
    assert "Invalid enum value" in kit.error("weather", city="Bern", unit="k")


def test_async_functions_and_other_values(tmp_path: Path) -> None:
    async def numbers(many: Annotated[list[int], Meta(description="Some")]) -> dict[str, int]:
        """Add numbers."""
        await asyncio.sleep(0)
        return {"sum": sum(many)}

    def quiet() -> None:
        """Do nothing."""

    def fails() -> str:
        """Fail."""
        raise RuntimeError("no luck")

    kit = Kit(tmp_path, custom=[function_tool(numbers), function_tool(quiet), function_tool(fails)])
    assert kit.text("numbers", many=[1, 2]) == '{"sum":3}'
    assert kit.text("quiet") == "Done."
    assert kit.error("fails") == "fails failed: RuntimeError: no luck"


def undocumented(x: str) -> str:
    return x


def unhinted(x):
    """Words."""


def many(*args: str) -> None:
    """Words."""


def strange(x: Path.__class__) -> None:
    """Words."""


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Item:
    name: str
    many: Annotated[int, Field(ge=1)] = 1


class Box(BaseModel):
    items: list[Item]
    title: str = Field("a box", description="What stands on it")


class Spot(TypedDict):
    x: int
    y: NotRequired[int]


def test_arguments_of_every_type_that_pydantic_reads(tmp_path: Path) -> None:
    def pack(box: Annotated[Box, "what to pack"], mood: Mood, due: date | None, price: Decimal = Decimal(1)) -> str:
        """Pack a box.

        mood: how it went
        """
        return f"{box.items} {mood} {due} {price}"

    tool = function_tool(pack)
    assert tool.spec.schema == {
        "type": "object",
        "properties": {
            "box": {"$ref": "#/$defs/Box", "description": "what to pack"},
            "mood": {"$ref": "#/$defs/Mood", "description": "how it went"},
            "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "price": tool.spec.schema["properties"]["price"],
        },
        "required": ["box", "mood"],
        "$defs": {
            "Box": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                    "title": {"type": "string", "default": "a box", "description": "What stands on it"},
                },
                "required": ["items"],
            },
            "Item": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "many": {"type": "integer", "default": 1, "minimum": 1},
                },
                "required": ["name"],
            },
            "Mood": {"type": "string", "enum": ["good", "bad"]},
        },
    }
    kit = Kit(tmp_path, custom=[tool])
    box = {"items": [{"name": "pen"}]}
    assert kit.text("pack", box=box, mood="bad") == "[Item(name='pen', many=1)] Mood.BAD None 1"
    assert kit.text("pack", box=box, mood="good", due="2026-01-02", price=None).endswith("Mood.GOOD 2026-01-02 1")
    wrong = kit.error("pack", box={"items": [{"name": "pen", "many": 0}]}, mood="so")
    assert (
        "box.items.0.many: Input should be greater than or equal to 1; mood: Input should be 'good' or 'bad'" in wrong
    )
    assert "https" not in wrong


def test_what_may_be_none_need_not_be_given(tmp_path: Path) -> None:
    def find(name: str | None, spot: Spot) -> str:
        """Find somebody."""
        return f"{name} {spot}"

    tool = function_tool(find)
    spot = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]}
    assert tool.spec.schema == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "spot": spot},
        "required": ["spot"],
    }
    kit = Kit(tmp_path, custom=[tool])
    assert kit.text("find", spot={"x": 1}) == "None {'x': 1}"
    assert kit.text("find", name=None, spot={"x": 1, "y": 2}) == "None {'x': 1, 'y': 2}"


def test_methods_partials_and_objects_bring_what_a_tool_needs_besides(tmp_path: Path) -> None:
    class Shop:
        """Sells."""

        def __init__(self) -> None:
            self.stock = 5

        async def sell(self, many: int) -> int:
            """Sell some."""
            self.stock -= many
            return self.stock

        def __call__(self, many: int) -> int:
            self.stock += many
            return self.stock

    def lookup(table: dict[str, str], key: str, *, deep: bool = False) -> str:
        """Look a key up."""
        return f"{table[key]} {deep}"

    shop = Shop()
    tools = [shop.sell, shop, functools.partial(lookup, {"a": "b"}, deep=True)]
    kit = Kit(tmp_path, custom=[function_tool(tool) for tool in tools])
    assert (kit.text("sell", many=2), kit.text("Shop", many=4), kit.text("lookup", key="a")) == ("3", "7", "b True")
    assert function_tool(tools[2]).spec.schema["properties"] == {"key": {"type": "string"}}
    assert function_tool(shop).spec.description == "Sells."


def test_whatever_a_function_returns_is_shown_to_the_model(tmp_path: Path) -> None:
    picture = Image("image/png", PNG)

    def look() -> Image:
        """Take a picture."""
        return picture

    def tour() -> list[str | Image]:
        """Take pictures."""
        return ["first", picture]

    def boxes() -> dict[str, Box]:
        """Count boxes."""
        return {"one": Box(items=[Item("pen")])}

    async def later() -> str:
        return "later"

    def soon() -> Any:
        """Return a coroutine."""
        return later()

    kit = Kit(tmp_path, custom=[function_tool(tool) for tool in (look, tour, boxes, soon)])
    assert kit.done("look").result.content == (picture,)
    assert kit.done("tour").result.content == (Text("first"), picture)
    assert kit.text("boxes") == '{"one":{"items":[{"name":"pen","many":1}],"title":"a box"}}'
    assert kit.text("soon") == "later"


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3)])
def test_what_no_thread_can_raise_is_an_error_result_too(tmp_path: Path, error: BaseException) -> None:
    def stops() -> str:
        """Stop."""
        raise error

    assert f"{type(error).__name__}: {error}" in Kit(tmp_path, custom=[function_tool(stops)]).error("stops")


def test_two_tools_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two tools are named weather; rename one"):
        Kit(tmp_path, custom=[function_tool(weather), function_tool(weather)])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (undocumented, "needs a docstring"),
        (unhinted, "parameter 'x' needs a type hint, such as x: str"),
        (many, "name each parameter"),
        (strange, "no JSON schema for"),
        (lambda: None, "a name of letters"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_what_is_right(function: object, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        function_tool(function)
    assert words in str(caught.value)


def test_a_built_in_name_cannot_be_taken(tmp_path: Path) -> None:
    def Read(path: str) -> str:
        """Mine."""
        return path

    with pytest.raises(ConfigError, match="the name Read is taken"):
        Kit(tmp_path, custom=[function_tool(Read)])


SCRIPT = """#!/bin/sh
# tool: Greet somebody.
# arg name (string): Who
# arg loud (boolean, optional): Shout
cat
exit ${CODE:-0}
"""


def script(tmp_path: Path, text: str, name: str = "greet.sh", **settings: object) -> Tool:
    path = tmp_path / name
    path.write_text(text)
    env = {"PATH": os.environ["PATH"], **settings.get("env", {})}
    return script_tool(str(path), cwd=str(tmp_path), env=env, timeout_s=0.5)


def test_a_script_gets_json_and_answers_with_its_output(tmp_path: Path) -> None:
    tool = script(tmp_path, SCRIPT)
    assert tool.spec.schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who"},
            "loud": {"type": "boolean", "description": "Shout"},
        },
        "required": ["name"],
    }
    kit = Kit(tmp_path, custom=[tool])
    assert kit.text("greet", name="Ann") == '{"name":"Ann"}'
    assert kit.text("greet", name="Ann", loud=True) == '{"name":"Ann","loud":true}'


def test_a_script_that_fails_or_hangs_is_an_error_result(tmp_path: Path) -> None:
    kit = Kit(tmp_path, custom=[script(tmp_path, SCRIPT, env={"CODE": "2"})])
    assert kit.error("greet", name="Ann") == '{"name":"Ann"}'
    kit = Kit(tmp_path, custom=[script(tmp_path, "# tool: Hang.\nsleep 30\n", "hang.sh")])
    assert "timed out after 0.5 s" in kit.error("hang")


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("echo", "x.sh", "has no header"),
        ("# tool: X\n# arg name: who", "x.sh", "this line cannot be read"),
        ("# tool: X\n# arg name (text): who", "x.sh", "this line cannot be read"),
        ("# tool: X", "x.unknown", "make it executable"),
        ("# tool: X", "my tool.sh", "becomes the tool's name"),
    ],
)
def test_a_script_that_says_too_little_is_refused(tmp_path: Path, text: str, name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        script(tmp_path, text, name)
    assert words in str(caught.value)
