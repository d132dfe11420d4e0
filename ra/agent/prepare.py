"""How does what the user typed become the message that the model sees? Expanded once; what was piped in is data."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ra.core.messages import Content, Message, Text
from ra.core.value import Value
from ra.resolvers.label import label
from ra.resolvers.resolver import AskOutside, Resolver


class Prepared(Value, frozen=True):
    """A prompt with its references resolved and its files attached; `references` says what came from where."""

    message: Message
    warnings: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


async def prepare(
    text: str,
    *,
    piped: str,
    files: Sequence[Path],
    root: Path,
    cwd: Path,
    resolvers: Callable[[], Sequence[Resolver]],
    always: bool = False,
    ask_outside: AskOutside | None = None,
) -> Prepared:
    """Nothing of the resolvers is loaded for a prompt that cannot hold a reference.

    `always`: there are custom resolvers, whose references may look like anything.
    """
    blocks: list[Content] = [Text(label("stdin", piped))] if piped else []
    warnings: list[str] = []
    references: list[str] = []
    if files or always or "@" in text or "url:" in text:
        from ra.resolvers import expand as resolving  # pathspec and friends: 20 ms that most prompts do not need

        expansion = await resolving.expand(text, root=root, cwd=cwd, resolvers=resolvers(), ask_outside=ask_outside)
        attached = [expansion, *(resolving.attach(str(file), cwd=cwd) for file in files)]
        text = expansion.text
        for found in attached:
            blocks.extend(found.blocks)
            warnings.extend(found.warnings)
            references.extend(f"{ref.text} → {', '.join(ref.names)}" for ref in found.references)
    head = (Text(text),) if text or not blocks else ()
    return Prepared(Message("user", (*head, *blocks)), tuple(warnings), tuple(references))
