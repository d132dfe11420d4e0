"""Schemas of tools as servers write them, and as every provider takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.core.value import JsonObject
from ra.tools.mcp.schemas import fitted, readable

A, B = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"properties": {"a": A}, "required": ["a"]}, {"properties": {"a": A}, "required": ["a"]}),
        (
            {"anyOf": [{"properties": {"a": A}, "required": ["a"]}, {"properties": {"b": B}}]},
            {"properties": {"a": A, "b": B}},
        ),
        (
            {"allOf": [{"$ref": "#/$defs/X"}], "$defs": {"X": {"properties": {"a": A}, "required": ["a"]}}},
            {
                "properties": {"a": A},
                "required": ["a"],
                "$defs": {"X": {"properties": {"a": A}, "required": ["a"]}},
            },
        ),
        (
            {"$ref": "#/$defs/X", "$defs": {"X": {"properties": {"a": A}}}},
            {"properties": {"a": A}, "$defs": {"X": {"properties": {"a": A}}}},
        ),
        ({"oneOf": [{"required": ["a"]}, True], "properties": {"a": A}}, {"properties": {"a": A}}),
        (
            {"properties": {"a": {"$ref": "http://127.0.0.1:9/x", "description": "d"}}},
            {"properties": {"a": {"description": "d"}}},
        ),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"properties": {"a": {"$ref": "#/properties/a"}}}),
        ({"properties": {"a b": A, "b": B}}, {"properties": {"b": B}}),
        (
            {"$schema": "x", "$id": "y", "not": {}, "additionalProperties": False},
            {"properties": {}, "additionalProperties": False},
        ),
    ],
)
def test_a_schema_becomes_a_plain_object(schema: JsonObject, plain: JsonObject) -> None:
    assert fitted(schema) == {"type": "object", **plain}


def test_a_required_argument_without_a_legal_name_costs_its_tool() -> None:
    assert fitted({"properties": {"a b": A}, "required": ["a b"]}) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "anyOf", "allOf", "$ref", "a b", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_a_server_says_is_a_schema_or_none(said: object) -> None:
    (tool,) = readable([{"name": "t", "inputSchema": said}])
    plain = fitted(tool["inputSchema"])
    assert plain is None or (plain["type"], {"anyOf", "allOf"} & set(plain)) == ("object", set())
