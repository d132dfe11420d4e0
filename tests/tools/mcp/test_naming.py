"""Whatever servers call their tools, providers take the names, and no two are the same."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.tools.mcp.naming import server_name, tool_names


def test_plain_names_stay_as_they_are() -> None:
    assert tool_names("files", ["read", "write-all"]) == ["mcp__files__read", "mcp__files__write-all"]


def test_names_that_become_the_same_are_told_apart() -> None:
    first, second = tool_names("a", ["x.y", "x/y"])
    assert first == "mcp__a__x_y"
    assert re.fullmatch(r"mcp__a__x_y_[0-9a-f]{6}", second)
    assert tool_names("a__b", ["c"], taken=tool_names("a", ["b__c"])) != ["mcp__a__b__c"]


@settings(max_examples=100)
@given(
    st.text(min_size=1, max_size=90), st.lists(st.text(max_size=90) | st.sampled_from(["a", "a.", "a/"]), max_size=8)
)
def test_names_are_legal_unique_and_always_the_same(server: str, tools: list[str]) -> None:
    names = tool_names(server, tools)
    assert names == tool_names(server, tools)
    assert len(set(names)) == len(names) == len(tools)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in [server_name(server), *names])
    assert all(name.startswith("mcp__") for name in names)
