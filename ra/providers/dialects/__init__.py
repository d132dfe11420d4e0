"""Loads the dialects, one module each with the pure functions `path`, `headers`, `body` and `reader`."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ra.core.errors import UsageError
from ra.providers.vendors import BY_NAME
from ra.providers.wire import Dialect

if TYPE_CHECKING:  # checks that each module is a Dialect
    from ra.providers.dialects import anthropic, google, openai, openai_chat

    _ALL: tuple[Dialect, ...] = (anthropic, openai, openai_chat, google)


def dialect(name: str) -> Dialect:
    """The dialect of this name, loaded on demand: a run needs only one."""
    if name not in BY_NAME:
        raise UsageError(f"Unknown dialect {name!r}; use {', '.join(BY_NAME)}.")
    return cast(Dialect, import_module(f"{__name__}.{name.replace('-', '_')}"))
