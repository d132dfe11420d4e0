"""Prepares text for storage, terminals, sentences and labelled blocks."""

import re

# C0 (but \t and \n), DEL, C1; bidirectional overrides; fillers, tags and the variation selectors that are used to hide
# text. Joiners and the two selectors of emoji stay: words of some scripts and combined emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    """Text that can be stored and sent: a lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def one_line(text: str, most: int) -> str:
    """Text as one line of at most `most` characters."""
    line = " ".join(text[: 4 * most].split())  # the text may be a megabyte, and the line is short
    if len(line) <= most and len(text) > 4 * most:  # mostly blanks
        line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def shown(name: str) -> str:
    """A file's name for use in a sentence: one line of valid Unicode, whatever the name contains."""
    name = clean(name)
    return name if name.isprintable() else repr(name)[1:-1]


def quoted(value: str) -> str:
    """A value escaped for a double-quoted attribute. `html.escape` would load a table of 2 000 names for it."""
    value = clean(value).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return value if value.isprintable() else "".join(c if c.isprintable() else f"&#{ord(c)};" for c in value)


def label(tag: str, content: str, **attributes: str) -> str:
    """`<tag name="value">content</tag>`, with the content unchanged.

    When the content contains this closing tag, the tag gets a suffix that does not occur in it.
    """
    name = tag
    salt = 0
    while re.search(rf"</\s*{re.escape(name)}", content, re.IGNORECASE):
        from hashlib import sha256  # as in `reference`

        digest = sha256(f"{salt}{content}".encode("utf-8", "replace")).hexdigest()
        name, salt = f"{tag}-{digest[:8]}", salt + 1
    opening = " ".join([name, *(f'{key}="{quoted(value)}"' for key, value in attributes.items())])
    return f"<{opening}>\n{content}{'' if content.endswith(chr(10)) else chr(10)}</{name}>"


def reference(text: str) -> str:
    """The reference of text that is stored outside the log: `~` and twelve hex digits of a hash of its content."""
    from hashlib import sha256  # loads OpenSSL, which most runs do not need

    return "~" + sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def visible(text: str) -> str:
    """The text with every character that could control a terminal replaced by a visible symbol, or left out."""
    return _UNSAFE.sub(_picture, text.replace("\r\n", "\n"))


def visible_line(text: str, width: int = 120) -> str:
    """The text as one visible line of at most `width` characters."""
    return visible(one_line(text, width))


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "�" if code < 0xA0 or 0xD800 <= code <= 0xDFFF else ""
