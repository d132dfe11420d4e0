"""What the user said is not forgotten: quotes in every gap, what replaces what, and what gives way first."""

import random

import pytest

from ra.context.compaction.quotes import HEADING, Quotes, typed_text
from ra.context.compaction.sentences import sentences
from ra.context.compose.rotation import Segment, rotate
from ra.context.tokens import Estimator
from ra.context.view import OMITTED, Group, Item
from ra.core.facts import Checkpointed
from ra.core.messages import Message, Text, say
from tests.context.sessions import assemble, engine, replayed, started, step, text_of

RULES = (
    "Never push to the branch release/2.",
    "Antworte immer auf Deutsch und ohne Emojis.",
    "所有接口必须保持向后兼容，不得删除字段。",
    "يجب أن تكون جميع التواريخ بتنسيق ISO.",
    "Le budget est de 340 euros.",
    "The staging host is orbit-17.internal.",
    "Hashes are truncated to 12 characters because the column is narrow.",
    "Спрашивай, прежде чем удалять файлы.",
    "テストは必ず実行してください。",
    "My sister's name is Marta and she reviews the texts.",
)


def quoted(*texts: str, room: int = 4000) -> str:
    """What would be quoted of these messages, if all were hidden."""
    quotes = Quotes(Estimator())
    groups = [Group("said", Item((at, 0), say("user", text))) for at, text in enumerate(texts, 1)]
    for group in groups:
        quotes.add(group)
    return quotes.write((group.place for group in groups), room).text.removeprefix(HEADING).strip()


# --- in sessions ---


