"""ra: a command-line agent that lets you see, budget and steer every token that the model sees.

from ra import Agent
print(Agent(model="claude-sonnet-4-6").ask("What is in this folder?"))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ra.library import Agent, Unanswered, ask

__version__ = "0.1.0"
__all__ = ["Agent", "Unanswered", "__version__", "ask"]


def __getattr__(name: str) -> Any:
    """The library is loaded when it is asked for: `ra --version` needs none of it."""
    if name in {"Agent", "Unanswered", "ask"}:
        from ra import library

        return getattr(library, name)
    raise AttributeError(f"module 'ra' has no attribute {name!r}")
