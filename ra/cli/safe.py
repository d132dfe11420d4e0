"""What may reach a terminal? Text, line ends and tabs; never a control sequence or an invisible character."""

import re

from ra.core.text import one_line as shortened

# C0 (but \t and \n), DEL, C1; bidirectional overrides; fillers, tags and the variation selectors that are used to hide
# text. Joiners and the two selectors of emoji stay: without them words and pictures fall apart.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with everything that could steer a terminal shown as a picture of itself, or left out."""
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 120) -> str:
    """The text as one visible line of at most `width` characters."""
    return visible(shortened(text, width))


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "�" if code < 0xA0 or 0xD800 <= code <= 0xDFFF else ""