@pytest.mark.parametrize("strategy", ["truncate", "digest", "auto", "summarize"])
def test_what_the_user_said_is_in_every_request_after_any_number_of_compactions(strategy):
    one = engine(24_000, strategy=strategy)
    log = started(one)
    rng = random.Random(3)
    said: list[str] = []
    checkpoints = 0
    for number in range(120):
        if number % 10 == 5:
            said.append(RULES[number // 10 % len(RULES)])
            log.say(say("user", f"{said[-1]} Go on with part {number}."))
        log.say(*step(number, " ".join(rng.choices(("red", "blue", "green", "grey"), k=900))))
        assembly = assemble(one)
        log.record(*assembly.facts)
        checkpoints += sum(isinstance(fact, Checkpointed) for fact in assembly.facts)
        text = text_of(assembly.request)
        assert [rule for rule in said if rule not in text] == []
    assert checkpoints >= 4
    again = replayed(log.written, limit=24_000, strategy=strategy)
    assert again.request().messages == one.request().messages


def test_no_gap_that_stands_quotes_what_was_replaced_since():
    one = engine(24_000, strategy="truncate")
    log = started(one)
    said = {9: "The port is 8080. Ask first.", 13: "The port is 9090."}
    gaps = []
    for number in range(30):
        if number in said:
            log.say(say("user", said[number]))
        if number % 5 == 4:
            log.say(say("user", f"Go on with chapter {number}."))
        log.say(*step(number, "word " * 2500))
        assembly = assemble(one)
        log.record(*assembly.facts)
        if number > 13 and any(isinstance(fact, Checkpointed) for fact in assembly.facts):
            gaps.append([message.text for message in assembly.request.messages if message.name == "compacted"])
            assert [text for text in gaps[-1] if "8080" in text] == []
            assert "Ask first." in text_of(assembly.request)
            assert "9090" in text_of(assembly.request)
    assert max(map(len, gaps)) > 1


def rotated(one, log, history):
    segment = Segment()
    for event in log.written:
        segment.apply(event)
    fact = rotate(one.view, "max-turns", segment, history=history, estimator=Estimator(), window=24_000)
    log.record(fact)
    return fact


def test_a_rotation_hands_over_what_was_hidden_within_a_turn_that_is_replayed():
    one = engine(24_000, strategy="truncate")
    log = started(one, "Begin.")
    log.say(*step(1, "word " * 9000), say("user", "Never open port 22."), *step(2, "word " * 9000))
    log.say(say("user", "Go on."), *step(3, "word " * 200))
    log.record(*assemble(one, force="manual").facts)
    assert [group.item.message.text for group in one.view.hidden if group.is_prompt] == ["Never open port 22."]
    fact = rotated(one, log, 3000)
    assert fact.keep_from < one.view.prompted[1].at
    assert "Never open port 22." in text_of(one.request())


@pytest.mark.parametrize("strategy", ["truncate", "digest"])
def test_what_the_user_took_out_comes_back_in_no_quote(strategy):
    one = engine(24_000, strategy=strategy)
    log = started(one, "Begin.")
    log.say(say("user", "The port is 8080."), *step(1, "word " * 900), say("user", "The port is 4711."))
    log.say(*step(2, "word " * 900), say("user", "Go on."), *step(3, "word " * 9000))
    at = one.view.prompted[2].at
    log.record(Checkpointed("omit", "user", hidden=((at, at),), marker=f"{OMITTED}a message out of view here.]"))
    for number in range(3):
        log.say(say("user", f"Part {number}."), *step(number, "word " * 9000))
        log.record(*assemble(one, force="manual").facts)
        text = text_of(one.request())
        assert ["8080" in text, "4711" in text] == [True, False]
    rotated(one, log, 3000)
    text = text_of(one.request())
    assert ["8080" in text, "4711" in text] == [True, False]


def test_a_second_rotation_hands_over_what_the_first_did():
    one = engine(24_000, strategy="truncate")
    log = started(one, "Begin.")
    log.say(say("user", "Never open port 22."), *step(1, "word " * 3000), say("user", "Go on."), *step(2, "word " * 50))
    for number in range(4):
        rotated(one, log, 2000 if number != 2 else 40)
        assert "Never open port 22." in text_of(one.request())
        log.say(say("user", f"Part {number}."), *step(number, "word " * 50))


def test_what_a_segment_began_with_no_longer_quotes_what_was_replaced_in_it():
    one = engine(24_000, strategy="truncate")
    log = started(one, "Begin.")
    log.say(say("user", "The port is 8080. Ask first."), *step(1, "word " * 5000), say("user", "My name is Ann."))
    log.say(*step(2, "word " * 5000))
    rotated(one, log, 40)
    log.say(say("user", "The port is 9090."), *step(3, "word " * 9000), say("user", "Go on."), *step(4, "word " * 9000))
    assert "The port is 8080." in text_of(one.request())
    log.record(*assemble(one, force="manual").facts)
    text = text_of(one.request())
    assert [part in text for part in ("is 8080", "9090", "Ask first.", "My name is Ann.")] == [False, True, True, True]
    assert replayed(log.written, limit=24_000, strategy="truncate").request().messages == one.request().messages


def test_a_hundred_compactions_do_not_make_the_request_grow():
    one = engine(8000, strategy="digest")
    log = started(one)
    sizes = []
    for number in range(150):
        log.say(say("user", f"Rule {number}: name the module of part {number} after colour-{number}, please."))
        log.say(*step(number, "word " * 500))
        assembly = assemble(one, force="manual")
        log.record(*assembly.facts)
        sizes.append(assembly.tokens)
    assert max(sizes[60:]) <= max(sizes[:60]) * 1.1


def test_quotes_have_a_budget_of_their_own():
    one = engine(8000, strategy="truncate")
    log = started(one)
    for number in range(40):
        log.say(say("user", f"Note {number}: " + "some more words about it " * 20), *step(number, "word " * 200))
        assembly = assemble(one)
        log.record(*assembly.facts)
    gaps = [message.text for message in assembly.request.messages if message.name == "compacted"]
    assert 400 < sum(Estimator().text(gap.partition(HEADING)[2]) for gap in gaps) <= 800


def test_what_was_attached_is_not_quoted():
    message = Message(
        "user", (Text("Look at @a.py."), Text('<file path="a.py">\nsecret = 1\n</file>'), Text("<b> is bold"))
    )
    assert typed_text(message) == "Look at @a.py.\n<b> is bold"


# --- what replaces what ---


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The budget cap is $500 total.", "The budget cap is $650 total."),
        ("Budget cap is $500.", "Update: budget cap is now $650."),
        ("HARD CONSTRAINT: Total spending is capped at $300.", "HARD CONSTRAINT: Total spending is capped at $420."),
        ("The deadline is Monday.", "Change of plan: the deadline is Friday."),
        ("The deadline is Monday.", "The new deadline is Friday."),
        ("Answer in German.", "From now on answer in French."),
        ("Never exceed 40 requests per minute.", "Never exceed 60 requests per minute."),
        ("Die Frist ist der 3. Mai.", "Die Frist ist jetzt der 9. Mai."),
        ("Das Budget beträgt 500 Euro.", "Das Budget beträgt ab sofort 650 Euro."),
        ("截止日期是5月1日。", "截止日期改为6月3日。"),
        ("数据库端口是5432。", "数据库端口现在改成6543。"),
        ("الموعد النهائي هو 5 مايو.", "الموعد النهائي أصبح 9 مايو."),
        ("La date limite est lundi.", "La date limite est désormais vendredi."),
    ],
)
def test_a_later_value_of_the_same_replaces_the_earlier(old, new):
    assert quoted(old, "Go on.", new) == f"#2: Go on.\n#3: {new}"


