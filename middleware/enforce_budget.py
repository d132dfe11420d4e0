"""Middleware for ra: stop before a model call that is too large, or when the run has cost enough.

agent:
  middleware:
    beforeModelCall: [./middleware/enforce_budget.py]
"""

import os

from ra.core.value import encode

MAX_CHARS = int(os.environ.get("RA_MAX_CHARS", "500000"))
MAX_DOLLARS = float(os.environ.get("RA_MAX_DOLLARS", "5"))


def before_model_call(ctx):
    size = sum(len(encode(message)) for message in ctx.request.messages)
    if size > MAX_CHARS:
        ctx.stop(f"the request has {size} characters, the limit is {MAX_CHARS}")
    cost = ctx.loop.usage.cost
    if cost is not None and cost >= MAX_DOLLARS:  # None: no price is known for this model
        ctx.stop(f"this run has cost ${cost:.2f}, the limit is ${MAX_DOLLARS:.2f}")
