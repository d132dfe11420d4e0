"""Middleware for ra: take secrets out of tool results before the model sees them and before anything is stored.

    agent:
      middleware:
        afterToolExecution: [./middleware/redact_secrets.py]

Add what your company's secrets look like to FAMILIES. A pattern with a group redacts the group alone.
"""

import re

FAMILIES = {
    "private key": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\Z)",
    "Anthropic key": r"\bsk-ant-[\w-]{16,}",
    "OpenAI key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}",
    "AWS key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "AWS secret": r"(?i)aws.{0,20}?secret.{0,20}?[=:]\s*[\"']?([A-Za-z0-9/+=]{40})\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})",
    "GitLab token": r"\bgl(?:pat|ptt|dt|rt|cbt)-[\w-]{20,}",
    "Google key": r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}",
    "Slack token": r"\bxox[abeoprs]-[\w-]{10,}|https://hooks\.slack\.com/services/[\w/]+",
    "Stripe key": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}",
    "package registry token": r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[\w-]{50,}",
    "Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "SendGrid key": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "JSON web token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+",
    "password in a URL": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,80}:([^\s/@\"']{1,200})@",
    "authorization header": r"(?i)\bauthorization\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+([\w.~+/=-]{8,})",
    "secret setting": (
        r"(?i)\b[\w.-]{0,40}(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret)"
        r"[\"']?\s*[:=]\s*[\"']?(?!\[redacted)([^\s\"',;)}]{6,})"
    ),
}

_PATTERNS = [(family, re.compile(pattern, re.DOTALL)) for family, pattern in FAMILIES.items()]


def after_tool_execution(ctx):
    clean = redact(ctx.result.content)
    if clean != ctx.result.content:
        ctx.result.content = clean


def redact(text):
    for family, pattern in _PATTERNS:
        text = pattern.sub(lambda found, family=family: _without(found, f"[redacted: {family}]"), text)
    return text


def _without(found, mark):
    if not found.re.groups:
        return mark
    start, end = (position - found.start() for position in found.span(1))
    return found[0][:start] + mark + found[0][end:]
