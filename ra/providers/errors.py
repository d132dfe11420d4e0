"""Translates the error answers of all providers into the tree of `ra.core.errors`."""

import re
import time
from collections.abc import Mapping
from math import isfinite

import msgspec

from ra.core.errors import AuthFailed, Overflowed, ProviderError, QuotaExceeded, Unavailable
from ra.core.value import JsonObject
from ra.providers.overflow import overflow
from ra.providers.vendors import BY_NAME

RETRIED = {408, 409, 425, 429}

# The status that corresponds to an error inside a stream that began with 200.
STATUS_OF = {
    "overloaded_error": 529,
    "overloaded": 529,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "billing_error": 402,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
}

# Patterns as text, for start-up time: `re` compiles and caches each at its first use, which most runs never reach.
_BROKE = (
    r"(?i)insufficient[_ ](quota|balance|credits?|funds)|billing_(error|hard_limit|not_active)|credit balance"
    r"|credits? (are |is )?(exhausted|depleted)|(used|spent) all (available |your )?credits|purchase (more )?credits"
    r"|(spend|usage|monthly|spending) limit (has been )?(reached|exceeded)|payment required"
)
_QUOTA = r"(?i)exceeded your current quota|check your plan and billing|quota[^.]{0,60}Per ?Day"
_SPEED = r"(?i)per.?(min|sec|hour)"
_AUTH = (
    r"(?i)api[_ ]key[_ ](not[_ ]valid|invalid|not found|expired|missing)|unauthenticated|invalid x-api-key"
    r"|(invalid|incorrect|missing|expired)( \S+)? api[_ -]?key"
)
# Defects of a request other than its length; also positions in it, such as messages.3.content, messages[3].role.
_EXPLAINED = (
    r"(?i)un(supported|known|recognized|expected)|(not|n't) support|deprecated|missing|required|malformed|not found"
    r"|does not exist|not (allowed|permitted|available)|must (be|have|not|alternate|match|start|end)|polic(y|ies)"
    r"|safety|invalid (type|value|model|json|schema|base64|image|url|signature|role|tool|parameter|field|enum)|flagged"
    r"|blocked|tool_use|tool_result|tool_call|too many tools|array|function|image"
    r"|thinking|schema|json|temperature|max_\w*tokens|\w+[.\[]\d+\]?\."
)
_WAIT = r"(?i)(?:try again|retry) in (?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)(ms|s))?"
_TAG = r"(?is)<(script|style|head)\b.*?</\1>|<[^>]+>"
_TITLE = r"(?is)<title[^>]*>(.*?)</title>"
_LONGEST = 600


_CHAT_HINT = " A server that speaks Chat Completions only needs --provider openai-chat."


class UnexplainedRefusal(ProviderError):
    """A 400 or 413 whose message explains nothing: the request may have been too large."""


def failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes | str | JsonObject,
    *,
    provider: str = "",
    now: float | None = None,
) -> ProviderError:
    """The error for an HTTP answer, or for an error event inside a stream (status 0 or 200)."""
    names = {name.lower(): value for name, value in headers.items()}
    document, raw = _decoded(body)
    error = _error_of(document)
    message = _message(document, error) or _plain(raw) or "no explanation"
    kinds = _kinds(error)
    evidence = " ".join([*kinds, message, raw if len(raw) < 20_000 else raw[:20_000]])
    status = _status(status, error, kinds)

    if status not in (401, 403) and (size := overflow(evidence, status=status)):
        limit = size.limit or _count(error.get("n_ctx"))
        sent = size.sent or _count(error.get("n_prompt_tokens"))
        return Overflowed(
            f"The request is larger than the model's window: {message} Shorten the input or compact the session.",
            status=status,
            limit=limit,
            sent=sent,
        )
    wait = retry_after(names, now=time.time() if now is None else now)
    if wait is None:
        wait = _wait_in(error, message)
    if status == 401 or (status in (400, 403) and re.search(_AUTH, evidence)):
        return AuthFailed(f"The API key was refused ({status}): {message} {_key_hint(provider)}", status=status)
    if status == 402 or re.search(_BROKE, evidence) or _is_quota(evidence, wait):
        return QuotaExceeded(
            f"The account has no quota or credit left ({status}): {message} Top it up, or choose another provider.",
            status=status,
        )
    if status == 403:
        return AuthFailed(
            f"The API key has no permission for this (403): {message} {_key_hint(provider)}", status=status
        )
    if _retried(status, names, evidence):
        return Unavailable(
            f"The provider could not answer ({status or 'in the stream'}): {message} Try again later.",
            status=status,
            retry_after_s=wait,
        )
    if status == 404:
        return ProviderError(
            f"Unknown model or address (404): {message} See `ra models`, and check the base URL."
            f"{_CHAT_HINT if provider == 'openai' else ''}",
            status=status,
        )
    refusal = f"The provider refused the request ({status}): {message}"
    if status == 413 or (status == 400 and not re.search(_EXPLAINED, message) and not error.get("param")):
        return UnexplainedRefusal(refusal, status=status)
    return ProviderError(refusal, status=status)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """The wait in seconds that the server asks for, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            if name == "retry-after" and (moment := _moment(value)) is not None:
                return max(0.0, moment - now)
            continue
        if isfinite(seconds):
            return max(0.0, seconds)
    return None


def _moment(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # start-up time: 20 ms, and almost no answer has a date

    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _decoded(body: bytes | str | JsonObject) -> tuple[JsonObject, str]:
    """The body as an object ({} if it is not one) and as text."""
    if isinstance(body, dict):
        return body, msgspec.json.encode(body, enc_hook=str).decode()
    raw = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value = msgspec.json.decode(raw.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return {}, raw
    if isinstance(value, list) and value:  # Google sends a stream's error as a list of one
        value = value[0]
    return (value, raw) if isinstance(value, dict) else ({}, raw)


def _error_of(whole: JsonObject) -> JsonObject:
    """The error object: {"error": {...}}, {"response": {"error": {...}}}, or the body itself."""
    response = whole.get("response")
    inside = whole.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if isinstance(inside, dict):
        return inside
    return {"message": inside, **whole} if isinstance(inside, str) else whole


def _message(whole: JsonObject, error: JsonObject) -> str:
    words = error.get("message") or error.get("detail") or whole.get("message") or whole.get("detail")
    metadata = error.get("metadata")  # OpenRouter puts the real provider's message here
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        words = f"{words}: {metadata['raw']}"
    if isinstance(words, (dict, list)):
        words = msgspec.json.encode(words, enc_hook=str).decode()
    return _sentence(words) if isinstance(words, str) else ""


def _plain(raw: str) -> str:
    """The message in a body without JSON: the title and text of a proxy's HTML page, else the body itself."""
    from html import unescape  # start-up time: a table of 2 000 names, for a page that should not have come

    if "<" not in raw:
        return _sentence(raw) if raw.strip() else ""
    title = re.search(_TITLE, raw)
    text = unescape(re.sub(_TAG, " ", raw))
    return _sentence(f"{unescape(title[1]).strip()}: {text}" if title else text) if text.strip() or title else ""


def _sentence(text: str) -> str:
    """One printable line that ends like a sentence."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line if len(line) <= _LONGEST else line[:_LONGEST] + "…"
    return line if line.endswith((".", "!", "?", "…")) else line + "."


def _kinds(error: JsonObject) -> list[str]:
    return [value for key in ("type", "code", "status", "reason") if isinstance(value := error.get(key), str)]


def _status(status: int, error: JsonObject, kinds: list[str]) -> int:
    """The HTTP status; for an error inside a stream, the one that corresponds to its code or type."""
    if status >= 300:
        return status
    for key in ("code", "status", "http_code"):
        value = error.get(key)
        number = int(value) if isinstance(value, (int, float, str)) and str(value).isdigit() else 0
        if 400 <= number < 600:
            return number
    return next((STATUS_OF[kind.lower()] for kind in reversed(kinds) if kind.lower() in STATUS_OF), 0)


def _retried(status: int, names: Mapping[str, str], evidence: str) -> bool:
    """Whether to retry. The server's own statement decides; an unexplained error inside a stream is an outage."""
    word = names.get("x-should-retry", "").lower()
    if word in ("true", "false"):
        return word == "true"
    too_fast = status == 413 and "per min" in evidence.lower()  # Groq's rate limit
    return status in RETRIED or status >= 500 or status == 0 or too_fast


def _is_quota(evidence: str, wait: float | None) -> bool:
    """Whether the quota is used up. Google says so of per-minute limits, too, but then names the limit or the wait."""
    passes = (wait is not None and wait <= 120) or re.search(_SPEED, evidence)
    return re.search(_QUOTA, evidence) is not None and not passes


def _wait_in(error: JsonObject, message: str) -> float | None:
    """The wait in seconds that a body states: Google's RetryInfo, or "try again in 1m2.5s"."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    match = re.search(_WAIT, message)
    if not match or not (match[1] or match[2]):
        return None
    return float(match[1] or 0) * 60 + float(match[2] or 0) * (0.001 if (match[3] or "").lower() == "ms" else 1.0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _key_hint(provider: str) -> str:
    vendor = BY_NAME.get(provider)
    return f"Set a valid key in {vendor.key if vendor else 'the variable of the provider'}."
