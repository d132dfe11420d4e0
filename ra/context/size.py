"""Every number about size: the window, the limits of a request, its measured size, and what endpoints taught.

All sizes are in the model's own tokens; `tokens.py` counts in tokens of o200k_base.
"""

import math
from operator import is_
from typing import Literal

from ra.context.settings import CompactionName, CompactionSettings
from ra.context.tokens import Estimator, scaled
from ra.context.view import View
from ra.core.facts import (
    Checkpointed,
    Configured,
    EntryRemoved,
    EntrySet,
    Fact,
    Failed,
    Rewrite,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import Effort, Request, Usage
from ra.core.value import Value, encode

# --- the window, and a request's share of it ---

RESERVE = 0.10  # the largest share of the window that is kept free for the answer
DROP = 0.15  # a compaction aims this far below the threshold
LOWEST = 0.50  # but never below this share of the window
RATIO = 5 / 6  # target : trigger, if the rule above gives no smaller target; 0.75 : 0.90
SLACK = 1.02  # the error of an estimate that still leaves room for the answer
LEAST_THINKING = 1024  # tokens; providers refuse a smaller budget


class Window(Value, frozen=True):
    """A model's window. `limit` is None while it is unknown: then nothing is compacted until an error reveals it, or
    until it is guessed from an error without figures."""

    limit: int | None
    origin: Literal["configured", "learned", "catalog", "guessed", "unknown"]


def resolve(configured: int | None, learned: int | None, catalog: int | None, *, guessed: bool = False) -> Window:
    """The window: the user's setting wins over one that was learned or guessed, and that over the catalog."""
    if configured is not None:
        return Window(configured, "configured")
    if learned is not None:
        return Window(learned, "guessed" if guessed else "learned")
    if catalog is not None:
        return Window(catalog, "catalog")
    return Window(None, "unknown")


def reserve(window: int, max_output: int) -> int:
    """Tokens kept free for the answer."""
    return min(max_output, int(window * RESERVE))


def input_budget(window: int, max_output: int) -> int:
    """The most tokens of a request, tool definitions included."""
    return window - reserve(window, max_output)


def answer_room(window: int | None, total: int | None, max_output: int, effort: Effort) -> tuple[int, Effort]:
    """The output limit beside a request of `total` tokens, and the thinking budget within it."""
    if not window or not total or total * SLACK + max_output <= window:
        return max_output, effort
    reserved = reserve(window, max_output)
    output = min(reserved, max(window - math.ceil(total * SLACK), reserved // 2 + 1))
    if effort.budget > reserved // 2:
        effort = Effort(effort.level, reserved // 2) if reserved // 2 >= LEAST_THINKING else Effort()
    return output, effort


def trigger(window: int | None, *, threshold: float, max_output: int, max_tokens: int | None = None) -> int | None:
    """The total above which a request is compacted; None if no limit is known."""
    levels = [] if max_tokens is None else [max_tokens]
    if window is not None:
        levels += [int(window * threshold), input_budget(window, max_output)]
    return min(levels, default=None)


def target(window: int | None, *, threshold: float, max_tokens: int | None = None) -> int | None:
    """The size that a compaction aims at: always below the trigger, so that one compaction does not cause the next.

    `max_tokens` replaces window × threshold; its target is below it by the same proportion.
    """
    share = max(threshold - DROP, LOWEST)
    if share >= threshold:  # a threshold of a half or less
        share = threshold * RATIO
    levels = [] if max_tokens is None else [int(max_tokens * share / threshold)]
    if window is not None:
        levels.append(int(window * share))
    return min(levels, default=None)


# --- the limit of each part of a request that has to shrink ---

INDEX = 3_000  # tokens of an index of hidden messages
MERGED = 0.70  # the share of the allowance that merged indexes get, so that later ones have room
SUMMARY = 0.10  # the share of the window for the summary under the first prompt
QUOTED = 4_000  # the most tokens for hidden messages that the user typed,
QUOTED_SHARE = 0.10  # and the largest share of the window
STEPS = 8  # an economical cut leaves at least so many groups whole: what the model works on right now,
LARGEST_STEPS = 4  # unless they are larger than so many times what it would leave,
WORKING = 2  # or than one part of the window in so many: a piece of them would be carried and not be enough
NAMED = 4  # parts that an error names


def quotes_room(window: int | None, rate: float) -> int:
    """The limit, in tokens of o200k_base, for quotes of what the user typed and is hidden."""
    return QUOTED if window is None else min(QUOTED, int(window * QUOTED_SHARE / rate))


class Allowance(Value, frozen=True):
    """The limits of a compaction by `strategy`. Sizes are in o200k_base, each worth `rate` tokens of the model.

    - `limit` must hold if the request `must_fit`; `goal` is what the compaction aims at.
    - `recent`: the newest groups, up to this size, stay unchanged.
    - `summary` limits the text under the first prompt, `index` the text in the gap: one index, or with `stack`
      several, which are merged into one of `merged_index` tokens if they become too many.
    - `quotes` limits the quotes of the user's words, in addition to these.
    """

    must_fit: bool
    limit: int
    goal: int
    recent: int
    summary: int
    index: int
    merged_index: int
    quotes: int
    rate: float
    strategy: CompactionName
    stack: bool = False

    def scaled(self, view: View) -> int:
        """The size of a view in the model's tokens."""
        return scaled(view.tokens(), self.rate)


def allow(
    view: View,
    total: int,
    *,
    settings: CompactionSettings,
    limit: int | None,
    max_output: int,
    strategy: CompactionName | None = None,
    refit: int | None = None,
    cut: tuple[int, int] | None = None,
    eager: bool = False,
    stack: bool = False,
) -> Allowance:
    """The allowance for a request of `total` tokens in a window of `limit`, both in the model's tokens.

    - `strategy` replaces the one in the settings; `refit` is another upper bound.
    - `cut` is what an economical cut leaves: tokens of recent groups and of indexes.
    - An `eager` compaction was asked for, and halves the request however much would fit.
    - With `stack`, several indexes may follow each other.
    """
    window = limit or total
    rate = total / max(1, view.tokens())
    budget = input_budget(limit, max_output) if limit else total
    most = min(budget, refit or total)
    aim = target(window, threshold=settings.threshold, max_tokens=settings.max_tokens) or most
    goal = min(aim, most)
    recent, index = cut or (int(window * settings.recent), int(INDEX * rate))
    if cut:
        steps = [group for group in view.groups if group.kind == "said"][-STEPS:]
        working = working_set(int(sum(map(view.group_tokens, steps)) * rate), recent, window)
        recent, index = max(recent, working), max(index, int(INDEX * rate))
    if eager:
        goal, recent = min(goal, total // 2), min(recent, int(total * settings.recent))
    # What the system part and the prompts leave bounds all that a small window can hold.
    fixed = view.fixed_tokens() + sum(map(view.group_tokens, view.pinned()))
    free = max(0, int(goal / rate) - fixed)
    # An economical cut is made long before the window is full: that the request is small now is no reason to forget.
    room = max(0, int(min(budget, aim, refit or budget) / rate) - fixed) if cut and limit else free
    index = min(int(index / rate), room // (2 if cut else 3))
    most_recent = min(room // 2, free * 2 // 3) if cut else free // 2  # else it would hide next to nothing
    return Allowance(
        must_fit=total > most,
        limit=int(most / rate),
        goal=int(goal / rate),
        recent=min(int(recent / rate), most_recent),
        summary=min(int(window * SUMMARY / rate), free // 2),
        index=index,
        merged_index=max(int(index * MERGED), min(index, INDEX)) if cut else index,
        quotes=quotes_room(window, rate),
        rate=rate,
        strategy=strategy or settings.strategy,
        stack=stack,
    )


def working_set(tokens: int, recent: int, window: int) -> int:
    """What the newest steps may have beyond the `recent` tokens that a cut leaves anyway: all of them, or nothing.

    Where a fifth of the window is no more than that, there is no room for it.
    """
    return tokens if recent < window // 5 and tokens <= min(LARGEST_STEPS * recent, window // WORKING) else 0


def too_small(view: View, allowance: Allowance, estimator: Estimator) -> str:
    """The message for a request that cannot be made to fit: what fills it, largest first, and what to do about it."""
    sizes = sorted(
        ((scaled(estimator.section(section), allowance.rate), section.name) for section in view.sections), reverse=True
    )
    tools = scaled(estimator.tools(view.request().tools), allowance.rate)
    largest = ", ".join(f"{name} {tokens}" for tokens, name in sizes[:NAMED])
    total = sum(tokens for tokens, _ in sizes)
    return (
        f"The system part ({total} tokens: {largest}) and the tool definitions ({tools}) leave too little room for the "
        f"conversation: a request may have {math.floor(allowance.limit * allowance.rate)} tokens. Use fewer tools "
        "(--no-tools, agent.tools), a shorter system prompt, fewer instruction files (agent.context.patterns), fewer "
        "entries (ra entry rm ID), or a model with a larger window (agent.compaction.contextWindow)."
    )


# --- the size of the next request: the last bill, and an estimate of what was added ---

CREDIBLE_BILL = 0.9  # a bill below this share of the previous one is not believed, unless something was rewritten
CREDIBLE_RATE = 6.0  # no model has more tokens for one of o200k_base
UNSEEN = 20_000  # tokens that a server may add to a request: its own prompt, frames of tools


def credible(usage: Usage, request: Request, window: int | None, estimator: Estimator) -> bool:
    """Whether a call can have used this much: more than its window only if an upper bound of its size allows it."""
    most_output = 2 * (request.max_output + request.effort.budget) + UNSEEN
    total = usage.total_input
    if not total:  # no request is empty
        return False
    small = total <= UNSEEN or (window is not None and total <= window)
    return usage.output <= most_output and (small or total <= estimator.bound(request) * 2 + UNSEEN)


class Meter:
    """Folds events into a view, together with the last bill. Bills are facts, so a replay measures the same."""

    def __init__(self, view: View, estimator: Estimator) -> None:
        self.cut = False  # whether there was a compaction since the last bill
        self._view = view
        self._estimator = estimator
        self._billed: tuple[int, int] | None = None  # the first so many groups, with all above them, are so many tokens
        self._refused = 0.0  # tokens of the model for one of o200k_base, as an overflow told

    @property
    def billed(self) -> int:
        """The last bill that still applies to the next request, or 0."""
        return self._billed[1] if self._billed else 0

    def apply(self, event: TimelineEvent) -> None:
        fact = event.fact
        if isinstance(fact, Said):  # most facts, and they do not affect sizes
            self._view.apply(event)
            return
        if self._rewrites(fact):
            self._billed = None
        self._view.apply(event)
        match fact:
            case Spent(purpose="turn", usage=usage):
                self.cut = False
                # Requests grow, but some servers leave out what their cache held.
                if usage.total_input and usage.total_input >= self.billed * CREDIBLE_BILL:
                    self._billed = (len(self._view.groups) - self._just_answered(), usage.total_input)
            case Checkpointed(after=after):
                self.cut = True
                self._billed = (len(self._view.groups), after) if after else None

    def measure(self, near: int | None = None, *, window: int | None = None) -> int | None:
        """The size of the next request; None if an upper bound proves that it is at most `near`, without counting."""
        start, billed = self._billed or (0, 0)
        if near is not None and (billed or not self._view.counted):
            unbilled = Request("", (), self._view.messages_since(start)) if billed else self._view.request()
            if billed + self._estimator.bound(unbilled) <= near:
                return None
        plain, since = self._view.tokens(), self._view.tokens_since(start)
        if billed and not self._credible(billed, plain - since, window):
            self._billed, billed = None, 0
        if not billed:
            total = self._estimator.scaled(plain)
        else:
            total = billed + scaled(since, self._rate(billed, plain - since))
        return max(total, scaled(plain, self._refused))

    def _credible(self, billed: int, plain: int, window: int | None) -> bool:
        """Is it no contradiction? What was answered fitted into its window, unless our window is wrong: then we count
        about as much ourselves."""
        return window is None or billed <= window or billed <= plain * 2 * self._estimator.factor + UNSEEN

    def refuse(self, sent: int | None, at_least: int = 1) -> int:
        """The request was refused. Until it is cut, its size is what the server counted, or else `at_least`."""
        plain = self._view.tokens()
        size = sent or max(self.measure(None) or 1, at_least)
        self._refused = min(CREDIBLE_RATE, size / max(1, plain))
        return size

    def accept(self) -> None:
        """Forget the refusal: the refused request is not sent again."""
        self._refused = 0.0

    def _rate(self, billed: int, plain: int) -> float:
        """Tokens of the model for one of o200k_base, as this session's bill says; within what calibration may miss."""
        factor = self._estimator.factor
        return min(max(billed / max(1, plain), factor / 2), factor * 2)

    def _just_answered(self) -> bool:
        """Whether the last group is the answer of the billed call, with calls that have no results yet."""
        last = self._view.groups[-1] if self._view.groups else None
        return last is not None and last.item.message.role == "assistant" and (last.open or not last.results)

    def _rewrites(self, fact: Fact) -> bool:
        """Whether the fact changes what was sent before. Then the last bill does not apply to the next request."""
        match fact:
            case Configured(model=model, sections=sections, tools=tools, base=base):
                last = self._view.configured
                unchanged = last is not None and (last.model, last.sections, last.tools) == (model, sections, tools)
                return base is not None or not unchanged
            case EntrySet(id=id) | EntryRemoved(id=id):
                return id in self._view.entries
            case _:
                return isinstance(fact, Rewrite)


# --- a window whose server refuses requests without saying its size: smaller and smaller requests are tried ---

# By refusals in a row: what of the refused request is tried next, where no limit was named; and how many times the
# limit the request is taken for, where that was named and not what was sent.
SHARES = (0.75, 0.5, 0.02)
MOST = (0.75, 0.75, 0.5)  # of the refused request, whatever was taken before: counts of other text may mislead
EXCESS = (1.05, 1.5, 50.0)
LEAST_WINDOW = 256  # tokens; no usable model has less
CREDIBLE_EXCESS = 2.0  # a bill is believed up to this multiple of the estimate
DOUBTED = 2  # failed runs in a row: the endpoint may accept less than it did
AGAIN = 1.2  # times the largest accepted request: a cut aims below the window, so no less than that is sent


def credible_refusal(limit: int | None, sent: int | None, plain: int) -> bool:
    """Can a server mean this by refusing a request of `plain` tokens of o200k_base? It knows its window and what it
    counted, but no tokenizer makes so little of a request."""
    return (limit is None or limit >= LEAST_WINDOW) and (sent is None or sent * CREDIBLE_RATE >= plain)


class Refusals:
    """Folds the requests that the endpoint accepted, in earlier processes too, and counts refusals since."""

    def __init__(self) -> None:
        self.taken = 0  # the largest request that this endpoint answered
        self._count = 0
        self._refused = 0  # the last refused request, until one is taken
        self._failures = 0  # runs that failed, since the last answer
        self._endpoint = ("", "", "")

    def apply(self, event: TimelineEvent) -> None:
        match event.fact:
            case Spent(purpose="turn", usage=usage, parts=parts):
                self._count, self._failures = 0, 0
                if usage.output:  # else it was stopped before the server said that it takes it
                    most = sum(parts.values())  # characters: a bill of more tokens is not believed here
                    self.taken = max(self.taken, min(usage.total_input, most))
            case Configured(provider=provider, model=model, base_url=base_url):
                if (provider, model, base_url) != self._endpoint:
                    self._endpoint, self.taken = (provider, model, base_url), 0
            case Failed():
                self._failures += 1
                if self._failures == DOUBTED:
                    self.taken = 0

    def accept(self, window: Window, counted: int | None, billed: int) -> Window:
        """The window, or a larger one where more was taken than an error taught or let guess.

        A bill far above our own count proves nothing, and none at all is no reason to guess less than was counted.
        """
        refused, self._refused = self._refused, 0
        if counted is None or window.origin not in ("guessed", "learned"):
            return window
        taken = billed if billed <= counted * CREDIBLE_EXCESS else 0
        if window.origin == "guessed":
            taken = max(taken or counted, self.taken if self.taken < refused else 0)
        return Window(taken, "guessed") if taken > (window.limit or 0) else window

    def at_least(self, limit: int | None) -> int:
        """The assumed size of a refused request if the server did not say it."""
        return int((limit or 0) * EXCESS[self._step])

    def learn(self, window: Window, limit: int | None, size: int) -> Window:
        """The window after a refusal of `size` tokens. The user's setting is only lowered."""
        if limit is None:
            window = self._guess(size)
        elif window.origin != "configured" or window.limit is None or limit < window.limit:
            window = Window(limit, "learned")
        self._count, self._refused = self._count + 1, size
        return window

    def _guess(self, size: int) -> Window:
        """A guess, if the server named no limit: smaller each time, but not below what was accepted before."""
        last = self._step == len(SHARES) - 1
        between = self.taken * AGAIN if last else math.sqrt(self.taken * size)
        return Window(math.ceil(max(size * SHARES[self._step], min(between, size * MOST[self._step]))), "guessed")

    @property
    def _step(self) -> int:
        return min(self._count, len(SHARES) - 1)


# --- what a request consists of, roughly and at no cost: bytes by source, by which the ledger divides a bill ---

PICTURE = 6000  # an image or a page costs about as much as so many bytes of text


class Sizes:
    """Sizes of requests by source. Each message is measured once."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._parts: dict[str, int] = {}

    def of(self, request: Request) -> dict[str, int]:
        """Sections by name, `tools`, results by `tool:NAME`, named messages by name, and the `conversation`."""
        counted = self._messages
        if not (len(request.messages) >= len(counted) and all(map(is_, request.messages, counted))):
            counted, self._parts = (), {}
        for message in request.messages[len(counted) :]:
            for source, size in _sized(message):
                self._parts[source] = self._parts.get(source, 0) + size
        self._messages = request.messages
        fixed = {section.name: len(section.content) for section in request.sections}
        if request.tools:
            fixed["tools"] = len(encode(request.tools))
        return fixed | {name: size + fixed.get(name, 0) for name, size in self._parts.items()}


def _sized(message: Message) -> list[tuple[str, int]]:
    sizes = []
    for block in message.blocks:
        match block:
            case ToolResult(name=name, content=content):
                size = sum(len(part.text) if isinstance(part, Text) else PICTURE for part in content)
                sizes.append((f"tool:{name}", size))
            case ToolCall(name=name, args=args):
                sizes.append((message.name or "conversation", len(name) + len(encode(args))))
            case Text(text) | Thinking(text):
                sizes.append((message.name or "conversation", len(text)))
            case Image() | Document():
                sizes.append((message.name or "attachments", PICTURE))
    return sizes
