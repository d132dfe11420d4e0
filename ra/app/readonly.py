"""What may a task do that must change nothing? It reads; everything else, the user's own tools included, is refused."""

import msgspec

from ra.app.parts import Options
from ra.tools.rules import Rule
from ra.tools.toolbox import Toolbox

READ_ONLY = ("Entry", "Glob", "Grep", "LS", "Read", "Recall")
_DENIED = ("Agent", "Bash", "Edit", "WebFetch", "Write", "mcp__*")


def reading(options: Options) -> Options:
    return msgspec.structs.replace(options, write=False, allow=(), deny=(*options.deny, *_DENIED))


def bar(toolbox: Toolbox) -> None:
    """Refuse what only a made toolbox knows: tools that the user added."""
    others = [spec.name for spec in toolbox.specs if spec.name not in READ_ONLY]
    toolbox.rules = (*toolbox.rules, *(Rule("deny", name) for name in others))
