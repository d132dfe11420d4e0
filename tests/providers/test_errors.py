"""Does one translation understand every provider's errors?"""

# What goes over a wire is compared line by line, as it is.
# ruff: noqa: E501
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import AuthFailed, Overflowed, ProviderError, QuotaExceeded, Unavailable
from ra.core.value import encode
from ra.providers.errors import UnexplainedRefusal, failure, retry_after
from ra.providers.overflow import PATTERNS, Overflow, overflow

NUMBERS = {
    "prompt is too long: 213462": (200000, 213462),
    "input length and": (200000, 190000),
    "The prompt is too long: 140000": (131071, 140000),
    "your messages resulted in 9021": (8192, 9021),
    "is too large: 5000": (4096, 1200),
    "is 128,000 tokens": (128000, None),
    "You passed 9001": (8192, 9001),
    "(length 5001)": (4096, 5001),
    "(5000 tokens)": (4096, 5000),
    "(1200134)": (1048576, 1200134),
    "count exceeds": (1048576, None),
    "(5031 tokens)": (2048, 5031),
    "40112": (32768, 40112),
    "140220": (131072, 140220),
    "received 5123": (4081, 5123),
    "exceeded by 1234": (128000, None),
    "Given: 4000": (4097, 4000),
    "Given: 5012": (4096, 5012),
    "130201": (128000, 130201),
    "140002": (131072, 140002),
    "98304": (98304, None),
    "9012": (4096, 9012),
    "received 5400": (4096, 5400),
    "count is 1200134": (1048576, 1200134),
    "prompt_tokens (9214)": (8192, 9214),
}


@pytest.mark.parametrize(("pattern", "example"), PATTERNS, ids=[example[:40] for _, example in PATTERNS])
def test_each_overflow_example_is_read_with_its_numbers(pattern: str, example: str) -> None:
    limit, sent = next((numbers for words, numbers in NUMBERS.items() if words in example), (None, None))
    assert overflow(example) == Overflow(limit, sent)
    if "(?P<limit>" in pattern:
        assert limit is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "This endpoint's maximum context length is 163840 tokens. However, you requested about 200,123 tokens "
            "(195123 of text input, 5000 in the output). Please reduce the length of either one.",
            Overflow(163840, 200123),
        ),
        (
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (69000 in the "
            "messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            Overflow(65536, 70000),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
            "5000 tokens: 4900 tokens from the input messages and 100 tokens for the completion.",
            Overflow(4096, 5000),
        ),
        ("The model returned the following errors: prompt is too long: 1 tokens > 0 maximum", Overflow(0, 1)),
        ("PROMPT IS TOO LONG: 1_200_000 tokens > 1_000_000 maximum", Overflow(1000000, 1200000)),
        ("Request too large for gpt-4 in organization o on tokens per min (TPM): Limit 10000, Requested 12000.", None),
        ("Rate limit reached for requests. The maximum context length is 8192.", None),
        ("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", None),
        # Phrases that no pattern knows: judged by their words.
        ("Your chat history is larger than what fits: the limit is 16,000 tokens.", Overflow(16000, None)),
        ("Sorry, too many input tokens (max 20000).", Overflow(20000, None)),
        ("The conversation exceeds what this deployment accepts.", Overflow(None, None)),
        ("Requests exceeding the context are rejected by policy 42", Overflow(None, None)),
        ("Context length exceeded: max input 8k tokens.", Overflow(8000, None)),
        ("request exceeds the model's 32K-token context", Overflow(32000, None)),
        ("Input too large. Max 1M tokens.", Overflow(1_000_000, None)),
        ("sequence length 9214 exceeds model capacity of 8192", Overflow(8192, 9214)),
        ("Token limit exceeded (limit=8,192, actual=9,214)", Overflow(8192, 9214)),
        ('Too many tokens: 50000 were sent. {"code": 40303}', Overflow(None, None)),
        ("Too many tokens: 5000 in the prompt and 4096 for the completion", Overflow(None, None)),
        ("Total characters of the input must not exceed 30000 characters, got 41233.", Overflow(None, None)),
        ("Total tokens of image and text exceed max message tokens.", Overflow(None, None)),
        (
            "inputs tokens + max_new_tokens must be <= 8192. Given: 9214 inputs tokens and 20 of answer",
            Overflow(8192, 9214),
        ),
        ("Too many tools: 140 tools exceed the maximum of 128.", None),
        ("too many tokens: max tokens must be less than or equal to 4096, the maximum output length", None),
        ("Invalid 'input[3].id': string too long. Expected a string with maximum length 64.", None),
        ("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes", None),
        ("Hello", None),
        ("", None),
    ],
)
def test_variants_and_what_is_no_overflow(text: str, expected: Overflow | None) -> None:
    assert overflow(text) == expected


