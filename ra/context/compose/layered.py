"""`layered`: eight layers with budgets beside the replayed conversation, the stable ones in the system part."""

import math
import platform
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from ra.context.compose.intent import classify
from ra.context.compose.prompt import git_branch
from ra.context.compose.strategy import LONGEST, Composed, SessionView, TaskOrigin, one_line, rules
from ra.context.fit import Claim, allot, fair
from ra.context.settings import LayersSettings
from ra.context.tokens import MESSAGE, Estimator, Where
from ra.context.trim import shorten
from ra.core.messages import Document, Image, Message, Text
from ra.core.model import Section, Tier
from ra.core.value import Value

LayerName = Literal["channel", "scope", "landscape", "identity", "intent", "artifacts", "history", "wiki"]
LAYERS: tuple[LayerName, ...] = get_args(LayerName)
CORE: tuple[LayerName, ...] = ("channel", "scope", "landscape", "identity", "intent")

# What stays the same from turn to turn is cached; the rest enters with the message that it belongs to.
_STABLE: tuple[LayerName, ...] = ("channel", "landscape", "identity", "wiki")
_STEP = 0.05  # budgets follow the model's factor in steps, so that learning it seldom moves a cut that is cached

WIKI = """\
[Institutional Wiki]
When you need institutional knowledge (decisions, runbooks, names, habits of this team), run
`agentx wiki query "your question"`; it answers with passages and their file:line. Do not guess what it could tell."""


class World(Value, frozen=True):
    """What is known about where the agent works: looked up, never guessed."""

    root: str = ""
    cwd: str = ""
    branch: str = ""
    date: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    agents: dict[str, str] = {}  # other agents, each with what it is for
    servers: tuple[str, ...] = ()
    wiki: bool = False


class Layered(msgspec.Struct, frozen=True):
    """The layers that fit: those of the system part, those of this turn, and what was cut, by its reference."""

    system: tuple[Section, ...]
    turn: tuple[Section, ...]
    kept: dict[str, str] = {}


class _Fitted(NamedTuple):
    section: Section
    kept: dict[str, str]


class Surroundings:
    """Looks up, for each prompt, where the agent works. `agents` and `servers` are those of the configuration."""

    def __init__(
        self,
        cwd: Path,
        root: Path,
        *,
        clock: Callable[[], float],
        agents: dict[str, str],
        servers: tuple[str, ...],
        wiki_dirs: tuple[str, ...],
    ) -> None:
        self._cwd = cwd
        self._root = root
        self._clock = clock
        self._agents = agents
        self._servers = servers
        self._wiki_dirs = wiki_dirs

    def look(self, session: SessionView) -> World:
        return World(
            root=str(self._root),
            cwd=str(self._cwd),
            branch=git_branch(self._root),
            date=date.fromtimestamp(self._clock()).isoformat(),
            system=platform.system(),
            tools=tuple(spec.name for spec in session.tools),
            agents={name: purpose for name, purpose in self._agents.items() if name != session.task.agent},
            servers=self._servers,
            wiki=self._has_articles(),
        )

    def _has_articles(self) -> bool:
        if not self._wiki_dirs:
            return False
        from ra.context.compose.wiki import has_articles  # only who has a wiki needs it

        return has_articles([Path(folder) for folder in self._wiki_dirs])


