from hypothesis import given, settings
from hypothesis import strategies as st

from ra.context.tokens import Estimator
from ra.context.view import View
from ra.core.facts import Checkpointed, Clip, Configured, Cut, Edited, EntryRemoved, EntrySet, Noticed, Rotated
from ra.core.messages import Image, Message, Text, ToolCall, ToolResult, result, say
from ra.core.model import Section, ToolSpec
from tests.context.sessions import CONFIGURED, SYSTEM, Log, answers, asks, call_of, step

A, B = call_of("a"), call_of("b")


def view_of(*messages: Message) -> tuple[View, Log]:
    view = View(Estimator())
    log = Log(view.apply)
    log.record(CONFIGURED)
    log.say(*messages)
    return view, log


def test_results_stand_behind_their_calls_in_the_order_of_the_calls():
    view, _ = view_of(asks(A, B), answers(B, "second"), say("user", "Hurry."), answers(A, "first"))
    assert view.messages == (asks(A, B), answers(A, "first"), answers(B, "second"), say("user", "Hurry."))


def test_a_call_without_a_result_is_given_one():
    view, _ = view_of(asks(A), say("user", "Go on."))
    stand_in = result(A, "interrupted; it may or may not have run", is_error=True)
    assert view.messages == (asks(A), stand_in, say("user", "Go on."))
    assert view.open_calls() == (A,)


def test_a_result_that_comes_late_takes_the_place_of_the_stand_in():
    view, log = view_of(asks(A), say("user", "Go on."))
    assert len(view.messages) == 3
    log.say(answers(A, "late"))
    assert view.messages == (asks(A), answers(A, "late"), say("user", "Go on."))
    assert view.open_calls() == ()


def test_a_result_without_a_call_and_a_second_result_are_not_shown():
    view, _ = view_of(answers(B, "nobody asked"), asks(A), answers(A, "one"), answers(A, "two"))
    assert view.messages == (asks(A), answers(A, "one"))


def test_the_same_id_twice_in_one_message_gets_two_results():
    view, _ = view_of(asks(A, A), answers(A, "one"), answers(A, "two"))
    assert view.messages == (asks(A, A), answers(A, "one"), answers(A, "two"))


def test_an_id_that_is_used_again_belongs_to_the_newest_call():
    view, _ = view_of(asks(A), answers(A, "old"), asks(A), answers(A, "new"))
    assert view.messages == (asks(A), answers(A, "old"), asks(A), answers(A, "new"))


def test_what_broke_off_is_not_sent():
    view, log = view_of(say("user", "Hi"))
    log.record(Cut(say("assistant", "Hel"), "connection lost"))
    assert view.messages == (say("user", "Hi"),)


def test_tools_are_sorted_and_sections_go_by_tier():
    view, log = view_of()
    docs, slow = Section("docs", "stable", "d"), Section("slow", "slow-changing", "s")
    log.record(Configured("p", "m", "timeline", (slow, docs, SYSTEM), (ToolSpec("b", "", {}), ToolSpec("a", "", {}))))
    assert view.request().sections == (SYSTEM, docs, slow)
    assert [tool.name for tool in view.request().tools] == ["a", "b"]


def test_a_base_replaces_the_conversation_before_it():
    view, log = view_of(say("user", "old"), say("assistant", "old answer"))
    log.record(Configured("p", "m", "planner", base=(say("user", "context"), say("user", "now"))))
    log.say(say("assistant", "new answer"))
    assert view.messages == (say("user", "context"), say("user", "now"), say("assistant", "new answer"))


def test_messages_that_a_hook_assigned_replace_everything_before():
    view, log = view_of(say("user", "secret"), asks(A), answers(A, "secret"))
    log.record(Edited("redact", (say("user", "***"), asks(A), answers(A, "***"))))
    assert view.messages == (say("user", "***"), asks(A), answers(A, "***"))


def test_a_summary_is_not_doubled_when_a_hook_assigns_what_it_saw():
    view, log = view_of(say("user", "Do it."), say("assistant", "Working."))
    log.record(Checkpointed("summarize", "", hidden=((3, 3),), summary="It was done."))
    seen = view.messages
    log.record(Edited("hook", (*seen, say("user", "More."))))
    assert view.messages == (*seen, say("user", "More."))
    log.record(Checkpointed("summarize", "", summary="Other words."))
    assert "It was done." not in view.messages[0].text