def test_rules_that_replace_each_other_twice_leave_the_last():
    texts = [f"The port is {port}. Keep it open." for port in (8080, 9090, 7070)]
    assert quoted(*texts) == "#3: The port is 7070. Keep it open."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The production database is Postgres 15.", "The staging database is Postgres 16."),
        ("Fix JUDGE-004 first.", "Fix DATA-002 first."),
        ("Read src/a.py and tell me what is wrong.", "Read src/b.py and tell me what is wrong."),
        ("Server A is at 10.0.0.1.", "Server B is at 10.0.0.2."),
        ("Use Python for the backend.", "Use Python for the frontend."),
        ("File: a.py", "File: b.py"),
        ("测试服务器是蓝色的。", "生产服务器是绿色的。"),
        ("Never touch billing.", "Never touch the audit log without asking."),
        ("Add tests for the lexer.", "Add new tests for the parser."),
        ("Please change part 1 of it to red.", "Please change part 2 of it to red."),
        ("Error: timeout after 30 s", "Error: timeout after 45 s"),
    ],
)
def test_statements_about_different_things_both_stay(first, second):
    assert quoted(first, second) == f"#1: {first}\n#2: {second}"


@pytest.mark.parametrize(
    ("first", "second", "back"),
    [
        ("The port is 8080. Ask first.", "The port is 9090.", "Go back to the old port."),
        ("Answer in German. Ask first.", "Answer in French from now on.", "Undo that, as before please."),
        ("Das Limit ist 30. Frag erst.", "Das Limit ist jetzt 60.", "Nimm wieder das alte Limit."),
        ("端口是8080。先问我。", "端口改成9090。", "恢复原来的端口。"),
        ("El puerto es 8080. Pregunta.", "El puerto ahora es 9090.", "Vuelve al puerto de antes."),
        ("Le port est 8080. Demande.", "Le port est maintenant 9090.", "Reviens à l'ancien port."),
    ],
)
def test_what_a_later_sentence_goes_back_to_is_quoted_again(first, second, back):
    assert quoted(first, second, back) == f"#1: {first}\n#2: {second}\n#3: {back}"


def test_what_holds_again_is_quoted_also_where_a_gap_stands():
    one = engine(24_000, strategy="truncate")
    log = started(one)
    for number, words in enumerate(("The port is 8080. Ask first.", "The port is 9090.", "Go back to the old port.")):
        log.say(say("user", words), *step(number, "word " * 9000), say("user", "Go on."), *step(9, "word " * 9000))
        log.record(*assemble(one, force="manual").facts)
        text = text_of(one.request())
        assert ["is 8080." in text, "is 9090." in text] == [number != 1, number > 0]


def test_the_rest_of_a_message_stays_when_one_sentence_of_it_is_replaced():
    text = quoted("Use tabs. The port is 8080. Ask before you delete.", "The port is 9090.")
    assert text == "#1: Use tabs. […] Ask before you delete.\n#2: The port is 9090."


def test_what_is_said_again_is_quoted_once_where_it_was_said_last():
    assert quoted("Go on.", "Use tabs.", "go  on.") == "#2: Use tabs.\n#3: go  on."


# --- what gives way first ---


def test_the_longest_are_shortened_first_and_both_ends_stay():
    long = "BEGIN of it. " + "It goes on and on here. " * 200 + "END of it."
    text = quoted("Use tabs.", long, "The port is 9090.", room=200)
    assert text.startswith("#1: Use tabs.\n#2: BEGIN of it.")
    assert "END of it.\n#3: The port is 9090." in text
    assert Estimator().text(f"{HEADING}\n{text}") <= 200


