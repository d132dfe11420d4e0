"""ra: a command-line agent that lets you see, budget and steer every token that the model sees.

from ra import Agent
print(Agent(model="claude-sonnet-4-6").ask("What is in this folder?"))
"""

TYPE_CHECKING = False  # nothing is imported here: `python -m ra` still has the project first on its path
if TYPE_CHECKING:
    from typing import Any

    from ra.context.sources import Source
    from ra.context.timed import TimestampedMessage
    from ra.core.messages import Message, say
    from ra.library import Agent, Unanswered, ask

__version__ = "0.1.0"
__all__ = ["Agent", "Message", "Source", "TimestampedMessage", "Unanswered", "__version__", "ask", "say"]

_HOMES = {
    **dict.fromkeys(("Agent", "Unanswered", "ask"), "ra.library"),
    **dict.fromkeys(("Message", "say"), "ra.core.messages"),
    "TimestampedMessage": "ra.context.timed",
    "Source": "ra.context.sources",
}


def __getattr__(name: str) -> "Any":
    """The library is loaded when it is asked for: `ra --version` needs none of it."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ra' has no attribute {name!r}")
