"""Parses model names: their spellings without vendors, and the stems of those without dates."""

import re
from collections.abc import Iterator

# Dates and snapshots as vendors write them: -20250929, @20251101, -2025-04-14, -0613, -001, -v1:0, -latest,
# -preview-05-06, -exp-0827. One or two bare digits are a version (opus-4-6 is not opus-4), never a snapshot.
# The patterns are strings: they are compiled when the first name is parsed, not at every start.
_SNAPSHOT = (
    r"(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{2}-(?:\d{4}|\d{2})|\d{3,8}|latest|default|preview|exp|experimental|beta"
    r"|v\d+(?::\d+)?))+"
    r"(?:\[\w+\]|:thinking|:beta|:extended|:nitro|:floor)?"
    r"|\[\w+\]|:thinking|:beta|:extended|:nitro|:floor"
)
_REGION = r"(?:us|us-gov|eu|apac|jp|au|ca|in|sa|global|regional)\.(?=[a-z])"
_VENDOR = (
    r"(?:anthropic|amazon|meta|mistral|cohere|deepseek|ai21|qwen|openai|google|moonshot|minimax|nvidia|zai"
    r"|writer)\.(?=[a-z])"
)


def stems_of(name: str) -> Iterator[str]:
    """Every catalog row that the name (in lower case) may mean, the most specific first."""
    for spelling in spellings(name):
        yield from _stems(spelling)


def spellings(name: str) -> Iterator[str]:
    """The name, then without each path, region and vendor in front: `us.anthropic.x` → `anthropic.x` → `x`."""
    yield name
    while "/" in name or re.match(_REGION, name) or re.match(_VENDOR, name):
        name = name.partition("/")[2] if "/" in name else re.sub(f"^{_REGION}|^{_VENDOR}", "", name)
        if name:
            yield name
    if name.startswith("claude") and "." in name:  # OpenRouter writes claude-sonnet-4.5
        yield name.replace(".", "-")


def _stems(name: str) -> Iterator[str]:
    """The name, then every prefix that ends where a date or snapshot begins, the longest first."""
    yield name
    for end in range(len(name) - 1, 0, -1):
        if name[end] in "-@:[" and re.compile(_SNAPSHOT).fullmatch(name, end):
            yield name[:end]
