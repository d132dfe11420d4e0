"""The programs that people write first, as users of ra would write them: typed, each within twenty lines.

mypy checks this file in strict mode; `test_programs.py` runs each function against a scripted server.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field

import ra
from ra import Agent, Answer, Image, Message, Question, Reply, Request, Streamed, TextDelta, ToolStarted, Usage, say
from ra.testing import ScriptedProvider, Step


def one_question() -> str:
    return ra.ask("What is the capital of France?")


def one_question_with_a_typed_answer() -> int:
    class City(BaseModel):
        name: str
        inhabitants: int

    return ra.ask("Which city is the capital of France?", output_type=City, tools=False).inhabitants


def a_plain_function_decides() -> str:
    def decide(question: Question) -> Answer:
        return Answer("no", why=f"{question.call.name} is not wanted")

    return Agent(ask=decide, thinking="low").ask("Hello")


def a_function_as_a_tool() -> str:
    def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
        """The weather in a city.

        city: its name
        """
        return f"{city}: 21 {unit}"

    return Agent(tools=[weather], builtin_tools=False).ask("How warm is it in Paris?")


def a_pydantic_answer() -> str:
    class City(BaseModel):
        name: str
        inhabitants: int = Field(ge=0)

    city = Agent(output_type=City, tools=False).ask("Which city is the capital of France?")
    return f"{city.name} {city.inhabitants}"


def a_dataclass_answer() -> list[str]:
    @dataclass
    class Step:
        what: str

    steps = Agent(output_type=list[Step], tools=False).ask("Plan it.")
    return [step.what for step in steps]


def a_struct_and_a_schema() -> int:
    class Count(msgspec.Struct):
        n: int

    count = Agent(output_type=Count, tools=False).ask("How many?")
    plain: Agent[Any] = Agent(output_type={"type": "object", "required": ["n"]}, tools=False)
    found: int = plain.ask("How many?")["n"]
    return count.n + found


async def streaming() -> str:
    text = ""
    async with Agent() as agent, aclosing(agent.run("Tell me a story.")) as events:
        async for event in events:
            match event:
                case TextDelta(piece):
                    text += piece
                case ToolStarted(call):
                    text += f"[{call.name}]"
                case _:
                    pass
    return text


def streaming_without_async() -> str:
    with Agent() as agent:
        return "".join(event.text for event in agent.stream("Tell me a story.") if isinstance(event, TextDelta))


def a_conversation_with_history() -> str:
    agent = Agent(history=[{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hello Ann."}])
    agent.ask("What is my name?")
    copy = Agent(history=agent.history)
    return f"{copy.ask('And now?')} {len(copy.history)}"


def a_provider_of_ones_own() -> str:
    class Echo:
        name = "echo"

        async def stream(self, request: Request) -> AsyncGenerator[Streamed, None]:
            words = request.messages[0].text.upper()
            yield TextDelta(words)
            yield Reply(say("assistant", words), Usage(), "end")

        async def close(self) -> None:
            pass

    return Agent(provider=Echo(), save=False).ask("shout")


def agents_that_ask_agents() -> str:
    expert = Agent(system_prompt="You know taxes.", tools=False)
    team = Agent(tools=[expert.as_tool(name="tax_expert", description="Answers questions about taxes.")], max_cost=0.5)
    return team.ask("How high is the tax?")


async def entries_and_the_context() -> tuple[int, bool]:
    async with Agent() as agent:
        agent.pin("rule", "Prices are whole cents.")
        snapshot = await agent.context("hi")
        return len(agent.entries()), snapshot.report.total > 0


def many_at_once() -> list[str]:
    async def main() -> list[str]:
        agents = [Agent(save=False) for _ in range(3)]
        return list(await asyncio.gather(*(agent.answer(f"Say {n}.") for n, agent in enumerate(agents))))

    return asyncio.run(main())


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Ticket:
    title: str
    mood: Mood = Mood.GOOD
    due: date | None = None


@dataclass
class Nothing:
    reason: str


def a_list_of_models_that_check_themselves() -> list[str]:
    class Word(BaseModel):
        text: Annotated[str, Field(pattern="^[a-z]+$")]

    words = Agent(output_type=list[Word], tools=False).ask("Which words?")
    return [word.text for word in words]


def one_of_several_types() -> str:
    agent: Agent[Ticket | Nothing] = Agent(output_type=Ticket | Nothing, tools=False)
    match agent.ask("What is open?"):
        case Ticket(title, mood, due):
            return f"{title} {mood.name} {due}"
        case Nothing(reason):
            return reason


def a_class_of_text() -> Mood:
    return Agent(output_type=Mood, tools=False).ask("How is the mood?")


class Shop:
    def __init__(self) -> None:
        self.open: list[Ticket] = []

    def note(self, tickets: list[Ticket], by: Annotated[str, "who says so"] = "me") -> int:
        """Note tickets."""
        self.open += tickets
        return len(self.open)


def a_tool_with_what_it_needs() -> str:
    shop = Shop()
    Agent(tools=[shop.note], builtin_tools=False).ask("Note it.")
    return f"{shop.open[0].title} {shop.open[0].mood}"


def a_picture_from_a_tool() -> str:
    def screenshot() -> Image:
        """What is on the screen."""
        return Image("image/png", b"\x89PNG\r\n\x1a\n")

    return Agent(tools=[screenshot], builtin_tools=False).ask("What is on the screen?")


async def no_longer_than_that() -> str:
    async with Agent() as agent:
        try:
            async with asyncio.timeout(0.2):
                return await agent.answer("Be slow.")
        except TimeoutError:
            return f"late; {await agent.answer('And at last?')}"


def without_a_model() -> str:
    agent = Agent(provider=ScriptedProvider([Step(text="scripted")]), save=False)
    answer: Message = say("assistant", agent.ask("hi"))
    return answer.text
