"""ra: a command-line agent that lets you see, budget and steer every token that the model sees.

from ra import Agent
print(Agent("claude-sonnet-4-6").ask("What is in this folder?"))
"""

TYPE_CHECKING = False  # no imports here: `python -m ra` still has the project first on its path
if TYPE_CHECKING:
    from typing import Any

    from ra.context.compose.sources import Source as Source
    from ra.context.items import TimestampedMessage as TimestampedMessage
    from ra.core.asking import Answer as Answer
    from ra.core.asking import Question as Question
    from ra.core.errors import ConfigError as ConfigError
    from ra.core.errors import ProviderError as ProviderError
    from ra.core.errors import RaError as RaError
    from ra.core.errors import Refused as Refused
    from ra.core.errors import UsageError as UsageError
    from ra.core.errors import UserError as UserError
    from ra.core.events import CallDelta as CallDelta
    from ra.core.events import Compacted as Compacted
    from ra.core.events import Event as Event
    from ra.core.events import Retrying as Retrying
    from ra.core.events import Rotated as Rotated
    from ra.core.events import RunEnded as RunEnded
    from ra.core.events import RunStopped as RunStopped
    from ra.core.events import Streamed as Streamed
    from ra.core.events import TextDelta as TextDelta
    from ra.core.events import ThinkingDelta as ThinkingDelta
    from ra.core.events import ToolEnded as ToolEnded
    from ra.core.events import ToolOutput as ToolOutput
    from ra.core.events import ToolStarted as ToolStarted
    from ra.core.events import TurnEnded as TurnEnded
    from ra.core.events import TurnStarted as TurnStarted
    from ra.core.events import Warned as Warned
    from ra.core.facts import Entry as Entry
    from ra.core.messages import Document as Document
    from ra.core.messages import Image as Image
    from ra.core.messages import Message as Message
    from ra.core.messages import Text as Text
    from ra.core.messages import Thinking as Thinking
    from ra.core.messages import ToolCall as ToolCall
    from ra.core.messages import ToolResult as ToolResult
    from ra.core.messages import say as say
    from ra.core.model import Reply as Reply
    from ra.core.model import Request as Request
    from ra.core.model import Section as Section
    from ra.core.model import Usage as Usage
    from ra.core.ports import Provider as Provider
    from ra.core.version import __version__ as __version__
    from ra.library.agent import Agent as Agent
    from ra.library.agent import Unanswered as Unanswered
    from ra.library.agent import ask as ask
    from ra.session.agent_file import HandlerContext as HandlerContext
    from ra.session.agent_file import Wake as Wake
    from ra.tools.tool import Tool as Tool

_EXPORTED = {
    "ra.library.agent": ("Agent", "Unanswered", "ask"),
    "ra.core.events": (
        *("CallDelta", "Compacted", "Event", "Retrying", "Rotated", "RunEnded", "RunStopped", "Streamed"),
        *("TextDelta", "ThinkingDelta", "ToolEnded", "ToolOutput", "ToolStarted", "TurnEnded", "TurnStarted", "Warned"),
    ),
    "ra.core.messages": ("Document", "Image", "Message", "Text", "Thinking", "ToolCall", "ToolResult", "say"),
    "ra.core.model": ("Reply", "Request", "Section", "Usage"),
    "ra.core.ports": ("Provider",),
    "ra.core.version": ("__version__",),
    "ra.core.asking": ("Answer", "Question"),
    "ra.core.facts": ("Entry",),
    "ra.core.errors": ("ConfigError", "ProviderError", "RaError", "Refused", "UsageError", "UserError"),
    "ra.context.items": ("TimestampedMessage",),
    "ra.context.compose.sources": ("Source",),
    "ra.session.agent_file": ("HandlerContext", "Wake"),
    "ra.tools.tool": ("Tool",),
}
_HOMES = {name: home for home, names in _EXPORTED.items() for name in names}

__all__ = [*_HOMES]


def __getattr__(name: str) -> "Any":
    """Loads the library on first use: `ra --version` needs none of it."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_"):
        from ra.library.guesses import NAMES, instead  # what users of other libraries import

        if name in NAMES:  # an AttributeError would lose its words in `from ra import …`
            raise ImportError(f"ra has no {name!r}{instead(name, NAMES, ())}", name="ra")
    raise AttributeError(f"module 'ra' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
