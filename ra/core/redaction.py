"""Takes the keys in use out of every text that is shown, logged or stored: a server may echo what it was sent."""

import re

MIN_SECRET = 8
"""Shorter texts stand in too many words to be taken out of them."""

REDACTED = "[redacted]"
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s]+)@")


class Redaction:
    """The keys of this process. They are told once, by whoever reads a configuration or an environment."""

    def __init__(self) -> None:
        self._keys: tuple[str, ...] = ()

    def know(self, *secrets: str) -> None:
        passwords = [found[1] for secret in secrets for found in _PASSWORD.finditer(secret)]
        every = {*self._keys, *(text for text in (*secrets, *passwords) if _is_key(text))}
        self._keys = tuple(sorted(every, key=len, reverse=True))  # the longest first: one may be a part of another

    def __call__(self, text: str) -> str:
        for key in self._keys:
            if key in text:
                text = text.replace(key, REDACTED)
        return text


def _is_key(text: str) -> bool:
    """Not a word and not a path, which a variable such as AUTH_HOST or SSH_AUTH_SOCK may hold."""
    return len(text.strip()) >= MIN_SECRET and not text.startswith("/") and not (text.isalpha() and len(text) < 16)


redacted = Redaction()
"""One for the process: errors are made where no object could bring it."""