def anthropic_error(kind: str, message: str) -> bytes:
    return encode({"type": "error", "error": {"type": kind, "message": message}})


def openai_error(message: str, code: object = None, kind: str = "invalid_request_error") -> bytes:
    return encode({"error": {"message": message, "type": kind, "param": None, "code": code}})


def google_error(code: int, message: str, status: str, *details: object) -> bytes:
    return encode({"error": {"code": code, "message": message, "status": status, "details": details}})


LLAMA = (
    b'{"error":{"code":400,"message":"request (5031 tokens) exceeds the available context size (2048 tokens), '
    b'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":2048}}'
)
GOOGLE_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
GOOGLE_WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
GOOGLE_QUOTA = "You exceeded your current quota, please check your plan and billing details."
CLOUDFLARE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad &amp; gone</h1></body></html>"


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "attributes"),
    [
        (400, {}, anthropic_error("invalid_request_error", "prompt is too long: 5 tokens > 4 maximum"), Overflowed, {"limit": 4, "sent": 5}),
        (413, {}, anthropic_error("request_too_large", "Request exceeds the maximum size"), Overflowed, {"limit": None}),
        (400, {}, LLAMA, Overflowed, {"limit": 2048, "sent": 5031, "status": 400}),
        (500, {}, b'{"error": {"type": "exceed_context_size_error", "n_ctx": 99, "n_prompt_tokens": 100}}', Overflowed, {"limit": 99, "sent": 100}),
        (400, {}, openai_error("Your input exceeds the context window of this model.", "context_length_exceeded"), Overflowed, {"limit": None}),
        (413, {}, openai_error("Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000", "rate_limit_exceeded"), Unavailable, {}),
        (429, {"Retry-After": "7"}, openai_error("Rate limit reached", "rate_limit_exceeded"), Unavailable, {"retry_after_s": 7.0}),
        (429, {}, openai_error("Rate limit reached. Please try again in 1m2.5s.", "rate_limit_exceeded"), Unavailable, {"retry_after_s": 62.5}),
        (429, {}, openai_error("Please try again in 250ms."), Unavailable, {"retry_after_s": 0.25}),
        (429, {}, openai_error("You exceeded your current quota, please check your plan.", "insufficient_quota"), QuotaExceeded, {"status": 429}),
        (429, {}, google_error(429, GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", GOOGLE_WAIT), Unavailable, {"retry_after_s": 34.5}),
        (429, {}, google_error(429, GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", {"quotaId": "RequestsPerDay"}), QuotaExceeded, {}),
        (400, {}, anthropic_error("invalid_request_error", "Your credit balance is too low to access the API."), QuotaExceeded, {}),
        (402, {}, b'{"error":{"message":"Insufficient Balance"}}', QuotaExceeded, {"status": 402}),
        (401, {}, anthropic_error("authentication_error", "invalid x-api-key"), AuthFailed, {"status": 401}),
        (401, {}, b'{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}', AuthFailed, {}),
        (400, {}, google_error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", GOOGLE_KEY), AuthFailed, {}),
        (403, {}, anthropic_error("permission_error", "no access to the model"), AuthFailed, {"status": 403}),
        (404, {}, anthropic_error("not_found_error", "model: claude-x"), ProviderError, {"status": 404}),
        (400, {}, anthropic_error("invalid_request_error", "messages: text content blocks must be non-empty"), ProviderError, {"status": 400}),
        (422, {}, b'{"detail":[{"loc":["body"],"msg":"field required"}]}', ProviderError, {"status": 422}),
        (529, {}, anthropic_error("overloaded_error", "Overloaded"), Unavailable, {"status": 529, "retry_after_s": None}),
        (503, {"retry-after-ms": "1500"}, google_error(503, "The model is overloaded.", "UNAVAILABLE"), Unavailable, {"retry_after_s": 1.5}),
        (502, {}, CLOUDFLARE, Unavailable, {"status": 502}),
        (500, {"x-should-retry": "false"}, b"", ProviderError, {"status": 500}),
        (400, {"X-Should-Retry": "true"}, b"odd", Unavailable, {"status": 400}),
        (408, {}, b"", Unavailable, {}),
        (409, {}, b"", Unavailable, {}),
        (302, {}, b"moved", ProviderError, {"status": 302}),
        (429, {"retry-after": "1"}, openai_error("x", "insufficient_quota"), QuotaExceeded, {}),
        (429, {}, openai_error("Rate limit reached on tokens per min (TPM). Add a payment method at https://platform.openai.com/account/billing.", "rate_limit_exceeded"), Unavailable, {}),
        (429, {}, google_error(429, GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", {"quotaId": "RequestsPerMinute"}), Unavailable, {}),
    ],
)  # fmt: skip
def test_an_answer_becomes_the_right_error(
    status: int, headers: dict[str, str], body: bytes, kind: type[ProviderError], attributes: dict[str, Any]
) -> None:
    error = failure(status, headers, body)
    assert type(error) is kind, error
    assert {name: getattr(error, name) for name in attributes} == attributes


@pytest.mark.parametrize(
    ("event", "kind", "status"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, Unavailable, 529),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, UnexplainedRefusal, 400),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, Unavailable, 429),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            Unavailable,
            500,
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "x"}}},
            UnexplainedRefusal,
            400,
        ),
        ({"error": {"code": 502, "message": "Provider disconnected"}}, Unavailable, 502),
        ({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}, Unavailable, 503),
        ({"error": {"message": "prompt is too long: 5 tokens > 4 maximum"}}, Overflowed, 0),
        ({"error": "something"}, Unavailable, 0),
        ({"error": {"code": "insufficient_quota", "message": "x"}}, QuotaExceeded, 429),
    ],
)
def test_an_error_inside_a_stream_stands_for_a_status(event: Any, kind: type[ProviderError], status: int) -> None:
    error = failure(200, {}, event)
    assert (type(error), error.status) == (kind, status)


def test_messages_are_one_printable_line_that_says_what_to_do() -> None:
    error = failure(401, {}, anthropic_error("authentication_error", "bad\x1b[31m key\n\nhere"), provider="anthropic")
    assert str(error) == "The API key was refused (401): bad [31m key here. Set a valid key in ANTHROPIC_API_KEY."
    page = failure(502, {}, CLOUDFLARE)
    assert str(page) == "The provider could not answer (502): 502 Bad Gateway: Bad & gone. Try again later."
    assert len(str(failure(400, {}, "x" * 10_000))) < 800


def test_openrouters_inner_error_is_told() -> None:
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "prompt is too long: 9 tokens > 8 maximum"}}}  # fmt: skip
    error = failure(400, {}, body)
    assert isinstance(error, Overflowed)
    assert (error.limit, error.sent) == (8, 9)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "20", "retry-after": "9"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=60.0) == seconds


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "status", "details", "response", "detail", "metadata", "raw"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 599), JSON | st.binary(max_size=40))
def test_no_body_is_too_odd(status: int, body: Any) -> None:
    raw = body if isinstance(body, (bytes, dict)) else encode(body)
    assert str(failure(status, {}, raw))
