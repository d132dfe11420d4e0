"""The provider's side of each dialect: it checks a request and refuses it in the provider's words, or streams."""

from ra.testing.wires import anthropic, google, openai, openai_chat
from ra.testing.wires.wire import Wire

_WIRES: dict[str, Wire] = {"anthropic": anthropic, "openai": openai, "openai-chat": openai_chat, "google": google}


def wire(dialect: str) -> Wire:
    return _WIRES[dialect]
