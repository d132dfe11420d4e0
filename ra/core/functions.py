"""Names for the functions that several modules take as a parameter."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from ra.core.events import Event
from ra.core.model import Usage

Emit = Callable[[Event], None]
"""Tells whoever follows a run what happens."""

Price = Callable[[str, Usage], Decimal | None]
"""(model, usage) → dollars; None when nobody knows the model's price."""


def no_price(model: str, usage: Usage) -> Decimal | None:
    """For who counts tokens only."""
    return None


CallPlugin = Callable[..., Awaitable[Any]]
"""`plugins.Worker().call`: (function, *args, timeout_s, file, what) → what the user's function returns.

Raises HookFailed, with file and line, when it fails or takes too long."""
