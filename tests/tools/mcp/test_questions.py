"""What servers ask while they work for a session, what changes under it, and servers that lie."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from ra.core.asking import Answer, Field, Question, field_label, read_field
from ra.core.events import Warned
from ra.core.facts import Configured, Spent
from ra.core.messages import ToolCall, say
from ra.providers.script import Call, Step
from ra.session.session import Session
from ra.testing import LoopbackServer, app
from ra.tools.settings import McpServerSettings
from tests.tools.kit import toolbox, words
from tests.tools.mcp.test_servers import World, run, world

__all__ = ["world"]

FOLDER = Path(__file__).parent
SERVERS = ("asking.py", "lines.py")  # by the SDK, and the protocol of 2025 by hand
ASKING = (*SERVERS, "imperative.py")


def server(file: str, *args: str) -> McpServerSettings:
    return McpServerSettings(name="toy", command=sys.executable, args=(str(FOLDER / file), *args), timeout=30)


def talk(tmp_path: Path, models: LoopbackServer, file: str, *rules: str, **settings: Any) -> Session:
    """A session with one server, whose calls are allowed; and what else `rules` allow."""
    configured = {"name": "toy", "command": sys.executable, "args": [str(FOLDER / file)], "timeout": 30}
    allowed = [{"allow": rule} for rule in ("mcp__toy__write", "mcp__toy__grow", "mcp__toy__shrink", *rules)]
    return talking(tmp_path, models, configured, *(rule["allow"] for rule in allowed), **settings)


def talking(
    tmp_path: Path, models: LoopbackServer, configured: dict[str, Any], *rules: str, **settings: Any
) -> Session:
    allowed = [{"allow": rule} for rule in rules]
    opener = app(tmp_path, models, mcpServers=[configured], permissions__rules=allowed, **settings)
    assert opener.mcp is not None
    opener.mcp.listings(fresh=True)  # a start waits five seconds for a server, which a busy machine may need
    return opener.open()


async def answered(conversation: Session, text: str, **options: Any) -> list[Any]:
    try:
        return [event async for event in conversation.prompt(say("user", text), **options)]
    finally:
        await conversation.close()


def fact(conversation: Session, kind: Any) -> list[Any]:
    return [event.fact for event in conversation.events() if isinstance(event.fact, kind)]


# --- the user ---


@pytest.mark.parametrize("file", ASKING)
def test_the_user_fills_in_what_a_server_asks_for(world: World, file: str) -> None:
    questions: list[Question] = []

    async def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer("once", values={"days": 3})

    (done,) = run(world.box(server(file)), ("mcp__toy__plan", {}), ask=ask)
    assert words(done) == "3 days by train"
    (question,) = questions
    assert (question.form, question.preview) == (True, "Where do you want to go?")
    assert [(field.name, field.kind, field.required, field.choices) for field in question.fields] == [
        ("days", "integer", True, ()),
        ("by", "text", False, ("train", "boat")),
    ]


@pytest.mark.parametrize("file", ASKING)
def test_where_nobody_can_be_asked_a_server_is_told_no_and_the_user_what_it_asked(world: World, file: str) -> None:
    events: list[Any] = []
    (done,) = run(world.box(server(file)), ("mcp__toy__plan", {}), events=events)
    assert "days by" not in words(done)
    assert "decline" in words(done).lower()
    assert [event.text for event in events if isinstance(event, Warned)] == [
        "The MCP server toy asks: Where do you want to go? It was told no: run ra on a terminal to answer."
    ]


@pytest.mark.parametrize("handshake", ["refused", "taken"])
def test_a_server_that_asks_in_the_new_protocol_alone_is_spoken_to_in_it(world: World, handshake: str) -> None:
    async def ask(question: Question) -> Answer:
        return Answer("once", values={"days": 4})

    calls = [("mcp__toy__plan", dict[str, Any]())] * 2
    first, again = run(world.box(server("new_protocol.py", handshake)), *calls, ask=ask)
    assert (words(first), words(again)) == ("4 days", "4 days")
    assert world.warnings == []


def test_a_yes_without_what_is_required_is_a_no(world: World) -> None:
    async def ask(question: Question) -> Answer:
        return Answer("once")

    (done,) = run(world.box(server("lines.py")), ("mcp__toy__plan", {}), ask=ask)
    assert "decline" in words(done)


def test_the_time_of_a_person_is_not_the_time_of_the_call(world: World) -> None:
    from tests.tools.mcp.test_servers import ALL

    late = asyncio.Event()

    async def ask(question: Question) -> Answer:
        asyncio.get_running_loop().call_later(1.5, late.set)
        await late.wait()
        return Answer("once", values={"days": 1})

    box = toolbox(world.folder, rules=ALL, mcp=world.servers(server("lines.py")), timeout_s=1)
    box_done = run(box, ("mcp__toy__grow", {}), ("mcp__toy__plan", {}), ask=ask)
    assert words(box_done[1]) == "1 days by train"


def test_a_field_reads_what_a_person_types_and_says_what_would_be_right() -> None:
    days = Field("days", "How many days?", "integer", required=True)
    colour = Field("colour", choices=("red", "green"), default="red")
    tags = Field("tags", choices=("a", "b"), many=True)
    assert (read_field(days, " 3 "), read_field(colour, "2"), read_field(colour, "")) == (3, "green", "red")
    assert (read_field(tags, "1, b"), read_field(Field("x", kind="boolean"), "Y")) == (["a", "b"], True)
    number = Field("x", kind="number")
    for field, text in ((days, ""), (days, "many"), (colour, "blue"), (number, "x"), (number, "nan"), (number, "-inf")):
        with pytest.raises(ValueError, match=r"^(An answer|Choose|Type)"):
            read_field(field, text)
    assert field_label(colour) == "colour (1 red, 2 green; Enter: red): "


# --- the model ---


@pytest.mark.parametrize("file", ASKING)
def test_a_server_gets_an_answer_of_the_model_if_a_rule_lets_it(tmp_path: Path, file: str) -> None:
    steps = [Step(calls=(Call("mcp__toy__write", {"topic": "tea"}),)), Step(text="Tea is warm."), Step(text="Done.")]
    with LoopbackServer("anthropic", steps) as models:
        conversation = talk(tmp_path, models, file, "mcp__toy__sampling")
        end = asyncio.run(answered(conversation, "write"))[-1]
    first, sampled, last = models.bodies
    assert sampled["messages"][-1]["content"][0]["text"] == "A line about tea."
    assert (sampled["system"][0]["text"], sampled["max_tokens"], sampled.get("tools")) == ("You are a poet.", 300, None)
    result = last["messages"][-1]["content"][0]["content"]
    assert f"{first['model']}: Tea is warm." in str(result)
    bills = fact(conversation, Spent)
    assert [bill.purpose for bill in bills] == ["turn", "sampling", "turn"]
    assert end.usage.output == sum(bill.usage.output for bill in bills)


@pytest.mark.parametrize("file", ASKING)
def test_without_the_users_word_a_server_gets_no_answer_and_no_money_is_spent(tmp_path: Path, file: str) -> None:
    steps = [Step(calls=(Call("mcp__toy__write", {"topic": "tea"}),)), Step(text="Done.")]
    with LoopbackServer("anthropic", steps) as models:
        conversation = talk(tmp_path, models, file)
        events = asyncio.run(answered(conversation, "write"))
    assert len(models.bodies) == 2
    assert any("--allow 'mcp__toy__sampling'" in event.text for event in events if isinstance(event, Warned))


def test_an_answer_for_a_server_comes_from_the_budget_of_the_run(tmp_path: Path) -> None:
    steps = [Step(calls=(Call("mcp__toy__write", {"topic": "tea " * 20_000}),)), Step(text="Done.")]
    with LoopbackServer("anthropic", steps) as models:
        conversation = talk(tmp_path, models, "lines.py", "mcp__toy__sampling", maxTokenBudget=40_000)
        end = asyncio.run(answered(conversation, "write"))[-1]
    assert len(models.bodies) == 1  # neither the server's call nor the next turn fits any more
    assert end.outcome == "limit"


# --- what changes ---


@pytest.mark.parametrize("file", SERVERS)
def test_a_new_tool_is_there_in_the_next_request_of_the_same_run(tmp_path: Path, file: str) -> None:
    steps = [
        Step(calls=(Call("mcp__toy__grow", {}),)),
        Step(calls=(Call("mcp__toy__extra", {"text": "cake"}),)),
        Step(text="Done."),
    ]
    with LoopbackServer("anthropic", steps) as models:
        conversation = talk(tmp_path, models, file, "mcp__toy__extra")
        asyncio.run(answered(conversation, "grow"))
    tools = [{tool["name"] for tool in body["tools"]} for body in models.bodies]
    assert tools[1] == tools[0] | {"mcp__toy__extra"} == tools[2]
    assert "extra cake" in str(models.bodies[2]["messages"][-1])
    assert len(fact(conversation, Configured)) == 2


@pytest.mark.parametrize("file", SERVERS)
def test_a_tool_that_is_gone_says_so_and_the_prefix_stays_as_it_is(tmp_path: Path, file: str) -> None:
    steps = [
        Step(calls=(Call("mcp__toy__shrink", {}),)),
        Step(calls=(Call("mcp__toy__plan", {}),)),
        Step(text="Done."),
    ]
    with LoopbackServer("anthropic", steps) as models:
        conversation = talk(tmp_path, models, file, "mcp__toy__plan")
        asyncio.run(answered(conversation, "shrink"))
    assert models.bodies[0]["tools"] == models.bodies[1]["tools"] == models.bodies[2]["tools"]
    assert "does not offer this tool any more" in str(models.bodies[2]["messages"][-1])
    assert len(fact(conversation, Configured)) == 1


# --- lies ---


@pytest.mark.parametrize(
    ("how", "words_of_it"),
    [("ids", "the right one"), ("rubbish", "after rubbish"), ("changes", "changed and changed"), ("form", "Invalid")],
)
def test_what_a_server_says_beside_its_answer_does_no_harm(world: World, how: str, words_of_it: str) -> None:
    lied, after = run(world.box(server("lines.py")), ("mcp__toy__lie", {"how": how}), ("mcp__toy__lie", {"how": "ids"}))
    assert words_of_it in words(lied)
    assert words(after) == "the right one"


def test_a_result_of_the_wrong_shape_is_an_error_of_that_call_alone(world: World) -> None:
    lied, after = run(
        world.box(server("lines.py")), ("mcp__toy__lie", {"how": "shape"}), ("mcp__toy__lie", {"how": "ids"})
    )
    assert lied.result.is_error
    assert words(lied).startswith("The MCP server toy says: ")
    assert words(after) == "the right one"


@pytest.mark.parametrize(
    ("how", "is_error", "words_of_it"),
    [
        ("half", False, "cut in a smile: ?"),
        ("deep", True, "its answer cannot be read"),
        ("null", True, "its answer cannot be read (not of the protocol)"),
        ("nothing", True, "[the server gave no reason]"),
        ("crash", True, "The MCP server toy ended during the call (it said: out of memory)."),
        ("line", True, "(it said: a line of more than 32 MiB)"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_at_once(
    world: World, how: str, is_error: bool, words_of_it: str
) -> None:
    lied, after = run(world.box(server("lines.py")), ("mcp__toy__lie", {"how": how}), ("mcp__toy__lie", {"how": "ids"}))
    assert (lied.result.is_error, words_of_it in words(lied)) == (is_error, True)
    assert words(after) == "the right one"


def test_tools_with_schemas_that_are_none_do_not_cost_the_others(world: World) -> None:
    listing = world.servers(server("lines.py", "odd")).listings()["toy"]
    odd = {offer.name: offer.schema for offer in listing.tools if offer.name.startswith(("odd", "bare"))}
    assert set(odd) == {*(f"odd{n}" for n in range(6)), "bare"}
    assert all(schema == {"type": "object", "properties": {}} for schema in odd.values())
    assert {"plan", "write"} <= {offer.name for offer in listing.tools}


def test_a_line_without_end_ends_the_server_and_the_next_call_starts_it_again(world: World) -> None:
    lied, after = run(
        world.box(server("lines.py")), ("mcp__toy__lie", {"how": "line"}), ("mcp__toy__lie", {"how": "ids"})
    )
    assert lied.result.is_error
    assert words(after) == "the right one"


def test_a_server_that_asks_on_and_on_is_told_no(world: World) -> None:
    async def ask(question: Question) -> Answer:
        return Answer("once")

    (done,) = run(world.box(server("lines.py")), ("mcp__toy__lie", {"how": "questions"}), ask=ask)
    assert words(done) == "20"


def test_a_listing_without_end_is_cut(world: World) -> None:
    listing = world.servers(server("lines.py", "endless")).listings()["toy"]
    assert len({offer.name for offer in listing.tools}) == len(listing.tools) == 5


def test_a_call_that_is_given_up_leaves_no_question_behind(world: World) -> None:
    asked = asyncio.Event()

    async def ask(question: Question) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def give_up() -> bool:
        box = world.box(server("lines.py"))
        call = asyncio.create_task(box.run(ToolCall("c", "mcp__toy__plan", {}), ask=ask))
        await asyncio.wait_for(asked.wait(), 30)
        call.cancel()
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=30)
        await box.close()
        return isinstance(outcome, asyncio.CancelledError) and not {task for task in others if not task.done()}

    assert asyncio.run(give_up())
