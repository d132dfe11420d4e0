import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.compaction.digest import Digest
from ra.context.compaction.findings import command, paths, trace
from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed
from ra.core.messages import Message, ToolCall, say
from tests.context.sessions import CONFIGURED, Log, answers, asks, engine, phrases, prose, run, started
from tests.growth import is_in_proportion


def groups_of(*messages: Message):
    view = View(Estimator())
    log = Log(view.apply)
    log.record(CONFIGURED)
    log.say(*messages)
    return view.groups


def index_of(*messages: Message, room: int = 3000) -> str:
    return Digest(Estimator()).index(groups_of(*messages), room)


def called(name: str, output: str = "ok", *, is_error: bool = False, **args: object) -> tuple[Message, Message]:
    call = ToolCall(f"id-{name}-{sorted(args)}", name, args)
    return asks(call), answers(call, output, is_error=is_error)


def test_an_index_names_files_commands_and_errors():
    index = index_of(
        say("user", "Use tabs, never spaces."),
        *called("Read", path="src/app.py"),
        *called("Edit", path="src/db.py", old="a", new="b"),
        *called("Bash", "2 failed\nE   ValueError: bad port 70000\n[exit code: 1]", command="pytest -q"),
    )
    assert "Files read:\n- src/app.py #4" in index
    assert "Files changed:\n- src/db.py #6" in index
    assert "Commands:\n- pytest -q → exit 1 #8" in index
    assert "Errors:\n- 2 failed #8" in index or "Errors:\n- E ValueError: bad port 70000 #8" in index


def test_tools_of_other_programs_are_understood():
    def one(name: str, **args: object) -> ToolCall:
        return ToolCall("x", name, args)

    patch = "*** Begin Patch\n*** Update File: lib/core.rs\n@@\n-a\n+b\n*** End Patch"
    assert list(paths(one("str_replace_editor", command="view", path="/repo/a.py"))) == ["/repo/a.py"]
    assert list(paths(one("Read", file_path="/repo/b.py"))) == ["/repo/b.py"]
    assert list(paths(one("read", filePath="c.ts"))) == ["c.ts"]
    assert list(paths(one("apply_patch", input=patch))) == ["lib/core.rs"]
    assert command(one("exec", cmd=["bash", "-lc", "ls -la"])) == "ls -la"
    assert command(one("shell", command=["git", "status"])) == "git status"
    assert command(one("bash", command="make test")) == "make test"
    (note,) = trace(groups_of(*called("apply_patch", input=patch))[0]).notes
    assert (note.kind, note.text) == ("changed", "lib/core.rs")


def test_what_came_back_is_named_with_its_place():
    index = index_of(
        *called("Bash", "order 55719 failed for NET-4711", command="a"),
        *called("Bash", "order 55719 again, NET-4711", command="b"),
    )
    assert "55719" in index
    assert "NET-4711" in index


def test_the_same_file_is_listed_once_where_it_was_seen_last():
    index = index_of(*called("Read", path="a/b.py"), *called("Read", "again", path="a/b.py"))
    assert index.count("- a/b.py") == 1
    assert "- a/b.py #5" in index


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(phrases, phrases), max_size=30), st.integers(0, 3000))
def test_an_index_keeps_to_its_room_and_is_deterministic(pairs, room):
    messages = [
        message
        for number, (path, output) in enumerate(pairs)
        for message in (say("user", path), *called(f"Tool{number}", output, path=path, command=output))
    ]
    index = index_of(*messages, room=room)
    assert Estimator().text(index) <= max(room, 0) + 1
    assert index == index_of(*messages, room=room)


def test_digests_do_not_grow_over_a_long_session():
    one = engine(8000, strategy="digest")
    log = started(one)
    rng = random.Random(5)
    list(run(one, log, 400, output=lambda n: f"{prose(rng, 100)} src/f{n}.py id_{n} {n * 7919}"))
    sizes = [Estimator().text(fact.marker) for fact in log.facts(Checkpointed)]
    assert len(sizes) > 8
    assert max(sizes) <= 3000
    assert sizes[-1] <= 1.2 * sizes[3]


def test_text_that_would_be_slow_to_search_is_not():
    def index(size: int) -> None:
        hostile = [piece * (size // len(piece)) for piece in ("a", "a-", "/", "1.", "A", "~@.")]
        index_of(*(message for number, text in enumerate(hostile) for message in called(f"T{number}", text, path="p")))

    assert is_in_proportion(index, 150_000)
