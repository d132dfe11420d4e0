import asyncio
import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from ra.core.errors import ConfigError
from ra.tools.custom import function_tool, script_tool
from ra.tools.tool import Tool
from tests.tools.kit import Kit


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
