"""Invariant 1 in each dialect's own bytes: what was sent and may be cached is sent again, byte for byte."""

import os
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from ra.core.model import Request
from ra.core.value import encode
from ra.providers.connect import info
from ra.providers.dialects import dialect
from tests.context.sessions import Step, scripts
from tests.context.test_invariants import played, rewrites, strategies, windows

MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5",
    "openai-chat": "some-model",
    "google": "gemini-2.5-pro",
}
EXAMPLES = int(os.environ.get("RA_SESSIONS", "30"))


def pieces(name: str, request: Request) -> list[bytes]:
    """The body as the provider reads it for its cache: tools, system part, then every block with its speaker."""
    body = dialect(name).body(request, info(name, request.model))
    if name == "google":
        talk = [(turn["role"], part) for turn in body["contents"] for part in turn["parts"]]
        return [encode(_plain(part)) for part in (body.get("tools"), body.get("systemInstruction"), *talk)]
    if name == "openai":
        return [encode(part) for part in (body.get("tools"), body.get("instructions"), *body["input"])]
    if name == "openai-chat":
        return [encode(part) for part in (body.get("tools"), *body["messages"])]
    talk = [(turn["role"], block) for turn in body["messages"] for block in turn["content"]]
    return [encode(_plain(part)) for part in (body.get("tools"), body.get("system"), *talk)]


def _plain(value: Any) -> Any:
    """Cache marks move on with the conversation; they are no part of what is cached."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@pytest.mark.parametrize("name", MODELS)
@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(scripts, windows, strategies)
def test_a_body_extends_the_one_before(name: str, script: list[Step], limit: int, strategy: str) -> None:
    log, sent = played(script, limit=limit, strategy=strategy)
    for before, after in pairwise(sent):
        if rewrites(log, before.sent_at, after.sent_at):
            continue
        old, new = (
            pieces(name, msgspec.structs.replace(one.assembly.request, model=MODELS[name])) for one in (before, after)
        )
        assert new[: len(old)] == old
