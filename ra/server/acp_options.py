"""The options of a session that an editor offers: the model, the thinking effort, and the permission to edit."""

from collections.abc import Sequence
from typing import Any, get_args

from acp import schema

from ra.core.model import Level
from ra.session.session import Session
from ra.tools.settings import Edits

MODES: dict[Edits, tuple[str, str]] = {
    "ask": ("Ask", "Changes to files are asked for"),
    "auto": ("Write", "Files of the project are changed without asking"),
    "off": ("Read only", "Nothing is changed"),
}


def modes(session: Session) -> schema.SessionModeState:
    available = [schema.SessionMode(id=name, name=words[0], description=words[1]) for name, words in MODES.items()]
    return schema.SessionModeState(current_mode_id=session.tools().edits, available_modes=available)


def options(
    session: Session, models: Sequence[str]
) -> list[schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean]:
    """Editors that support options show these instead of the modes, so the mode is one of them."""
    recipe = session.recipe
    model = f"{recipe.provider}/{recipe.model}"
    names = {name: name.partition("/")[2] for name in (*models, *(() if model in models else (model,)))}
    return [
        _select("mode", "Edits", "mode", session.tools().edits, {name: words[0] for name, words in MODES.items()}),
        _select("model", "Model", "model", model, names),
        _select("thinking", "Thinking", "thought_level", recipe.thinking, {level: level for level in get_args(Level)}),
    ]


def _select(id: str, name: str, category: str, current: str, values: dict[str, str]) -> Any:
    choices = [schema.SessionConfigSelectOption(value=value, name=words) for value, words in values.items()]
    return schema.SessionConfigOptionSelect.model_validate(
        {"type": "select", "id": id, "name": name, "category": category, "currentValue": current, "options": choices}
    )
