"""What the model still sees of the files, pages and outputs that were attached to prompts."""

import re

from ra.context.engine import Engine
from ra.core.messages import Document, Image, Text
from ra.core.value import Value

_LABELLED = re.compile(r'^<[\w-]+ [\w-]+="([^"]*)"')


class Attachment(Value, frozen=True):
    """A block of a prompt that came from a file, a page or a command."""

    name: str
    at: int
    block: int
    tokens: int


def attachments(engine: Engine) -> list[Attachment]:
    view, estimator = engine.view, engine.estimator
    visible = []
    for group in view.groups:
        if not group.is_prompt:
            continue
        at, first = group.place
        blocks = view.clipped(group.item).blocks
        for number, block in enumerate(group.item.message.blocks):
            name = _name(block)
            if name and block in blocks:
                tokens = estimator.scaled(estimator.message(group.item.message))
                if isinstance(block, Text):
                    tokens = estimator.scaled(estimator.text(block.text))
                visible.append(Attachment(name, at, first + number, tokens))
    return visible


def _name(block: object) -> str:
    match block:
        case Text(text) if label := _LABELLED.match(text):
            return label[1]
        case Document(name=name, media_type=kind):
            return name or kind
        case Image(media_type=kind):
            return kind
        case _:
            return ""
