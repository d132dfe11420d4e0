"""Reads an untrusted YAML or JSON file: safely, within limits, and with the line of every value."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ra.core.errors import ConfigError
from ra.system.files import open_resolved

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
MAX_VALUES = 20_000  # aliases are expanded by counting: a 306-byte file must not become a gigabyte

MAX_VARIABLES = 1000
_FORMS = "write ${VAR}, ${VAR:-default} or ${VAR-default}"

_PRIVATE_BLOCKS = (0xE000, *range(0xF0000, 0xFF000, 0x1000), *range(0x100000, 0x10F000, 0x1000))
"""The starts of private-use blocks, whose characters mean nothing to YAML. Files may use some, such as font icons."""
_OTHER_FORM = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[?+=][^}]*\}?")  # of a shell, and not ours
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)([^}]*))?\}")

Path_ = tuple[str, ...]


class Origin(NamedTuple):
    """What set a value: a file with its line, a flag, or the defaults."""

    name: str
    line: int = 0
    kind: str = "file"  # default | user | project | config | flag

    def __str__(self) -> str:
        return f"{self.name}:{self.line}" if self.line else self.name


class Layer(NamedTuple):
    """One file or one set of flags: plain data, and the origin of every path in it."""

    data: dict[str, Any]
    origins: dict[Path_, Origin]
    variables: Mapping[Path_, Sequence[tuple[str, str]]] = {}  # what of the environment stands where: names and values


def read(path: Path, env: Mapping[str, str], *, kind: str = "user") -> Layer:
    try:
        with open_resolved(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: a configuration file has at most {MAX_BYTES} bytes; take something out.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8; save the file as UTF-8.") from error
    return parse(text, name=str(path), env=env, kind=kind)


def parse(text: str, *, name: str, env: Mapping[str, str], kind: str = "user") -> Layer:
    import yaml  # 20 ms of start-up time: only for runs with configuration files

    veiled = Veiled(text, name=name)
    text = veiled.text
    if name.endswith(".json") and text.strip():
        from ra.config import jsonfile  # start-up time: JSON files are rare

        jsonfile.check(veiled.replace(text, lambda _: "0"), name=name)
        text = jsonfile.as_yaml(text)
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: this is not valid YAML: {error}.") from error
    try:
        _guard_depth(text, name)
        node = loader.get_single_node()
        if node is None:
            return Layer({}, {})
        reader = _Reader(loader, name, env, kind, veiled)
        data = reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError(f"{place}: this is not valid YAML: {error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: this is not valid YAML: {error}.") from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise ConfigError(f"{name}:1: a configuration file is a mapping such as `agent: {{model: …}}`.")
    return Layer(data, reader.origins, reader.variables)


class Veiled:
    """A text in which a private-use character, unused by the text, stands for each variable.

    YAML cannot read ${VAR} inside {braces}. `unveil` puts the variables back. Raises ConfigError.
    """

    def __init__(self, text: str, *, name: str) -> None:
        self.variables = [match.group() for match in VARIABLE.finditer(text)]
        if len(self.variables) > MAX_VARIABLES:
            raise ConfigError(f"{name}: more than {MAX_VARIABLES} variables; use fewer.")
        codes = {ord(character) for character in set(text)}
        free = (first for first in _PRIVATE_BLOCKS if codes.isdisjoint(range(first, first + MAX_VARIABLES)))
        self._first = next(free, 0)
        if not self._first:
            raise ConfigError(f"{name}: too many characters for private use; take some out.")
        numbers = iter(range(len(self.variables)))
        self.text = VARIABLE.sub(lambda _: chr(self._first + next(numbers)), text)
        self._veils = re.compile(f"[{chr(self._first)}-{chr(self._first + MAX_VARIABLES - 1)}]")

    def holds_variable(self, text: str) -> bool:
        return self._veils.search(text) is not None

    def replace(self, text: str, value: Callable[[str], str]) -> str:
        """The text with each variable, as it was written, replaced by `value` of it."""
        return self._veils.sub(lambda match: value(self.variables[ord(match.group()) - self._first]), text)

    def unveil(self, text: str) -> str:
        return self.replace(text, str)


def _guard_depth(text: str, name: str) -> None:
    """Refuse deep nesting before the parser recurses into it."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise ConfigError(f"{name}:{line}: nested more than {MAX_DEPTH} levels deep; make it flatter.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reader:
    """Turns YAML nodes into plain data, and records the line of each."""

    def __init__(self, loader: Any, name: str, env: Mapping[str, str], kind: str, veiled: Veiled) -> None:
        self.loader = loader
        self.name = name
        self.env = env
        self.kind = kind
        self.origins: dict[Path_, Origin] = {}
        self.variables: dict[Path_, list[tuple[str, str]]] = {}
        self.count = 0
        self._veiled = veiled

    def value(self, node: Any, path: Path_) -> Any:
        import yaml

        self.count += 1
        line = node.start_mark.line + 1
        if self.count > MAX_VALUES:
            raise ConfigError(f"{self.name}:{line}: more than {MAX_VALUES} values; aliases count each time; use fewer.")
        if len(path) > MAX_DEPTH:
            raise ConfigError(f"{self.name}:{line}: nested more than {MAX_DEPTH} levels deep; make it flatter.")
        self.origins[path] = Origin(self.name, line, self.kind)
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, str(index))) for index, item in enumerate(node.value)]
        if other := _OTHER_FORM.search(node.value):
            raise ConfigError(f"{self.name}:{line}: {other.group()} is not a valid variable; {_FORMS}.")
        if self._veiled.holds_variable(node.value):
            expanded = self._expanded(node.value, path, line)
            # A plain ${N} may stand for a number: what it expands to is read as YAML again.
            tag = self.loader.resolve(yaml.ScalarNode, expanded, (node.style is None, node.style is not None))
            node = yaml.ScalarNode(tag, expanded, node.start_mark, node.end_mark, style=node.style)
        return self._scalar(node, line)

    def _expanded(self, text: str, path: Path_, line: int) -> str:
        place = f"{self.name}:{line}"

        def expand(written: str) -> str:
            name = VARIABLE.sub(r"\1", written)
            if "${" in written[2:]:
                raise ConfigError(f"{place}: {written}… has a variable inside a variable; {_FORMS}.")
            if value := self.env.get(name, ""):
                self.variables.setdefault(path, []).append((name, value))
            return interpolate(written, self.env, place=place)

        return self._veiled.replace(text, expand)

    def _pairs(self, node: Any, path: Path_) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            # YAML reads a bare `off` or `1` as no text; as a key it can only be meant as one.
            key = key_node.value if isinstance(key_node.value, str) else ""
            if not key or key == "<<" or self._veiled.holds_variable(key):
                raise ConfigError(f"{self.name}:{line}: a key is a plain word, such as agent.")
            if key in seen:
                raise ConfigError(f"{self.name}:{line}: {'.'.join((*path, key))} is set twice in this file; keep one.")
            seen.add(key)
            yield key, self.value(value_node, (*path, key))

    def _scalar(self, node: Any, line: int) -> Any:
        import yaml

        try:
            value = self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise ConfigError(f"{self.name}:{line}: {node.value!r} cannot be read as a plain value.") from error
        # Dates and binaries are YAML types that no key of ours has: the text is what was meant.
        return value if value is None or isinstance(value, bool | int | float | str) else node.value


def interpolate(text: str, env: Mapping[str, str], *, place: str) -> str:
    """`${VAR}` must be set, `${VAR-x}` is x when unset, `${VAR:-x}` is x when unset or empty."""

    def expand(match: re.Match[str]) -> str:
        name, operator, default = match.groups()
        value = env.get(name)
        if operator == ":-" and not value:
            return str(default)
        if value is not None:
            return value
        if operator == "-":
            return str(default)
        raise ConfigError(f"{place}: {name} is not set; set it, or write ${{{name}:-default}}.")

    return VARIABLE.sub(expand, text)
