"""Removes the keys in use from every text that is shown, logged or stored: a server may echo what it was sent."""

import re

MIN_SECRET = 8
"""Shorter texts occur within too many ordinary words to be redacted."""

REDACTED = "[redacted]"
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s]+)@")


class Redaction:
    """The keys of this process, registered once by the code that reads the configuration and the environment."""

    def __init__(self) -> None:
        self._keys: tuple[str, ...] = ()

    def register(self, *secrets: str) -> None:
        passwords = [match[1] for secret in secrets for match in _PASSWORD.finditer(secret)]
        keys = {*self._keys, *(text for text in (*secrets, *passwords) if _is_key(text))}
        self._keys = tuple(sorted(keys, key=len, reverse=True))  # longest first: one key may be part of another

    def __call__(self, text: str) -> str:
        for key in self._keys:
            if key in text:
                text = text.replace(key, REDACTED)
        return text


def _is_key(text: str) -> bool:
    """Whether a value can be a key: not a word or a path, such as AUTH_HOST or SSH_AUTH_SOCK hold."""
    return len(text.strip()) >= MIN_SECRET and not text.startswith("/") and not (text.isalpha() and len(text) < 16)


redacted = Redaction()
"""One per process: errors are raised in places that no object could reach."""
