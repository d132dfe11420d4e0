"""How is a request made up, roughly and for nothing? Bytes by source: the ledger divides a known bill by them."""

from operator import is_

from ra.core.messages import Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Request
from ra.core.value import encode

PICTURE = 6000  # an image or a page costs about what so many bytes of text cost


class Sizes:
    """Counts each message once: the next request costs what is new in it."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._parts: dict[str, int] = {}

    def of(self, request: Request) -> dict[str, int]:
        """Sections by name, `tools`, results by `tool:NAME`, named messages by name, and the `conversation`."""
        known = self._messages
        if not (len(request.messages) >= len(known) and all(map(is_, request.messages, known))):
            known, self._parts = (), {}
        for message in request.messages[len(known) :]:
            for source, size in _sized(message):
                self._parts[source] = self._parts.get(source, 0) + size
        self._messages = request.messages
        fixed = {section.name: len(section.content) for section in request.sections}
        if request.tools:
            fixed["tools"] = len(encode(request.tools))
        return fixed | {name: size + fixed.get(name, 0) for name, size in self._parts.items()}


def _sized(message: Message) -> list[tuple[str, int]]:
    sizes = []
    for block in message.blocks:
        match block:
            case ToolResult(name=name, content=content):
                size = sum(len(part.text) if isinstance(part, Text) else PICTURE for part in content)
                sizes.append((f"tool:{name}", size))
            case ToolCall(name=name, args=args):
                sizes.append((message.name or "conversation", len(name) + len(encode(args))))
            case Text(text) | Thinking(text):
                sizes.append((message.name or "conversation", len(text)))
            case Image() | Document():
                sizes.append((message.name or "attachments", PICTURE))
    return sizes