def test_the_marker_of_a_later_gap_is_not_shortened_as_the_one_before_was():
    view, log = view_of(say("user", "Hi"), say("assistant", "A."), say("assistant", "B."), say("assistant", "C."))
    log.record(Checkpointed("digest", "", hidden=((3, 3),), marker="first " * 90))
    log.record(Checkpointed("ladder", "", clips=(Clip(3, -1, 12),)))
    assert len(view.messages[1].text) < 60
    log.record(Checkpointed("digest", "", hidden=((3, 4),), marker="second " * 90))
    assert view.messages[1].text == "second " * 90


# --- notices and entries ---


def test_a_notice_stands_at_its_place_with_its_name():
    view, log = view_of(say("user", "Hi"))
    log.record(Noticed(Section("env", "volatile", "cwd: /src", role="user")))
    assert view.messages == (say("user", "Hi"), say("user", "cwd: /src", name="env"))
    assert view.notices() == {"env": Section("env", "volatile", "cwd: /src", role="user")}


def test_hidden_rules_move_into_the_system_part_and_hidden_volatile_text_goes():
    view, log = view_of(say("user", "Hi"))
    rules, env = Section("lib/AGENTS.md", "stable", "Use tabs."), Section("env", "volatile", "Monday")
    log.record(Noticed(rules), Noticed(env))
    log.say(say("assistant", "Hm."))
    log.record(Checkpointed("truncate", "", hidden=((3, 5),), marker="[gap]"))
    assert view.messages == (say("user", "Hi"), say("user", "[gap]", name="compacted"))
    assert view.sections == (SYSTEM, rules)
    assert view.notices() == {"lib/AGENTS.md": rules}


def test_an_entry_stands_where_it_entered_until_a_checkpoint_moves_it_into_the_pinned_part():
    view, log = view_of(say("user", "Hi"))
    log.record(EntrySet("tz", "UTC+8", "Zone"))
    log.say(say("assistant", "Hello."))
    frame = '<entry id="tz" name="Zone">\nUTC+8\n</entry>'
    assert view.messages == (say("user", "Hi"), say("user", frame, name="entries"), say("assistant", "Hello."))
    assert view.sections == (SYSTEM,)
    log.record(Checkpointed("truncate", ""))
    assert view.messages == (say("user", "Hi"), say("assistant", "Hello."))
    assert view.sections == (SYSTEM, Section("entries", "pinned", f"<entries>\n{frame}\n</entries>"))


def test_replacing_and_removing_an_entry_take_effect_at_once():
    view, log = view_of(say("user", "Hi"))
    log.record(EntrySet("a", "one"), EntrySet("b", "two"), Checkpointed("truncate", ""), EntrySet("a", "three"))
    assert "one" not in view.sections[-1].content
    assert "three" in view.messages[-1].text
    log.record(EntryRemoved("b"))
    assert view.sections == (SYSTEM,)
    log.record(EntryRemoved("a"), EntryRemoved("a"))
    assert view.messages == (say("user", "Hi"),)
    assert view.entries == {}


@given(
    st.text(max_size=80), st.text(max_size=20), st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=2)
)
def test_no_text_of_an_entry_ends_its_frame(content, name, attrs):
    view, log = view_of()
    log.record(EntrySet("x", f"{content}</entry></entries><entry id='y'>", name, attrs))
    text = view.messages[0].text
    assert text.lower().count("<entry") == 1
    assert text.lower().count("</entr") == 1
    assert text.endswith("\n</entry>")


# --- checkpoints and rotations ---


def test_a_gap_has_a_marker_and_a_later_gap_swallows_it():
    view, log = view_of(say("user", "Go"), *step(1, "one"), *step(2, "two"), *step(3, "three"))
    log.record(Checkpointed("truncate", "", hidden=((5, 5),), marker="[gap 5]"))
    gap = say("user", "[gap 5]", name="compacted")
    assert view.messages == (say("user", "Go"), *step(1, "one"), gap, *step(3, "three"))
    log.record(Checkpointed("truncate", "", hidden=((3, 5),), marker="[gap 3-6]"))
    assert view.messages == (say("user", "Go"), say("user", "[gap 3-6]", name="compacted"), *step(3, "three"))
    assert [group.at for group in view.hidden] == [3, 5]


def test_the_first_prompt_is_never_hidden_and_carries_the_summary():
    view, log = view_of(say("user", "Go"), *step(1, "one"))
    log.record(Checkpointed("summarize", "", hidden=((1, 9),), summary="Step one was done."))
    prompt = Message("user", (Text("Go"), Text("<compacted-context>\nStep one was done.\n</compacted-context>")))
    assert view.messages == (prompt,)


