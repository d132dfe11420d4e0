"""Does what was decided about the provider's cache in a pause: bridge it, compact, or let the cache go."""

import msgspec

from ra.context.compaction.plan import preview
from ra.core.errors import ProviderError, Stopped
from ra.core.facts import CacheDecided
from ra.core.messages import say
from ra.core.model import Request
from ra.costs.lifetime import BRIDGE_OUTPUT
from ra.session.loop import Loop

KEEP = "Answer with one word: ok."  # behind everything that is cached; it is never part of the conversation
REASON = "before the cache runs out"


async def settle(loop: Loop) -> CacheDecided:
    """Decide by price, act, and record both."""
    engine, journal = loop.engine, loop.journal
    assert engine.lifetime is not None, "a session's loop has one"
    summarizes = engine.settings.enabled and engine.settings.strategy == "summarize"
    plan = preview(engine) if summarizes else None
    shortened = plan.after if plan is not None and plan.worth else None
    decision = engine.lifetime.in_pause(shortened=shortened)
    try:
        match decision.action:
            case "bridge" if engine.configured and engine.configured.effort.budget:
                # Another thinking budget is another prefix, and with the same one the answer could be long.
                decision = _let_go(decision, "a model that thinks would think about the small call, too")
            case "bridge":
                await loop.keep_warm(_small(await loop.hooks.before_model_call(engine.request())))
            case "cut":
                await loop.turn.assemble(REASON)
            case _:
                pass
    except (ProviderError, Stopped) as error:
        decision = _let_go(decision, str(error))
        loop.progress.warn(f"The cache could not be kept warm: {error}")
    journal.record(decision)
    return decision


def _let_go(decision: CacheDecided, why: str) -> CacheDecided:
    return CacheDecided("let go", decision.instead, decision.dollars, why)


def _small(request: Request) -> Request:
    """The same prefix, and next to nothing to answer."""
    return msgspec.structs.replace(
        request, messages=(*request.messages, say("user", KEEP)), max_output=BRIDGE_OUTPUT, answer_schema={}
    )
