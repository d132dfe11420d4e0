"""Recognise errors that mean that the request was larger than the window, and read the window from them.

No list of phrases is complete: what no pattern knows is judged by its words, and what its words do not explain by
what the endpoint took and refused before.
"""

import re
from typing import NamedTuple

_N = r"(?:\d{1,3}(?:[,._'\u00a0\u202f]\d{3})+|\d+)"
_LIMIT = rf"(?P<limit>{_N})"
_SENT = rf"(?P<sent>{_N})"


class Overflow(NamedTuple):
    limit: int | None
    sent: int | None


# Pattern, and an answer as it was seen. The first that matches counts, so those with numbers stand first.
PATTERNS: tuple[tuple[str, str], ...] = (
    # Anthropic, also through Bedrock and Vertex
    (rf"prompt is too long: {_SENT} tokens > {_LIMIT}", "prompt is too long: 213462 tokens > 200000 maximum"),
    (
        rf"input length and `?max_tokens`? exceed context limit: {_SENT} \+ {_N} > {_LIMIT}",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or "
        "`max_tokens` and try again",
    ),
    # Fireworks
    (
        rf"prompt is too long: {_SENT}, model maximum context length: {_LIMIT}",
        "The prompt is too long: 140000, model maximum context length: 131071",
    ),
    # OpenAI, Azure, DeepSeek, vLLM, Groq, Together; OpenRouter says "This endpoint's"
    (
        rf"maximum context length (?:is|of) {_LIMIT} tokens?.{{0,40}}?"
        rf"(?:you requested|resulted in|has|requested a total of)(?: about)? {_SENT}",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9021 tokens. Please "
        "reduce the length of the messages.",
    ),
    (
        rf"maximum context length (?:is|of) {_LIMIT} tokens and your request has {_SENT} input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 "
        "tokens and your request has 1200 input tokens (5000 > 4096 - 1200).",
    ),
    (rf"maximum context length (?:is|of) {_LIMIT}", "This model's maximum context length is 128,000 tokens."),
    (
        rf"passed {_SENT} input tokens .{{0,80}}context length is only {_LIMIT}",
        "You passed 9001 input tokens and requested 100 output tokens. However, the model's context length is only "
        "8192 tokens, resulting in a maximum input length of 8092 tokens.",
    ),
    (
        rf"prompt \(length {_SENT}\) is longer than the maximum model length of {_LIMIT}",
        "The decoder prompt (length 5001) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
    ),
    # SGLang
    (
        rf"input \({_SENT} tokens\) is longer than the model's context length \({_LIMIT} tokens\)",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    ),
    # Google
    (
        rf"input token count \(?{_SENT}\)? exceeds the maximum number of tokens allowed \(?{_LIMIT}",
        "The input token count (1200134) exceeds the maximum number of tokens allowed (1048576).",
    ),
    (
        rf"exceeds the maximum number of (?:input )?tokens allowed:? \(?{_LIMIT}",
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
    ),
    # llama.cpp
    (
        rf"request \({_SENT} tokens\) exceeds the available context size \({_LIMIT} tokens\)",
        "request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it",
    ),
    # Mistral
    (
        rf"contains {_SENT} tokens.{{0,60}}too large for model with {_LIMIT} maximum context length",
        "Prompt contains 40112 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ),
    # xAI
    (
        rf"maximum prompt length is {_LIMIT} but the request contains {_SENT}",
        "This model's maximum prompt length is 131072 but the request contains 140220 tokens.",
    ),
    # Cohere
    (
        rf"tokens in the prompt cannot exceed {_LIMIT} - received {_SENT}",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5123. Try using a shorter "
        "prompt.",
    ),
    (
        rf"size limit exceeded by {_N} tokens.{{0,80}}limit for this model is {_LIMIT}",
        "too many tokens: size limit exceeded by 1234 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 128000 tokens.",
    ),
    (
        rf"total number of tokens \(prompt and prediction\) cannot exceed {_LIMIT} - received {_SENT}",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 4096 - received 5400. Try using "
        "a shorter prompt or a smaller max_tokens value.",
    ),
    # Vertex
    (
        rf"input token count is {_SENT} but (?:the )?model only supports up to {_LIMIT}",
        "Unable to submit request because the input token count is 1200134 but model only supports up to 1048576. "
        "Reduce the input token count and try again.",
    ),
    # Together, Hugging Face TGI
    (
        rf"must be <= {_LIMIT}\. Given: {_SENT} `?inputs`? tokens",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and "
        "500 `max_new_tokens`",
    ),
    (
        rf"`inputs` must have less than {_LIMIT} tokens\. Given: {_SENT}",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5012",
    ),
    # Gateways that show their sum
    (
        rf"(?:prompt|input)[_ ]tokens?\W{{1,3}}{_SENT}\b[^.\n]{{0,40}}> "
        rf"(?:context|window|limit|max)\w*\W{{1,3}}{_LIMIT}",
        "prompt_tokens (9214) + max_tokens (1024) > context_window (8192)",
    ),
    # GitHub Copilot, Moonshot, DashScope, LM Studio
    (
        rf"prompt token count of {_SENT} exceeds the limit of {_LIMIT}",
        "prompt token count of 130201 exceeds the limit of 128000",
    ),
    (
        rf"exceeded model token limit: {_LIMIT}(?: \(requested: {_SENT}\))?",
        "Invalid request: Your request exceeded model token limit: 131072 (requested: 140002)",
    ),
    (
        rf"range of input length should be \[\d+, {_LIMIT}\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
    ),
    (
        rf"first {_SENT} tokens when context the overflows.{{0,80}}context length of only {_LIMIT}",
        "Trying to keep the first 9012 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
    ),
    # Without numbers: OpenAI Responses, Bedrock, Ollama, older llama.cpp, Groq, MiniMax, and codes
    (r"exceeds the context window", "Your input exceeds the context window of this model. Please adjust your input."),
    (r"prompt is too long", "Prompt is too long"),
    (r"input is too long for requested model", "ValidationException: Input is too long for requested model."),
    # vLLM, when the prompt leaves less than nothing for the answer
    (r"max_\w*tokens must be at least 1, got -\d", "max_tokens must be at least 1, got -1022."),
    (r"exceeded max context length by", "prompt too long; exceeded max context length by 412 tokens"),
    (
        r"input length exceeds (?:the |maximum )?(?:maximum )?context length",
        "the input length exceeds the context length",
    ),
    (
        r"exceeds the available context size",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    ),
    (r"larger than the max context size", "input is larger than the max context size. skipped"),
    (
        r"reduce the length of the messages",
        "Please reduce the length of the messages or completion.",
    ),
    (r"context window exceeds limit", "invalid params, context window exceeds limit (2013)"),
    # Z.ai, Bedrock Nova, Ollama
    (r"prompt exceeds max(?:imum)? length", '{"error": {"code": "1261", "message": "Prompt exceeds max length"}}'),
    (
        r"input tokens exceeded|number of input tokens exceeds maximum length",
        "ValidationException: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the "
        "input to try again.",
    ),
    (r"prompt (?:is )?too long", "prompt too long for the model's context"),
    (r"context_length_exceeded", '{"error": {"code": "context_length_exceeded", "message": ""}}'),
    (r"exceed_context_size_error", '{"error": {"type": "exceed_context_size_error", "n_ctx": 2048}}'),
    (r"context_window_exceeded", '{"error": {"code": "model_context_window_exceeded"}}'),
    (r"string_above_max_length", '{"error": {"code": "string_above_max_length", "message": "string too long"}}'),
    (r"request_too_large", '{"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}'),
)

# A limit of speed, not of size: "Request too large for gpt-4 … on tokens per min (TPM): Limit 10000, Requested 12000".
_SPEED = r"(?i)tokens? per (?:min|hour|day)|requests? per (?:min|hour|day)|\b[TR]P[MD]\b|rate.?limit"


# The words of a refusal for length, in either order; and what they are said of that is no conversation.
_LONG = (
    r"exceed\w*|too (?:long|large|many|big)|(?:longer|larger|greater|more) than|only supports? up to"
    r"|over the (?:limit|max)"
)
_WHAT = r"(?:context|prompt|(?:input|text|request|sequence|conversation|chat|history)(?: \w+)?|tokens?)\b"
_WORDS = rf"(?i)\b{_WHAT}[^.\n]{{0,80}}\b(?:{_LONG})|\b(?:{_LONG})\b[^.\n]{{0,80}}\b{_WHAT}"
_OTHERWISE = (
    r"(?i)max\w*.?tokens\b.{0,20}(?:must|:|is too large|cannot|greater|exceeds)|maximum output|output tokens"
    r"|budget_tokens|completion tokens|expected an? (?:array|string)|images?\b(?![^.\n]{0,40}\btokens?\b)|\bMB\b"
    r"|megabytes|\btools?\b|stop sequences|deadline"
)
_UNIT = r"(?P<unit>[km])?\b(?! bytes| char)"
_NAMED = (
    r"(?i)\b(?:up to|at most|(?:cannot|not) exceed|max(?:imum)?(?: \w+){0,3}?|limit)(?: of| is|:)?[ =]"
    rf"\(?{_LIMIT}{_UNIT}"
)
_SIZED = rf"(?i)\b{_LIMIT}{_UNIT}[- ]tokens? (?:context|window|limit)"
_UNITS = {"": 1, "k": 1000, "m": 1_000_000}
_FIGURE = rf"(?i)(?<![\d.,])(?<!code )(?<!code: )(?<!code\": )(?<!code\":){_N}(?![km\d])\b(?! bytes| char)"
_SMALLEST = 256  # tokens: a smaller number in such a sentence is no window
_ANSWER = r"(?i)output|completion|max_\w*tokens"  # one of two figures may be its room
_ALIKE = 0.5  # of what was sent: two figures that are further apart are hardly a window and what went over it


def overflow(text: str, *, status: int = 400) -> Overflow | None:
    """What an error text says about the window; None when it says nothing about it."""
    if re.search(_SPEED, text):
        return None
    for pattern, _ in PATTERNS:
        if match := re.search(pattern, text, re.IGNORECASE | re.DOTALL):
            numbers = match.groupdict()
            return Overflow(_number(numbers.get("limit")), _number(numbers.get("sent")))
    if status in (400, 413, 422) and re.search(_WORDS, text) and not re.search(_OTHERWISE, text):
        return _figures(text)
    return None


def _figures(text: str) -> Overflow:
    """The window that a text of unknown form names: as a maximum, or as the smaller one of two figures."""
    figures = sorted({figure for match in re.findall(_FIGURE, text) if (figure := _number(match) or 0) >= _SMALLEST})
    if len(figures) == 2 and figures[0] >= figures[1] * _ALIKE and not re.search(_ANSWER, text):
        return Overflow(*figures)
    named = re.search(_NAMED, text) or re.search(_SIZED, text)
    limit = (_number(named["limit"]) or 0) * _UNITS[(named["unit"] or "").lower()] if named else 0
    return Overflow(limit if limit >= _SMALLEST else None, None)


def _number(text: str | None) -> int | None:
    return int(re.sub(r"\D", "", text)) if text else None


SMALL_BYTES = 16_000  # of a request: about 4 000 tokens; windows below that do not refuse without a word
_HALF = 0.55  # of the refused request: a cut aims at a number of tokens, and bytes follow only roughly


class Unexplained:
    """Judges refusals that say nothing, by the sizes of the requests that this endpoint took and refused before."""

    def __init__(self) -> None:
        self._taken_bytes = 0
        self._refused: dict[str, int] = {}  # by what was said, without its numbers: the largest request

    def take(self, size_bytes: int) -> None:
        self._taken_bytes = max(self._taken_bytes, size_bytes)
        self._refused.clear()

    def may_be_overflow(self, size_bytes: int, text: str) -> bool:
        """Whether to try a shorter request. A refusal that comes back at half the size is what it says it is."""
        if size_bytes <= max(self._taken_bytes, SMALL_BYTES):
            return False
        largest = self._refused.setdefault(_without_numbers(text), size_bytes)
        return size_bytes > largest * _HALF

    def is_first(self, text: str) -> bool:
        """Whether nothing was refused with these words since a request was taken."""
        return _without_numbers(text) not in self._refused


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+|[0-9a-f]{8,}", "", text)