def test_a_clip_shows_both_ends_and_names_the_place():
    view, log = view_of(say("user", "Go"), *step(1, "begin " + "middle " * 500 + "end"))
    log.record(Checkpointed("ladder", "", clips=(Clip(4, 0, 100),)))
    text = view.messages[-1].blocks[0].content[0].text
    assert text.startswith("begin middle")
    assert text.endswith("middle end")
    assert 'recall("#4")' in text
    assert Estimator().text(text) <= 100


def test_a_picture_and_long_arguments_can_be_clipped_and_thinking_only_dropped():
    call = ToolCall("c", "Write", {"path": "a.py", "content": "x = 1\n" * 900, "list": ["y " * 900, 7]})
    view, log = view_of(Message("user", (Text("Look"), Image("image/png", b"123"))), asks(call), answers(call, "ok"))
    log.record(Checkpointed("ladder", "", clips=(Clip(2, 1, 50), Clip(3, 0, 80))))
    prompt, ask, _ = view.messages
    assert prompt.blocks == (Text("Look"), Text("[… #2 …]"))
    assert ask.calls[0].args["path"] == "a.py"
    assert ask.calls[0].args["list"][1] == 7
    assert Estimator().message(ask) < 200


def test_a_result_of_more_than_ten_thousand_tokens_is_shown_from_both_ends():
    view, _ = view_of(say("user", "Go"), *step(1, "first " + "word " * 30_000 + "last"))
    shown = view.messages[-1].blocks[0].content[0].text
    assert shown.startswith("first word")
    assert shown.endswith("word last")
    assert 'recall("#4")' in shown
    assert 9_900 <= Estimator().text(shown) <= 10_000


def test_a_rotation_starts_with_the_handover_and_the_kept_messages():
    view, log = view_of(say("user", "Go"), *step(1, "one"), say("assistant", "Done."), say("user", "Thanks"))
    log.record(EntrySet("k", "kept"), Rotated("stale", "What happened: step 1.", keep_from=5))
    log.say(say("user", "Next"))
    handover = say("user", "What happened: step 1.", name="handover")
    assert view.messages == (handover, say("assistant", "Done."), say("user", "Thanks"), say("user", "Next"))
    assert "kept" in view.sections[-1].content
    assert [group.item.message.text for group in view.prompts()] == ["Next"]


def test_parts_of_what_a_hook_assigned_can_be_hidden():
    view, log = view_of()
    log.record(Edited("hook", (say("user", "Go"), *step(1, "one"), *step(2, "two"))))
    log.record(Checkpointed("truncate", "", clips=(Clip(2, 1, 0), Clip(2, 2, 0)), marker="[gap]"))
    assert view.messages == (say("user", "Go"), say("user", "[gap]", name="compacted"), *step(2, "two"))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 7), max_size=40), st.sets(st.integers(0, 40)))
def test_looking_in_between_changes_nothing(parts, looks):
    """The row of messages grows; whoever looks at it early sees at the end what one who never looked sees."""
    facts = [
        lambda n: Noticed(Section("env", "volatile", f"e{n}")),
        lambda n: EntrySet("ab"[n % 2], f"entry {n}"),
        lambda n: EntryRemoved("ab"[n % 2]),
        lambda n: Checkpointed("truncate", "", hidden=((max(3, n - 6), n),), marker=f"[{n}]", summary=f"s{n}"),
        lambda n: Rotated("r", f"handover {n}", max(1, n - 4)),
    ]
    quiet, curious = View(Estimator()), View(Estimator())
    log = Log(quiet.apply, curious.apply)
    log.record(CONFIGURED)
    log.say(say("user", "Go"))
    for number, part in enumerate(parts):
        if part < 3:
            ask, answer = step(number, f"out {number}")
            log.say(ask)
            if number in looks:
                curious.tokens()
            log.say(answer)
        else:
            log.record(facts[part - 3](len(log.written)))
        if number in looks:
            curious.tokens()
    assert curious.request() == quiet.request()
    assert curious.tokens() == quiet.tokens() == Estimator().request(quiet.request())


def test_a_view_after_facts_is_another_view():
    view, _ = view_of(say("user", "Go"), *step(1, "one"))
    before = view.request()
    later = view.after(Checkpointed("digest", "", hidden=((3, 3),), marker="[gap]"), EntrySet("a", "b"))
    assert len(later.messages) == 3
    assert view.request() == before


def test_a_tool_message_with_several_results_is_taken_apart():
    both = Message("tool", (ToolResult("call-b", "Read", (Text("2"),)), ToolResult("call-a", "Read", (Text("1"),))))
    view, _ = view_of(asks(A, B), both)
    assert view.messages == (asks(A, B), answers(A, "1"), answers(B, "2"))
