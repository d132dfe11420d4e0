"""Reads the head of a Markdown file that skills and commands begin with: `key: value` lines between two `---`.

A reader of our own: importing one for all of YAML would cost a prompt more time than all the rest of a skill.
"""

import re

_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*))?$")
_BLOCK = re.compile(r"[|>][+-]?\d?$")


class BrokenHead(ValueError):
    """The head does not end, or is no head; the text says what is wrong."""


def split(text: str) -> tuple[dict[str, str], str]:
    """The fields of the head, keys in lower case, and the body behind it. Raises BrokenHead."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}, text.strip()
    end = next((place for place in range(1, len(lines)) if lines[place].rstrip() in ("---", "...")), None)
    if end is None:
        raise BrokenHead("its head begins with --- and does not end with one")
    return _fields(lines[1:end]), "\n".join(lines[end + 1 :]).strip()


def _fields(lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    parts: list[str] = []
    key, fold = "", True
    for line in lines:
        match = _KEY.match(line)
        if match is None:
            if key and (line.startswith((" ", "\t", "- ")) or not line.strip()):
                parts.append(line.strip())
            elif line.strip() and not line.lstrip().startswith("#"):
                raise BrokenHead(f"the line {line.strip()[:60]!r} of its front matter is not `key: value`")
            continue
        if key:
            fields[key] = _scalar(parts, fold=fold)
        key, value = match[1].lower(), (match[2] or "").strip()
        block = _BLOCK.match(value)
        fold = not (block and value.startswith("|"))
        parts = [] if block else [value]
    if key:
        fields[key] = _scalar(parts, fold=fold)
    return fields


def _scalar(parts: list[str], *, fold: bool) -> str:
    if not fold:
        return "\n".join(parts).strip()
    text = " ".join(part.removeprefix("- ") for part in parts if part)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else inner.replace('\\"', '"').replace("\\n", "\n")
    return re.sub(r"\s#.*$", "", text)
