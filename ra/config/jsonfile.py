"""Checks a JSON configuration file, and rewrites it so that the YAML reader finds the same values."""

import json
import re
from decimal import Decimal
from typing import NoReturn

from ra.core.errors import ConfigError

LARGEST_EXPONENT = 400  # beyond it a number is none that any key could take; written out it would fill the memory

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|\t')
_PAIR = re.compile(r"\\u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|\\.")


def check(text: str, *, name: str) -> None:
    """Raise ConfigError, with the line, if the text is not JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}: this is not valid JSON: {_explained(error)}.") from error
    except ValueError as error:
        raise ConfigError(f"{name}: this is not valid JSON: {error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deep; make it flatter.") from error


def as_yaml(text: str) -> str:
    """Valid JSON with YAML's spelling of what the two read differently (tabs, 1e3, surrogate pairs). Lines stay."""
    return _TOKEN.sub(lambda match: _written(match.group()), text)


def _written(text: str) -> str:
    if text == "\t":
        return " "  # JSON strings contain no tabs
    if text.startswith('"'):
        return _PAIR.sub(lambda match: _joined(match) if match.group(1) else match.group(), text)
    exponent = text.lower().partition("e")[2]
    if not exponent or abs(int(exponent)) > LARGEST_EXPONENT:
        return text
    return format(Decimal(text), "f")


def _joined(pair: re.Match[str]) -> str:
    high, low = (int(half, 16) for half in pair.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + low - 0xDC00:08x}"


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _explained(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos :].lstrip()
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments; take this one out, or use ra.yaml"
    if rest.lstrip(", \t\r\n").startswith(("}", "]")):  # from Python 3.13 on the error stands at the comma
        return "a value is missing here, or there is one comma too many before it"
    return error.msg[:1].lower() + error.msg[1:]
