"""Changes one key of the user's file in place. Comments, order and variables stay; a crash leaves a complete file."""

import os
from io import StringIO
from pathlib import Path
from typing import Any

from ra.config.yamlfile import Path_, Veiled
from ra.core.errors import ConfigError
from ra.system.files import write_private


def change(path: Path, key: Path_, value: str | None) -> bool:
    """Set a key, or remove it with None. Returns False if the file has that value already. Raises ConfigError."""
    text = _read(path)
    changed = changed_text(text, key, value, name=str(path))
    if changed == text:
        return False
    _write(path, changed)
    return True


def changed_text(text: str, key: Path_, value: str | None, *, name: str = "ra.yaml") -> str:
    from ruamel.yaml import YAML  # start-up time: only a change needs it
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096  # keep the user's long lines
    veiled = Veiled(text, name=name)
    try:
        data: Any = yaml.load(veiled.text)
    except YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {str(error).splitlines()[0]}. Fix it first.") from error
    data = CommentedMap() if data is None else data
    place = data
    for part in key[:-1]:
        if not isinstance(place, dict):
            raise ConfigError(f"{name}: {'.'.join(key[:-1])} is not a mapping. Fix it first.")
        if place.get(part) is None:
            if value is None:
                return text
            place[part] = CommentedMap()
        place = place[part]
    if not isinstance(place, dict):
        raise ConfigError(f"{name}: {'.'.join(key[:-1])} is not a mapping. Fix it first.")
    if place.get(key[-1]) == value and (value is not None or key[-1] not in place):
        return text
    if value is None:
        del place[key[-1]]
    else:
        place[key[-1]] = value
    out = StringIO()
    yaml.dump(data, out)
    return veiled.unveil(out.getvalue())


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}. Fix it first.") from error


def _write(path: Path, text: str) -> None:
    """Replace the file atomically and keep its permissions. A symbolic link stays; its target is replaced."""
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        write_private(target, text.encode(), mode=mode)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}. Make it writable, or change it yourself."
        ) from error
