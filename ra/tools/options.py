"""Reads `agent.tools`: per tool `enabled` and `rootDir`; for Bash and scripts also `env`."""

from pathlib import Path
from typing import Any

import msgspec

from ra.core.errors import ConfigError
from ra.core.settings import Settings
from ra.tools.policy.rules import BUILTIN

HELD = ("Read", "Write", "Edit", "LS", "Glob", "Grep")


class ToolOptions(Settings, frozen=True, kw_only=True):
    enabled: bool = True
    root_dir: str = ""
    env: tuple[str, ...] = ()


def options_of(settings: dict[str, Any], root: str | None, custom: tuple[str, ...] = ()) -> dict[str, ToolOptions]:
    """The options by tool. Raises ConfigError with the wrong key and the legal values.

    The list `agent.tools.custom` is read by the code that loads those files. Without a root, folders are not checked.
    """
    names = (*BUILTIN, *custom)
    options = {}
    for name, value in settings.items():
        if name == "custom":
            continue
        if name not in names and not name.startswith("mcp__"):
            import difflib  # start-up time: only for an unknown name

            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            advice = f"did you mean {close[0]}?" if close else f"tools: {', '.join(names)}, and custom."
            raise ConfigError(f"agent.tools.{name}: there is no such tool; {advice}")
        options[name] = _read(name, value, root, starts=name in ("Bash", *custom))
    return options


def _read(name: str, value: Any, root: str | None, *, starts: bool) -> ToolOptions:
    if isinstance(value, bool):
        return ToolOptions(enabled=value)
    try:
        # Snake case is accepted in all settings.
        plain = (
            {"rootDir" if key == "root_dir" else key: setting for key, setting in value.items()}
            if isinstance(value, dict)
            else value
        )
        option = msgspec.convert(plain, ToolOptions)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"agent.tools.{name}: {error}. Keys: enabled (true or false), rootDir (a folder), env (names)."
        ) from error
    if option.env and not starts:
        raise ConfigError(f"agent.tools.{name}.env: only Bash and your own scripts take environment variables.")
    if not option.root_dir:
        return option
    if name not in HELD:
        raise ConfigError(f"agent.tools.{name}.rootDir: only {', '.join(HELD)} can be limited to a folder.")
    if root is None:
        return option
    folder = (Path(root) / option.root_dir).resolve()
    if not folder.is_relative_to(Path(root).resolve()):
        raise ConfigError(
            f"agent.tools.{name}.rootDir: {option.root_dir!r} lies outside the project; to read elsewhere use a rule."
        )
    if not folder.is_dir():
        raise ConfigError(f"agent.tools.{name}.rootDir: {option.root_dir!r} is not a folder.")
    return msgspec.structs.replace(option, root_dir=str(folder))