class LayeredStrategy:
    """The conversation is replayed; stable layers stand in the system part, the others with the message."""

    name = "layered"

    def __init__(self, settings: LayersSettings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings

    async def compose(self, session: SessionView, message: Message) -> Composed:
        layers = self.layers(session, message, history=_not_replayed(session))
        return Composed(
            (*session.sections, *layers.system),
            noticed=layers.turn,
            name=self.name,
            texts=tuple(layers.kept.values()),
        )

    def layers(
        self, session: SessionView, message: Message, *, history: str = "", only: Sequence[str] = LAYERS
    ) -> Layered:
        """The layers named in `only`, each within its budget."""
        system = next((section.content for section in session.sections if section.name == "system"), "")
        every = texts(session.task, self._surroundings.look(session), system, message, history)
        selected = {name: text for name, text in every.items() if name in only}
        return fit(selected, self._settings, session.estimator)

    async def close(self) -> None:
        """Nothing is held."""


def _not_replayed(session: SessionView) -> str:
    """What was said before, when the replay does not carry it: after turns that started fresh."""
    configured = session.configured
    if configured is None or configured.base is None:
        return ""
    visible = {text for message in session.messages if (text := message.text.strip())}
    return "\n".join(
        f"{message.role}: {message.text.strip()}"
        for message in session.history()
        if message.role in ("user", "assistant") and message.text.strip() and message.text.strip() not in visible
    )


def texts(
    task: TaskOrigin, world: World, system_prompt: str, message: Message, history: str = ""
) -> dict[LayerName, str]:
    """Every layer that has something to say."""
    intent = classify(message.text)
    layers: dict[LayerName, str] = {
        "channel": f"[Channel]\n{task.channel}: {rules(task.channel)}",
        "scope": _scope(task, world),
        "landscape": _landscape(world),
        "identity": _identity(task, system_prompt),
        "intent": f"[Intent]\n{intent.name}: {intent.hint}",
        "artifacts": _artifacts(task, message),
        "history": f"[Earlier in this chat]\n{history}" if history else "",
        "wiki": WIKI if world.wiki else "",
    }
    return {name: text for name, text in layers.items() if text}


def fit(layers: dict[LayerName, str], settings: LayersSettings, estimator: Estimator) -> Layered:
    """Each layer within its budget, all of them within the total; a small one is not squeezed out by a large one."""
    step = math.ceil(round(estimator.factor / _STEP, 6)) * _STEP
    names = [name for name in LAYERS if name in layers]
    caps = [max(0, int(getattr(settings, name) / step) - MESSAGE) for name in names]
    total = max(0, int(settings.total / step) - MESSAGE * len(names))
    limits = _limits([layers[name] for name in names], names, caps, total, estimator)
    fitted = [
        _section(name, layers[name], limit, getattr(settings, name), estimator)
        for name, limit in zip(names, limits, strict=True)
    ]
    visible = [layer for layer in fitted if layer.section.content]
    return Layered(
        tuple(layer.section for layer in visible if layer.section.name in _STABLE),
        tuple(layer.section for layer in visible if layer.section.name not in _STABLE),
        {ref: text for layer in fitted for ref, text in layer.kept.items()},
    )


def _limits(
    contents: Sequence[str], names: Sequence[LayerName], caps: Sequence[int], total: int, estimator: Estimator
) -> Sequence[int]:
    sizes = [len(content.encode()) for content in contents]
    if all(size <= cap for size, cap in zip(sizes, caps, strict=True)) and sum(sizes) <= total:
        return sizes  # a token is at least a byte: nothing has to be counted
    sizes = [estimator.text(content) for content in contents]
    shares = fair([min(size, cap) for size, cap in zip(sizes, caps, strict=True)], total)

    def part(index: int) -> Claim:
        content, end = contents[index], _end(names[index])

        def size_within(limit: int) -> int:
            return estimator.text(shorten(content, limit, end, estimator).text)

        return Claim(sizes[index], size_within, caps[index], minimum=shares[index])

    return allot([part(index) for index in range(len(contents))], total).limits


def _section(name: LayerName, content: str, limit: int, most: int, estimator: Estimator) -> _Fitted:
    tier: Tier = "stable" if name in _STABLE else "volatile"
    role: Literal["system", "user"] = "system" if name in _STABLE else "user"
    if len(content.encode()) <= limit:
        return _Fitted(Section(name, tier, content, role, max=most), {})
    short = shorten(content, limit, _end(name), estimator)
    return _Fitted(Section(name, tier, short.text, role, max=most, cut=short.cut), short.kept)


def _end(name: LayerName) -> Where:
    """Which end of a layer is worth keeping."""
    return "tail" if name == "history" else "head"


def _scope(task: TaskOrigin, world: World) -> str:
    facts = {
        "date": world.date,
        "project": world.root,
        "cwd": world.cwd if world.cwd != world.root else "",
        "branch": world.branch,
        "system": world.system,
        **({} if task.local else {"chat": task.chat, "sender": task.sender}),
        **task.facts,
    }
    lines = [f"{key}: {value}" for key, value in facts.items() if value]
    if not task.local:
        lines.append("Only this is verified; who else takes part, and what they said, is not known.")
    return "\n".join(["[Scope]", *lines]) if lines else ""


def _landscape(world: World) -> str:
    lines = [f"tools: {', '.join(world.tools)}"] if world.tools else []
    lines += [f"MCP servers: {', '.join(world.servers)}"] if world.servers else []
    lines += [f"agent {name}: {purpose}".rstrip(": ") for name, purpose in sorted(world.agents.items())]
    return "\n".join(["[Landscape]", *lines]) if lines else ""


def _identity(task: TaskOrigin, system_prompt: str) -> str:
    first = next((line.strip() for line in system_prompt.splitlines() if line.strip()), "")
    return f"[Identity]\n{task.agent}: {first}" if first else f"[Identity]\n{task.agent}"


def _artifacts(task: TaskOrigin, message: Message) -> str:
    """What came with the message, by name: its content is in the message itself."""
    attached: list[str] = []
    for block in message.blocks[1:] if message.blocks and isinstance(message.blocks[0], Text) else message.blocks:
        match block:
            case Text(text) if text.startswith("<"):
                attached.append(one_line(text.partition(">")[0].lstrip("<")))
            case Document(name=name, media_type=kind):
                attached.append(one_line(name) or kind)
            case Image(media_type=kind):
                attached.append(kind)
            case _:
                pass
    lines = [*task.artifacts, *(f"attached: {name[:LONGEST]}" for name in attached)]
    return "\n".join(["[Artifacts]", *lines]) if lines else ""
