"""Names for the functions that several modules take as a parameter."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from ra.core.events import Event
from ra.core.model import Usage

Emit = Callable[[Event], None]
"""Reports an event to everyone who follows the run."""

Price = Callable[[str, Usage], Decimal | None]
"""(model, usage) → dollars; None when the model's price is unknown."""


def no_price(model: str, usage: Usage) -> Decimal | None:
    """The price function for callers that count tokens only."""
    return None


CallPlugin = Callable[..., Awaitable[Any]]
"""`plugins.Worker().call`: (function, *args, timeout_s, file, what) → what the user's function returns.

Raises HookFailed, with file and line, when it fails or takes too long."""
