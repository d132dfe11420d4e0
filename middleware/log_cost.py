"""Middleware for ra: say on stderr what the run has used so far.

agent:
  middleware:
    afterLoopIteration: [./middleware/log_cost.py]
    afterLoopComplete: [./middleware/log_cost.py]
"""


def middleware(ctx):
    usage = ctx.loop.usage
    cost = "price unknown" if usage.cost is None else f"${usage.cost:.4f}"
    cached = f", {usage.cache_read_tokens} from cache" if usage.cache_read_tokens else ""
    print(f"Tokens used: {usage.input_tokens} in{cached}, {usage.output_tokens} out, {cost}")
