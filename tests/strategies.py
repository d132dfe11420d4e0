"""Which values can there be? Hypothesis strategies for messages, facts and whole timelines."""

from hypothesis import strategies as st

from ra.core.facts import (
    Checkpointed,
    Clip,
    Configured,
    Cut,
    Edited,
    EntryRemoved,
    EntrySet,
    Fact,
    Failed,
    Interrupted,
    Noticed,
    Rotated,
    Said,
    Spent,
    TimelineEvent,
)
from ra.core.messages import Document, Image, Message, Text, Thinking, ToolCall, ToolResult
from ra.core.model import TIERS, Effort, Section, ToolSpec, Usage

# Everything that can be encoded: sanitising lone surrogates is the rim's work.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
ids = st.sampled_from(["call_0", "call_1", "toolu_a", "toolu_b"])
tokens = st.integers(0, 200_000)
positions = st.integers(1, 30)
dollars = st.one_of(
    st.just(""), st.decimals(0, 10, places=6, allow_nan=False, allow_infinity=False).map(lambda price: f"{price:f}")
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), text),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=5,
)
json_objects = st.dictionaries(text, json_values, max_size=3)

texts = st.builds(Text, text, signature=text)
images = st.builds(Image, st.sampled_from(["image/png", "image/jpeg"]), st.binary(max_size=20))
documents = st.builds(Document, st.just("application/pdf"), st.binary(max_size=20), name=text)
thoughts = st.builds(Thinking, text, signature=text, id=text)
calls = st.builds(ToolCall, ids, names, json_objects, broken=text, signature=text)
contents = st.one_of(texts, images, documents)
results = st.builds(ToolResult, ids, names, st.lists(contents, max_size=2).map(tuple), is_error=st.booleans())

tool_messages = results.map(lambda result: Message("tool", (result,)))
user_messages = st.builds(Message, st.just("user"), st.lists(contents, max_size=3).map(tuple), name=st.just("") | names)
assistant_messages = st.builds(
    Message,
    st.just("assistant"),
    st.lists(st.one_of(texts, thoughts, calls), max_size=4).map(tuple),
    model=names,
)
system_messages = texts.map(lambda block: Message("system", (block,)))
messages = st.one_of(user_messages, assistant_messages, tool_messages, system_messages)

usages = st.builds(Usage, tokens, tokens, tokens, tokens)
sections = st.builds(
    Section,
    names,
    st.sampled_from(TIERS),
    text,
    role=st.sampled_from(["system", "user"]),
    max=st.none() | tokens,
    cut=text,
)
tools = st.builds(ToolSpec, names, text, json_objects)
efforts = st.builds(Effort, st.sampled_from(["off", "low", "medium", "high"]), tokens)

said = st.builds(Said, messages)
spent = st.builds(
    Spent,
    names,
    usages,
    dollars=dollars,
    purpose=st.sampled_from(["turn", "summary", "planner", "agent"]),
    parts=st.dictionaries(names, tokens, max_size=4),
    seconds=st.floats(0, 1e6),
)
configured = st.builds(
    Configured,
    names,
    names,
    names,
    sections=st.lists(sections, max_size=2).map(tuple),
    tools=st.lists(tools, max_size=2).map(tuple),
    effort=efforts,
    max_output=tokens,
    base=st.none() | st.lists(messages, max_size=3).map(tuple),
)
checkpointed = st.builds(
    Checkpointed,
    st.sampled_from(["truncate", "summarize", "digest", "ladder"]),
    text,
    hidden=st.lists(st.tuples(positions, positions), max_size=3).map(tuple),
    clips=st.lists(st.builds(Clip, positions, st.integers(0, 3), tokens), max_size=2).map(tuple),
    marker=text,
    summary=text,
    before=tokens,
    after=tokens,
)
facts: st.SearchStrategy[Fact] = st.one_of(
    said,
    st.builds(Cut, messages, text),
    spent,
    configured,
    st.builds(Noticed, sections),
    st.builds(EntrySet, names, text, name=text, attrs=st.dictionaries(text, text, max_size=2)),
    st.builds(EntryRemoved, names),
    checkpointed,
    st.builds(Rotated, text, text, positions),
    st.builds(Edited, text, st.lists(messages, max_size=3).map(tuple)),
    st.builds(Failed, text, text),
    st.builds(Interrupted, text),
)


@st.composite
def timelines(draw: st.DrawFn, fact: st.SearchStrategy[Fact] = facts, max_size: int = 12) -> list[TimelineEvent]:
    """Numbered events with times that never go back."""
    gaps = st.floats(0, 1e5)
    now, events = draw(st.floats(0, 2e9)), []
    for at, drawn in enumerate(draw(st.lists(fact, max_size=max_size)), 1):
        now += draw(gaps)
        events.append(TimelineEvent(at, now, drawn))
    return events