@pytest.mark.parametrize("rule", RULES[:4])
def test_a_rule_in_the_middle_of_a_long_prompt_stays(rule):
    long = "It began like this. " * 300 + rule + " So it went on. " * 300
    assert rule.strip() in quoted("Use tabs.", long, "Go on.", room=300)


def test_each_of_many_long_prompts_keeps_its_rule_where_the_prose_gives_way():
    prose = "We went through the part that concerns the parser. "
    prompts = [prose * 30 + f"Never touch the folder area-{number}. " + prose * 20 for number in range(30)]
    text = quoted(*prompts, room=1000)
    assert [number for number in range(30) if f"Never touch the folder area-{number}." not in text] == []
    assert Estimator().text(text) <= 1000


def test_a_value_that_replaced_another_stays_like_a_rule():
    prose = "We went through the part that concerns the parser. "
    text = quoted("The mascot is a fox.", prose * 40 + "The mascot is an owl now. " + prose * 40, "Go on.", room=140)
    assert ("an owl now." in text, "a fox" in text) == (True, False)


def test_what_lays_nothing_down_goes_before_what_does():
    chatter = [f"We looked at chapter {chr(97 + number)} of that long book together." for number in range(20)]
    texts = [text for pair in zip(chatter[:10], RULES, strict=True) for text in pair] + chatter[10:]
    text = quoted(*texts, room=230)
    assert [rule for rule in RULES[:4] if rule not in text] == []


def test_sentences_cover_the_text():
    text = "One. Two!\nThree? 四。五！ v3.11 stays. e.g. this"
    parts = list(sentences(text))
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert " v3.11 stays. " in [text[part.start : part.end] for part in parts]


def test_what_was_laid_down_is_listed_with_what_replaced_it_and_whether_the_model_sees_it():
    one = engine(8000, strategy="digest")
    log = started(one, "Build it.")
    log.say(say("user", "The port is 8080. Never open port 22."), *step(1, "word " * 900))
    log.say(say("user", "The port is 9090."), *step(2, "word " * 900), say("user", "Go on."), *step(3, "word " * 500))
    log.record(*assemble(one, force="manual").facts)
    statements = Quotes(Estimator()).statements(one.view, one.request())
    rows = [(row.at, row.text, row.replaced_at, row.visible) for row in statements]
    assert rows == [
        (3, "The port is 8080.", 6, False),
        (3, "Never open port 22.", 0, True),
        (6, "The port is 9090.", 0, True),
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "Sign every letter as Captain Nemo.",
        "Все даты пиши по-русски.",
        "报价单一律用人民币计价。",
        "हमेशा विनम्र भाषा का प्रयोग करें।",
        "Rechnungen gehen in dreifacher Ausfertigung raus.",
    ],
)
def test_what_is_said_again_and_again_gives_way_before_what_was_said_once(rule):
    prompts = [f"Please go through module {number} and tell me what it does about caching." for number in range(60)]
    prompts[31] += f" {rule}"
    text = quoted(*prompts, room=500)
    assert rule in text
    assert text.count("module ") > 10  # what room is left holds whole messages


@pytest.mark.parametrize("strategy", ["digest", "summarize"])
def test_an_index_lists_no_value_that_only_the_user_said_and_replaced(strategy):
    one = engine(24_000, strategy=strategy)
    log = started(one, "Begin.")
    log.say(say("user", "The port is 4711. Ticket DATA-17 is open."), *step(1, "word " * 4000))
    log.say(say("user", "The port is 4712."), *step(2, "word " * 4000), say("user", "Go on."), *step(3, "word " * 200))
    log.record(*assemble(one, force="manual").facts)
    text = text_of(one.request())
    assert ["4711" in text, "4712" in text, "DATA-17" in text] == [False, True, True]


def test_a_letter_that_is_longer_in_small_letters_moves_no_sentence():
    text = "İİİİ ıſ. Never push to main. NEVER PUSH TO main."
    assert [text[one.start : one.end].strip() for one in sentences(text)] == [
        "İİİİ ıſ.",
        "Never push to main.",
        "NEVER PUSH TO main.",
    ]
    assert [one.rank for one in sentences(text)][1:] == [3, 3]
