"""Answers of a given form: asked for natively or in words, checked, corrected, or refused with the reason."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ra.core.errors import UsageError
from ra.core.messages import say
from ra.core.model import ModelInfo, Request
from ra.core.value import JsonObject
from ra.providers.connect import body
from ra.providers.script import Step
from ra.providers.structured import native, tightened
from ra.session.structured import SchemaFormat, json_text
from ra.testing.server import LoopbackServer
from tests.cli.conftest import Shell

COUNT: JsonObject = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
STRICT: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def asked(shell: Shell, *answers: str, schema: object = COUNT) -> tuple[Any, LoopbackServer]:
    with LoopbackServer("anthropic", [Step(text=answer) for answer in answers]) as server:
        shell.serve(server)
        done = shell.ra("-q", "--json-schema", json.dumps(schema), "how many?")
    return done, server


def test_an_answer_that_fits_is_all_of_stdout(shell: Shell) -> None:
    done, server = asked(shell, '```json\n{"n": 4}\n```')
    assert (done.returncode, done.stdout) == (0, b'{"n": 4}\n')
    assert server.bodies[0]["output_config"] == {"format": {"type": "json_schema", "schema": STRICT}}


def test_a_wrong_answer_is_sent_back_with_what_is_wrong(shell: Shell) -> None:
    done, server = asked(shell, "Four.", '{"n": -1}', '{"n": 4}')
    assert (done.returncode, done.stdout) == (0, b'{"n": 4}\n')
    assert "is not valid JSON" in json.dumps(server.bodies[1]["messages"][-1])
    assert "n: -1 is less than the minimum of 0" in json.dumps(server.bodies[2]["messages"][-1])


def test_after_two_corrections_it_ends_with_what_is_wrong(shell: Shell) -> None:
    done, server = asked(shell, "1", "2", "3", "4", schema={"type": "string", "minLength": 3, "maxLength": 1})
    assert (done.returncode, done.stdout, len(server.requests)) == (5, b"", 3)
    assert b"does not fit, after 2 corrections: the whole: 3 is not of type 'string'" in done.stderr


def test_a_schema_that_is_none_costs_nothing(shell: Shell, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for schema, words in [
        ('{"type": 3}', b"The schema is wrong at type"),
        ("nowhere.json", b"No such file"),
        (str(broken), b"this is not valid JSON"),
        ('{"$ref": "https://example.com/x.json"}', b"put everything that it needs into the schema"),
    ]:
        done = shell.ra("--json-schema", schema, "x", env={"ANTHROPIC_API_KEY": "k"})
        assert done.returncode == 2
        assert words in done.stderr


@pytest.mark.parametrize(
    ("provider", "place"),
    [
        ("openai", ("text", "format", "schema")),
        ("openai-chat", ("response_format", "json_schema", "schema")),
        ("google", ("generationConfig", "responseJsonSchema")),
        ("anthropic", ("output_config", "format", "schema")),
    ],
)
def test_each_provider_has_its_own_place_for_a_schema(provider: str, place: tuple[str, ...]) -> None:
    model = "claude-sonnet-4-6" if provider == "anthropic" else "m"
    schema = native(provider, model, COUNT, has_tools=False)
    part: Any = body(provider, Request(model, (), (say("user", "x"),), answer_schema=schema))
    for name in place:
        part = part[name]
    assert part == STRICT


def test_what_a_provider_cannot_hold_is_asked_for_in_words() -> None:
    assert native("google", "gemini-3.8-flash", COUNT, has_tools=True) == {}
    assert native("anthropic", "claude-3-5-haiku-20241022", COUNT, has_tools=False) == {}
    assert native("anthropic", "claude-opus-4-1-20250805", COUNT, has_tools=False) == STRICT
    assert (
        native("openai", "gpt-5.2", {"type": "object", "additionalProperties": {"type": "integer"}}, has_tools=False)
        == {}
    )
    assert native("openai", "gpt-5.2", {"type": "array", "items": COUNT}, has_tools=False) == {}


schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"enum": ["a", "b"]}, {"type": "null"}]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda p: {"type": "object", "properties": p})
        | inner.map(lambda item: {"type": "array", "items": item})
        | st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    ),
    max_leaves=6,
)


def example(schema: Any) -> Any:
    """A value that fits the schema."""
    if "anyOf" in schema:
        return example(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: example(part) for name, part in schema["properties"].items()}
        case "array":
            return [example(schema["items"])]
        case kind:
            return {"string": "x", "integer": 1, "null": None}[kind]


@given(schemas)
def test_what_fits_the_tightened_schema_fits_the_schema(schema: JsonObject) -> None:
    strict = tightened(schema)
    assert strict is not None
    text = json.dumps(example(strict))
    assert SchemaFormat(strict).problem(text) == ""
    assert SchemaFormat(schema).problem(text) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("Here:\n```\n[1]\n```\nDone.", "[1]"),
        ('Sure: {"a": [1]} is it.', '{"a": [1]}'),
        ("no json", "no json"),
        ("", ""),
        ('"text"', '"text"'),
    ],
)
def test_json_is_found_in_what_models_write(text: str, found: str) -> None:
    assert json_text(text) == found


@given(st.text())
def test_any_answer_is_judged(text: str) -> None:
    assert isinstance(SchemaFormat(COUNT).problem(json_text(text)), str)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#"}, "leads back to itself"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "leads back to itself"),
        ({"properties": {"a": {"items": {"$ref": "#/$defs/none"}}}}, "'#/$defs/none', which is not in it"),
        ({"$ref": "https://example.org/x.json"}, "into the schema itself"),
    ],
)
def test_a_reference_that_nothing_can_follow_is_a_sentence_before_anything_is_paid(
    schema: JsonObject, words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        SchemaFormat(schema)


def test_a_schema_that_refers_to_itself_without_end_is_a_sentence() -> None:
    assert "without end" in SchemaFormat({"allOf": [{"$ref": "#"}]}).problem("1")


def test_a_recursive_schema_is_checked_at_every_depth() -> None:
    node = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}
    chain = SchemaFormat({"$defs": {"node": node}, "$ref": "#/$defs/node"})
    assert chain.problem('{"v": 1, "next": {"v": 2}}') == ""
    assert "next/next/v" in chain.problem('{"v": 1, "next": {"next": {"v": "three"}}}')


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T12:00:00Z", "2026-02-28T12:00:00"),
        ("time", "12:00:00+01:00", "noon"),
        ("email", "a@b.example", "nobody"),
        ("uuid", "9b2f5a1c-0d7e-4c53-9f6e-1f0f6f1d2c3b", "9b2f"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("uri", "https://example.com/a?b=c#d", "not a uri"),
        ("hostname", "www.example.com", "-a.example"),
        ("duration", "P1DT2H", "1h"),
    ],
)
def test_formats_hold(kind: str, right: str, wrong: str) -> None:
    text = SchemaFormat({"type": ["string", "integer"], "format": kind})
    assert (text.problem(json.dumps(right)), text.problem("1")) == ("", "")
    assert f"is not a '{kind}'" in text.problem(json.dumps(wrong))


@pytest.mark.parametrize(
    ("step", "right", "wrong"), [(0.01, "19.99", "19.999"), (0.1, "1e308", "0.25"), (3, "9.0", "10")]
)
def test_a_number_is_a_multiple_as_it_is_written(step: float, right: str, wrong: str) -> None:
    price = SchemaFormat({"multipleOf": step})
    assert (price.problem(right), "is not a multiple" in price.problem(wrong)) == ("", True)


def test_a_pattern_that_takes_for_ever_is_a_problem_of_the_answer() -> None:
    endless = SchemaFormat({"pattern": "^(a|aa)+(b|c)$|^(.*a){25}$"})
    assert "cannot be tried on it" in endless.problem(json.dumps("a" * 90 + "!"))


def test_a_schema_must_be_an_object() -> None:
    with pytest.raises(UsageError, match="must be a JSON object"):
        SchemaFormat(True)


def test_a_request_without_a_schema_is_as_it_was() -> None:
    info = ModelInfo("m")
    assert info.tools
    for provider in ("openai", "openai-chat", "google", "anthropic"):
        sent = json.dumps(body(provider, Request("m", (), (say("user", "x"),))))
        assert "schema" not in sent.lower()
