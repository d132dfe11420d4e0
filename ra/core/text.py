"""How is text from anywhere made fit to be stored, named, framed and shown? Pure functions that all packages share."""


def clean(text: str) -> str:
    """Text that can be stored and sent: a lone surrogate, which UTF-8 cannot carry, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def one_line(text: str, most: int) -> str:
    """Text as one line of at most `most` characters."""
    words = " ".join(text[: 4 * most].split())  # the text may be a megabyte, and the line is short
    if len(words) <= most and len(text) > 4 * most:  # mostly blanks
        words = " ".join(text.split())
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def shown(name: str) -> str:
    """A file's name inside a sentence: on one line and in valid Unicode, whatever the file is called."""
    name = clean(name)
    return name if name.isprintable() else repr(name)[1:-1]


def quoted(value: str) -> str:
    """A value for between the double quotes of an attribute. `html.escape` would load a table of 2 000 names for it."""
    value = clean(value).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return value if value.isprintable() else "".join(c if c.isprintable() else f"&#{ord(c)};" for c in value)


def reference(text: str) -> str:
    """The name of text that is kept outside the log, by its content: `~` and twelve hex digits."""
    from hashlib import sha256  # loads OpenSSL, which most runs do not need

    return "~" + sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
