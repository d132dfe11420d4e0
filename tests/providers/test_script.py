"""Can a script be written in Python, YAML and JSON, and is a mistake in it told with its place?"""

import asyncio
from pathlib import Path

import pytest

from ra.core.errors import BadStream, Overflowed, ProviderError, Unavailable, UserError
from ra.core.events import CallDelta, Sent, Streamed, TextDelta, ThinkingDelta
from ra.core.messages import Message, Text, Thinking, ToolCall, say
from ra.core.model import ModelInfo, Reply, Request, Usage
from ra.providers.script import Call, Fault, Script, Step, load
from ra.providers.scripted import ScriptedProvider

HELLO = Request("m", (), (say("user", "Hello"),))

YAML = """
- Just text.
- thinking: Let me see.
  text: Reading.
  calls:
    - {name: Read, args: {path: a.txt, someKey: {innerKey: 1}}}
  usage: {input: 10, output: 2, cacheRead: 3, cache_write: 4}
  delayS: 0.5
- {stop: length, text: One, fault: {kind: cut, afterBytes: 10}}
"""

LEVELS = [f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 10)}]" for i in range(1, 10)]
BOMB = "- calls: [{name: x, args: {b0: &b0 [x], " + ", ".join(LEVELS) + "}}]"


def steps(script: Script[Request]) -> list[Step]:
    found = []
    for _ in range(3):
        found.append(script.step(HELLO, turn=0))
        script.done()
    return found


def collect(provider: ScriptedProvider, request: Request = HELLO) -> list[Streamed]:
    async def run() -> list[Streamed]:
        return [item async for item in provider.stream(request)]

    return asyncio.run(run())


EXPECTED = [
    Step(text="Just text."),
    Step(
        thinking="Let me see.",
        text="Reading.",
        calls=(Call("Read", {"path": "a.txt", "someKey": {"innerKey": 1}}),),
        usage=Usage(10, 2, 3, 4),
        delay_s=0.5,
    ),
    Step(text="One", stop="length", fault=Fault("cut", after_bytes=10)),
]


def test_a_script_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(YAML)
    assert steps(load(file)) == EXPECTED


def test_a_script_from_json_with_a_head(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('{"by": "turn", "steps": ["One", {"text": "Two"}]}')
    script = load(file)
    assert [script.step(HELLO, turn=turn).text for turn in (1, 0, 1)] == ["Two", "One", "Two"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.yaml", "- text: a\n- }", "line 2, column 3: not valid YAML"),
        ("a.yaml", "text: Hi", "unknown key 'text'; a script has steps"),
        ("a.yaml", "hello", "a script is a list of steps"),
        ("a.yaml", "steps: []\nby: chance", "by is 'chance'; use arrival or turn"),
        ("a.yaml", "- text: 1", "step 1, text: Expected `str`, got `int`. A step has text, thinking"),
        ("a.yaml", "- ok\n- {texts: a}", "step 2: Object contains unknown field `texts`"),
        ("a.yaml", "- calls: [{args: {}}]", "step 1, calls[0]: Object missing required field `name`"),
        ("a.yaml", "- {text: a, stop: never}", "step 1, stop: Invalid enum value 'never'"),
        ("a.yaml", "- 5", "step 1: Expected `object`, got `int`"),
        ("a.yaml", "- &a [*a]", "step 1 holds more than"),
        ("a.yaml", BOMB, "step 1 holds more than"),
        ("a.json", "{", "not JSON"),
        ("a.json", "[" * 100_000, "not JSON"),
    ],
)
def test_a_mistake_in_a_script_is_told_with_its_place(tmp_path: Path, name: str, content: str, words: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(UserError) as caught:
        load(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml")


def test_the_end_of_a_script_is_told() -> None:
    provider = ScriptedProvider([Step(text="One")])
    collect(provider)
    with pytest.raises(UserError, match="the script has 1 steps, and a model call asked for number 2; add a step"):
        collect(provider)


def test_a_step_is_streamed_in_small_pieces_and_requests_are_kept() -> None:
    step = Step(
        thinking="Let me think", signature="s", text="Twenty characters it", calls=(Call("LS"),), usage=Usage(1, 2)
    )
    provider = ScriptedProvider([step])
    message = Message(
        "assistant",
        (Thinking("Let me think", "s"), Text("Twenty characters it"), ToolCall("call_1_1", "LS", {})),
        model="m",
    )
    assert collect(provider) == [
        Sent(),
        ThinkingDelta("Let me think"),
        TextDelta("Twenty chara"),
        TextDelta("cters it"),
        CallDelta("LS"),
        Reply(message, Usage(1, 2), "tools"),
    ]
    assert provider.requests == [HELLO]


def test_usage_is_made_up_plausibly() -> None:
    *_, reply = collect(ScriptedProvider([Step(text="Four words are here")]))
    assert isinstance(reply, Reply)
    assert 5 < reply.usage.input < 100
    assert 0 < reply.usage.output < 50


def test_a_script_may_be_a_function_of_the_request() -> None:
    provider = ScriptedProvider(lambda request: Step(text=f"You said {request.messages[-1].text}"))
    *_, reply = collect(provider)
    assert isinstance(reply, Reply)
    assert reply.message.text == "You said Hello"


def test_arguments_that_are_no_json_make_a_broken_call() -> None:
    *_, reply = collect(ScriptedProvider([Step(calls=(Call("LS", raw="{oops"),))]))
    assert isinstance(reply, Reply)
    assert reply.message.calls == (ToolCall("call_1_1", "LS", {}, broken="{oops"),)


def test_a_window_is_enforced() -> None:
    provider = ScriptedProvider([Step(text="Hi")], info=ModelInfo("m", window=10))
    with pytest.raises(Overflowed) as caught:
        collect(provider)
    assert caught.value.limit == 10


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("status", status=429, retry_after="3"), Unavailable),
        (Fault("status", status=400, message="no"), ProviderError),
        (Fault("cut"), BadStream),
        (Fault("garbage"), BadStream),
        (Fault("error", status=500), Unavailable),
        (Fault("stall", seconds=0.01), Unavailable),
    ],
)
def test_faults(fault: Fault, kind: type[ProviderError]) -> None:
    with pytest.raises(kind) as caught:
        collect(ScriptedProvider([Step(text="Hello, what is it?", fault=fault)]))
    if isinstance(caught.value, BadStream):
        assert caught.value.partial == Message("assistant", (Text("Hello, wh"),), model="m")
    if fault.retry_after:
        assert getattr(caught.value, "retry_after_s", None) == 3.0
