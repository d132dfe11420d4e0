"""Recognises keys, tokens and passwords by their form, so that they are neither remembered nor shown again."""

import re

REDACTED = "[redacted]"

_PATTERNS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}",  # OpenAI, Anthropic, Stripe
    r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}",
    r"\bxox[abprs]-[\w-]{8,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",  # a JSON web token
    r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",  # user:password in an address
    r"(?<=earer )[\w.~+/=-]{12,}",
)
# name = value, where the name says that the value is a secret: only the value is removed.
_NAMED = re.compile(
    r"(?P<name>\b[\w.-]*(?:passw(?:or)?d|passwort|secret|token|api[_-]?key|access[_-]?key|credential)s?\b[\"']?\s*(?:[:=]|\bis\b)\s*[\"']?)"
    r"(?P<value>[^\s\"',;]{4,})",
    re.IGNORECASE,
)
# A long run of mixed letters and digits is not a word. Commit hashes (hexadecimal only) are not secrets.
_RANDOM = re.compile(r"(?<![\w/.-])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*\d)[A-Za-z0-9_+/=-]{32,}(?![\w/.-])")


def redact(text: str) -> str:
    for pattern in _PATTERNS:
        text = re.sub(pattern, REDACTED, text, flags=re.DOTALL)
    text = _NAMED.sub(lambda match: match["name"] + REDACTED, text)
    return _RANDOM.sub(REDACTED, text)
