"""Messages out of the window and back, going back to a prompt, and lists that are searched by typing."""

import re
from typing import Any

from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.cli.repl.conftest import Model, Start

PROMPTS = ("read it", "write it", "third", "more", "and more", "what now", "go on")
SECRET = "the launch code is 4711 " * 40


def reading(body: dict[str, Any]) -> Step:
    """Reads a file for the first prompt, writes one for the second, and answers the others."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    results = sum(block["type"] == "tool_result" for block in blocks)
    told = [block.get("text", "") for block in blocks]
    if results and blocks[-1]["type"] == "tool_result":
        return Step(text=f"Answer {results}.")
    match next((text for text in reversed(told) if text in PROMPTS), ""):
        case "read it":
            return Step(calls=(Call("Read", {"path": "secret.txt"}),))
        case "write it":
            return Step(calls=(Call("Write", {"path": "notes.md", "content": "one\n"}),))
        case _:
            return Step(text="Nothing to do.")


def talked(start: Start, model: Model, shell: Shell, *args: str) -> Any:
    (shell.project / "secret.txt").write_text(SECRET)
    model.answer = reading
    terminal = start("--edits", "auto", *args, rows=50, columns=110)
    for prompt, answer in (("read it", "Answer 1."), ("write it", "Answer 2."), ("third", "Nothing to do.")):
        terminal.enter(prompt)
        terminal.wait(answer)
        terminal.look(0.2)
    return terminal


def test_omit_takes_a_result_out_and_keep_brings_it_back(start: Start, model: Model, shell: Shell) -> None:
    terminal = talked(start, model, shell)
    terminal.enter("/omit #3")
    terminal.wait("Do it?  n no · y yes")
    assert re.search(
        r"Omitting message 3 \(tool, about [\d,]+ tokens\): [\d,]+ → [\d,]+ tokens\. Input of", terminal.text
    )
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("Message 3 is hidden; /keep 3 brings it back.")
    terminal.enter("more")
    terminal.wait(lambda: terminal.text.count("Nothing to do.") == 2)
    assert "4711" not in str(model.bodies[-1]["messages"])
    terminal.enter("/keep 3")
    terminal.wait("Do it?")
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("stays in the window")
    terminal.enter("and more")
    terminal.wait(lambda: terminal.text.count("Nothing to do.") == 3)
    assert "4711" in str(model.bodies[-1]["messages"])
    terminal.enter("/omit 1")
    terminal.wait("Message 1 is the first thing you asked, which always stays")


def test_rewind_goes_back_with_the_conversation_and_the_files(start: Start, model: Model, shell: Shell) -> None:
    terminal = talked(start, model, shell)
    assert (shell.project / "notes.md").exists()
    terminal.enter("/rewind 2")
    terminal.wait("Go back?  n no · c conversation · f files · b both")
    terminal.look(0.3)
    terminal.type("b")
    terminal.wait("Rewound.")
    terminal.wait(lambda: "› write it" in terminal.text.split("Rewound.")[-1])  # to be changed and sent
    assert not (shell.project / "notes.md").exists()
    terminal.type("\x15")
    terminal.enter("what now")
    terminal.wait(lambda: len(model.bodies) == 6)
    said = [
        message["content"][0].get("text", "") for message in model.bodies[-1]["messages"] if message["role"] == "user"
    ]
    assert "write it" not in str(said)
    terminal.wait("Nothing to do.")
    terminal.look(0.3)
    terminal.enter("/quit")
    terminal.wait_exit()
    again = start("-c", rows=50, columns=110)  # the same from the stored facts
    again.wait("2 prompts so far")
    assert "› read it" in again.text
    assert "write it" not in again.text


def test_the_messages_are_a_list_to_move_through(start: Start, model: Model, shell: Shell) -> None:
    terminal = talked(start, model, shell)
    terminal.enter("/context messages")
    terminal.wait("o omit · k keep · p pin · Esc leaves")
    terminal.type("\x1b[A\x1b[A\x1b[A")
    terminal.wait(lambda: re.search(r"› +7 ", terminal.text) is not None)
    assert "· recall #" in terminal.text
    terminal.type("p")
    terminal.wait("Do it?")
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("Pinned as pin-1")
    terminal.wait(lambda: "Esc leaves" in terminal.text)
    terminal.type("\x1b")
    terminal.wait(lambda: "Esc leaves" not in terminal.text)
    terminal.enter("go on")
    terminal.wait(lambda: terminal.text.count("Nothing to do.") == 2)


def test_sessions_are_picked_by_searching_and_can_be_renamed(start: Start, model: Model, shell: Shell) -> None:
    terminal = start(rows=40, columns=110)
    for number, prompt in enumerate(("about apples", "about pears"), 1):
        terminal.enter(prompt)
        terminal.wait(lambda: "Hello, world." in terminal.text.split("› about")[-1])
        terminal.enter("/clear")
        terminal.wait(lambda number=number: terminal.everything.count("A new session") == number)
    terminal.enter("/resume")
    terminal.wait("Which session?")
    terminal.type("appl")
    terminal.wait(lambda: "about pears" not in terminal.text.split("Which session?")[-1])
    assert "│ › about apples" in terminal.text  # how it ended
    terminal.type("\x12")
    terminal.wait("title › about apples")
    terminal.type("\x15fruit\r")
    terminal.wait(lambda: "fruit" in terminal.text.split("Which session?")[-1])
    terminal.type("fruit\r")
    terminal.wait("1 prompt so far")
    assert b"fruit" in shell.ra("sessions", "list").stdout


def test_models_of_every_provider_with_a_key_are_listed_and_switched_to(start: Start, model: Model) -> None:
    terminal = start(rows=40, columns=110, env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.server.url})
    terminal.enter("/model")
    terminal.wait("Which model?")
    terminal.type("gpt-5.2 codex")
    terminal.wait(lambda: "claude" not in terminal.text.split("Which model?")[-1].split("search ›")[0])
    terminal.type("\r")
    terminal.wait("gpt-5.2-codex (openai) answers from now on")
    terminal.enter("/model haiku")
    terminal.wait("claude-haiku-5-5 (anthropic) answers from now on")
    terminal.enter("/model claude-sonet-5")
    terminal.wait("Use claude-sonnet-5?  n no · y yes")
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("claude-sonnet-5 (anthropic) answers from now on")


def test_leaving_says_how_to_come_back(start: Start, model: Model) -> None:
    terminal = start()
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    terminal.enter("/quit")
    terminal.wait_exit()
    assert re.search(r"ra -c goes on here; so does ra --resume \w{10}", terminal.everything)


def test_sources_are_in_the_list_with_their_text_and_price_and_pinning_has_a_price(
    start: Start, model: Model, shell: Shell
) -> None:
    (shell.project / "AGENTS.md").write_text("Always write tests first.\n")
    terminal = talked(start, model, shell)
    terminal.enter("/context messages")
    terminal.wait("The window.")
    terminal.look(0.3)
    terminal.type("p")
    terminal.wait("tokens more in every request. Input of the next call at most $")
    terminal.look(0.3)
    terminal.type("y")
    terminal.wait("Pinned as pin-1")
    terminal.wait(lambda: "Esc leaves" in terminal.text)
    terminal.type("\x1b[5~" * 2)
    terminal.wait("each call while the cache is warm · in every request")
    terminal.type("o")
    terminal.wait("is in every request already")
    terminal.wait("Always write tests first.")
    terminal.type("\x1b")
    terminal.wait(lambda: "The window." not in terminal.text)


def test_in_forty_columns_the_way_out_of_a_list_is_not_cut_off(start: Start, model: Model) -> None:
    terminal = start(columns=40)
    terminal.enter("hello")
    terminal.wait("Hello, world.")
    terminal.enter("/context messages")
    terminal.wait("Esc leaves · o omit · k keep · p pin")
