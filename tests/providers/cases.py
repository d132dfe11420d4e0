"""Which conversations must every dialect be able to carry? One table; a new wire case goes in here.

A case is a request, what the server says to it, and what must come back: a Reply, or an error with what had arrived.
Where dialects differ by nature (a signature that Google puts on another part), the case says so by name.
"""

import base64
from collections.abc import Callable
from typing import NamedTuple

from ra.core.errors import BadStream, ProviderError, Unavailable
from ra.core.messages import Block, Document, Image, Message, Text, Thinking, ToolCall, ToolResult, result, say
from ra.core.model import Effort, Marks, ModelInfo, Reply, Request, Section, Stop, ToolSpec, Usage
from ra.testing import Call, Fault, Step

DIALECTS = ("anthropic", "openai", "openai-chat", "google")
MODEL = "model-1"

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n%%EOF\n"

SYSTEM = Section("system", "pinned", "Be brief.")
READ = ToolSpec(
    "Read",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
LS = ToolSpec("LS", "List a directory.", {"type": "object", "properties": {}})
USAGE = Usage(20, 8)


class Raises(NamedTuple):
    """An error instead of a Reply. `text` is what had been said until then, None where nobody can tell."""

    kind: type[ProviderError]
    text: str | None = None


Outcome = Reply | Raises


class Case(NamedTuple):
    name: str
    request: Callable[[str], Request]
    step: Step
    outcome: Callable[[str], Outcome]
    info: ModelInfo = ModelInfo(MODEL, max_output=64_000)


def request(*messages: Message, **changes: object) -> Callable[[str], Request]:
    """The same request for every dialect."""
    made = Request(MODEL, (SYSTEM,), messages, **changes)
    return lambda dialect: made


def reply(*blocks: Block, stop: Stop = "end", usage: Usage = USAGE) -> Callable[[str], Outcome]:
    """The same reply from every dialect, except that Google does not tell what it wrote to its cache."""

    def outcome(dialect: str) -> Outcome:
        told = Usage(usage.input + usage.cache_write, usage.output, usage.cache_read) if dialect == "google" else usage
        return Reply(Message("assistant", blocks, model=MODEL), told, stop)

    return outcome


def raises(kind: type[ProviderError], text: str | None = None) -> Callable[[str], Outcome]:
    return lambda dialect: Raises(kind, text)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def assistant(*blocks: Block, model: str = MODEL) -> Message:
    return Message("assistant", blocks, model=model)


# Thinking: each provider has its own way to seal it.

CALL = ToolCall("call_1", "Read", {"path": "a.py"})
THOUGHT = Step(
    thinking="The file will tell.",
    signature="seal-1",
    text="Let me look.",
    calls=(Call("Read", {"path": "a.py"}, id="call_1"),),
    usage=USAGE,
)


def thought(dialect: str) -> Reply:
    text: dict[str, tuple[Block, ...]] = {
        "anthropic": (Thinking("The file will tell.", "seal-1"), Text("Let me look."), CALL),
        "openai": (Thinking("The file will tell.", "seal-1", "rs_1"), Text("Let me look."), CALL),
        "openai-chat": (Thinking("The file will tell.", "", "reasoning_content"), Text("Let me look."), CALL),
        "google": (
            Thinking("The file will tell."),
            Text("Let me look."),
            ToolCall("call_1", "Read", {"path": "a.py"}, signature=b64("seal-1")),
        ),
    }
    return Reply(assistant(*text[dialect]), USAGE, "tools")


def pondered(dialect: str) -> Reply:
    """Thinking without a call: Google signs an empty text after the answer."""
    text: dict[str, tuple[Block, ...]] = {
        "anthropic": (Thinking("Simple.", "seal-2"), Text("Four.")),
        "openai": (Thinking("Simple.", "seal-2", "rs_1"), Text("Four.")),
        "openai-chat": (Thinking("Simple.", "", "reasoning_content"), Text("Four.")),
        "google": (Thinking("Simple."), Text("Four."), Text("", b64("seal-2"))),
    }
    return Reply(assistant(*text[dialect]), USAGE, "end")


def redacted(dialect: str) -> Reply:
    hidden: dict[str, tuple[Block, ...]] = {
        "anthropic": (Thinking("", "hidden-1"),),
        "openai": (Thinking("", "hidden-1", "rs_1_0"),),
        "openai-chat": (),
        "google": (),
    }
    return Reply(assistant(*hidden[dialect], Text("Done.")), USAGE, "end")


def after_thought(dialect: str) -> Request:
    """A tool loop under way: the thinking goes back with its seal."""
    messages = (say("user", "What is in a.py?"), thought(dialect).message, result(CALL, "print(1)"))
    return Request(MODEL, (SYSTEM,), messages, (READ,), Effort("low", 2048))


def after_other_model(dialect: str) -> Request:
    """The same, begun by another model: what it thought and sealed is dropped."""
    said = thought(dialect).message
    foreign = Message(said.role, said.blocks, model="model-0")
    messages = (say("user", "What is in a.py?"), foreign, result(CALL, "print(1)"))
    return Request(MODEL, (SYSTEM,), messages, (READ,), Effort("low", 2048))


def after_redacted(dialect: str) -> Request:
    messages = (say("user", "Go."), redacted(dialect).message, say("user", "Go on."))
    return Request(MODEL, (SYSTEM,), messages, effort=Effort("low", 2048))


def malformed(dialect: str) -> Outcome:
    """Google does not show a call that it could not parse; it says so instead of ending properly."""
    if dialect == "google":
        return Raises(BadStream, "")
    return Reply(assistant(ToolCall("call_1", "Read", {}, broken='{"path": "a.py"oops}')), USAGE, "tools")


def unfinished(dialect: str) -> Outcome:
    call = () if dialect == "google" else (ToolCall("call_1", "Read", {}, broken='{"path": "a'),)
    return Reply(assistant(Text("Reading."), *call), USAGE, "length")


PAIR = (ToolCall("call_1", "Read", {"path": "a"}), ToolCall("call_2", "LS", {}))
SEEN = ToolResult("call_1", "Read", (Text("A picture:"), Image("image/png", PNG)))
THINKS = ModelInfo(MODEL, max_output=64_000, thinking="budget")

CASES: tuple[Case, ...] = (
    Case(
        "text",
        request(say("user", "Hello")),
        Step(text="Hello! How can I help?", usage=USAGE),
        reply(Text("Hello! How can I help?")),
    ),
    Case("thinking", after_thought, THOUGHT, thought, THINKS),
    Case(
        "thinking-without-a-call",
        request(say("user", "2 + 2?"), effort=Effort("medium", 16_000)),
        Step(thinking="Simple.", signature="seal-2", text="Four.", usage=USAGE),
        pondered,
        THINKS,
    ),
    Case("redacted-thinking", after_redacted, Step(redacted="hidden-1", text="Done.", usage=USAGE), redacted, THINKS),
    Case(
        "model-change", after_other_model, Step(text="It prints 1.", usage=USAGE), reply(Text("It prints 1.")), THINKS
    ),
    Case(
        "parallel-calls",
        request(
            say("user", "Look around."),
            assistant(Text("Looking."), *PAIR),
            result(PAIR[0], "A"),
            result(PAIR[1], "a"),
            tools=(READ, LS),
            cache_key="session-1",
        ),
        Step(
            calls=(
                Call("Read", {"path": "b"}, id="call_3"),
                Call("LS", {}, id="call_4"),
                Call("Read", {"path": "c"}, id="call_5"),
            ),
            usage=USAGE,
        ),
        reply(
            ToolCall("call_3", "Read", {"path": "b"}),
            ToolCall("call_4", "LS", {}),
            ToolCall("call_5", "Read", {"path": "c"}),
            stop="tools",
        ),
    ),
    Case(
        "empty-text",
        request(say("user", "Say nothing."), assistant(Text("")), say("user", ""), say("user", "Again.")),
        Step(usage=USAGE),
        reply(),
    ),
    Case(
        "image",
        request(
            Message("user", (Text("What is this?"), Image("image/png", PNG))),
            assistant(PAIR[0]),
            Message("tool", (SEEN,)),
            tools=(READ,),
        ),
        Step(text="A dot.", usage=USAGE),
        reply(Text("A dot.")),
    ),
    Case(
        "pdf",
        request(
            Message("user", (Text("Sum up."), Document("application/pdf", PDF, "a.pdf"))),
            assistant(PAIR[0]),
            Message("tool", (ToolResult("call_1", "Read", (Document("text/plain", b"x < y", "b.txt"),)),)),
            tools=(READ,),
        ),
        Step(text="Empty.", usage=USAGE),
        reply(Text("Empty.")),
    ),
    Case(
        "unicode",
        request(say("user", "你好, 世界 👩‍👩‍👧‍👦 é \u2028 \x00 </context>")),
        Step(
            text="日本語のテキスト 🎉👍🏽 ñ \t\n ‮end",
            calls=(Call("Read", {"path": "naïve/файл 🗂.txt", "né": ['"', "\\", "\n"]}, id="call_1"),),
            usage=USAGE,
        ),
        reply(
            Text("日本語のテキスト 🎉👍🏽 ñ \t\n ‮end"),
            ToolCall("call_1", "Read", {"path": "naïve/файл 🗂.txt", "né": ['"', "\\", "\n"]}),
            stop="tools",
        ),
    ),
    Case(
        "tool-error",
        request(
            say("user", "Read a."),
            assistant(PAIR[0]),
            result(PAIR[0], "No such file.", is_error=True),
            say("user", "Then stop."),
            tools=(READ,),
        ),
        Step(text="Stopped.", usage=USAGE),
        reply(Text("Stopped.")),
    ),
    Case(
        "length",
        request(say("user", "Count."), max_output=16),
        Step(text="One, two, thr", stop="length", usage=USAGE),
        reply(Text("One, two, thr"), stop="length"),
    ),
    Case(
        "refusal",
        request(say("user", "Do harm.")),
        Step(text="I can't help with that.", stop="refused", usage=USAGE),
        reply(Text("I can't help with that."), stop="refused"),
    ),
    Case(
        "refusal-without-words",
        request(say("user", "Do harm.")),
        Step(stop="refused", usage=USAGE),
        reply(stop="refused"),
    ),
    Case(
        "usage-with-cache",
        request(say("user", "Hello"), cache_key="session-1"),
        Step(text="Hi.", usage=Usage(10, 3, 2000, 300)),
        reply(Text("Hi."), usage=Usage(10, 3, 2000, 300)),
    ),
    Case(
        "marks",
        lambda dialect: Request(
            MODEL,
            (SYSTEM, Section("files", "stable", "a.py\nb.py"), Section("empty", "stable", "")),
            (
                say("user", "Go."),
                assistant(Text("On it."), PAIR[0]),
                result(PAIR[0], "A"),
                assistant(Thinking("Hm.", "seal")),
                say("user", "Well?"),
            ),
            (READ, LS),
            marks=Marks(tools=True, sections=(2,), messages=(3, 4)),
            cache_key="session-1",
        ),
        Step(text="Yes.", usage=USAGE),
        reply(Text("Yes.")),
    ),
    Case(
        "system-message",
        request(
            say("user", "Go."),
            assistant(PAIR[0]),
            result(PAIR[0], "A"),
            say("system", "The branch is now <main>.", name='env "1"'),
            tools=(READ,),
        ),
        Step(text="Noted.", usage=USAGE),
        reply(Text("Noted.")),
    ),
    Case(
        "user-section",
        lambda dialect: Request(
            MODEL, (SYSTEM, Section("notes", "stable", "Remember the milk.", role="user")), (say("user", "What?"),)
        ),
        Step(text="Milk.", usage=USAGE),
        reply(Text("Milk.")),
    ),
    Case(
        "malformed-arguments",
        request(say("user", "Read a."), tools=(READ,)),
        Step(calls=(Call("Read", raw='{"path": "a.py"oops}', id="call_1"),), usage=USAGE),
        malformed,
    ),
    Case(
        "malformed-arguments-sent-again",
        request(
            say("user", "Read a."),
            assistant(ToolCall("call_1", "Read", {}, broken='{"path": "a.py"oops}')),
            result(PAIR[0], "The arguments are no JSON.", is_error=True),
            tools=(READ,),
        ),
        Step(text="Sorry.", usage=USAGE),
        reply(Text("Sorry.")),
    ),
    Case(
        "length-inside-a-call",
        request(say("user", "Read a."), tools=(READ,), max_output=16),
        Step(text="Reading.", calls=(Call("Read", raw='{"path": "a', id="call_1"),), stop="length", usage=USAGE),
        unfinished,
    ),
    Case(
        "cut",
        request(say("user", "Hello")),
        Step(text="Hello! How can I help you today?", usage=USAGE, fault=Fault("cut")),
        raises(BadStream),
    ),
    Case(
        "error-in-the-stream",
        request(say("user", "Hello")),
        Step(text="Hello! How can I help you today?", usage=USAGE, fault=Fault("error", status=500, message="Boom")),
        raises(Unavailable),
    ),
)

BY_NAME = {case.name: case for case in CASES}
