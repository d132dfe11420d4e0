"""What the user typed around something pasted is told from it by the look of lines, and stays when that gives way."""

import random

import pytest

from ra.context.compaction.replaced import replaces
from ra.context.compaction.sentences import sentences
from tests.context.test_quotes import quoted

RULES = (
    "Please never restart the database yourself.",
    "N'envoie rien au client sans me demander.",
    "कभी भी main पर push मत करो।",
    "By the way, my cat is called Ferdinand.",
    "I am allergic to nuts, so no recipes with them.",
)


def pasted(kind: str, rng: random.Random, count: int) -> str:
    n = rng.randrange
    lines = {
        "log": lambda: f"2026-03-{n(10, 28)} 10:{n(10, 59)}:00 ERROR [http-{n(9)}] cannot connect, must retry {n(999)}",
        "levels": lambda: f"{rng.choice(('ERROR', 'INFO'))}: value must be at most {n(99)} in {rng.choice('abcdef')}",
        "code": lambda: f"    if not self.value_{n(999)}: raise ValueError('must be {n(99)}')  # never",
        "patch": lambda: f"{rng.choice('+-')}    limit_{n(999)} = max(only, {n(99)})  # must never be 0",
        "mail": lambda: f"> Please do not forget order {n(9999)}: it must ship within {n(2, 28)} days.",
        "table": lambda: f"| part-{n(9999)} | {n(99)} | must not exceed {n(99)} |",
        "csv": lambda: f"{n(9999)},part_{rng.choice('abcdef')},{n(99)},never",
        "json": lambda: f'  {{"id": {n(9999)}, "required": true, "note": "must not be empty"}},',
        "trace": lambda: f'  File "/srv/app/mod_{n(999)}.py", line {n(999)}, in run_{rng.choice("abc")}',
        "chat": lambda: f"[{n(10, 20)}:{n(10, 59)}] Anna: please do not merge number {n(99)} today",
        "listing": lambda: f"- Check the cache of unit {n(999)}, which must not {rng.choice(('leak', 'block'))}",
        "prose": lambda: f"In week {n(52)} we must have looked at {n(2, 90)} tickets, and none was open.",
    }
    return ("\n" if kind != "prose" else " ").join(lines[kind]() for _ in range(count))


KINDS = ("log", "levels", "code", "patch", "mail", "table", "csv", "json", "trace", "chat", "listing", "prose")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_stays_where_what_was_pasted_around_it_gives_way(kind, rule):
    rng = random.Random(f"{kind} {rule}")
    prompt = f"Look at this:\n\n{pasted(kind, rng, 30)}\n{rule}\n{pasted(kind, rng, 40)}\n\nWhat do you think?"
    assert rule in quoted("Begin.", prompt, "Go on.", room=160)


def test_of_many_pastes_none_takes_the_room_of_the_others():
    rng = random.Random(1)
    prompts = [f"{rule}\n\n{pasted('prose', rng, 60)}\n\nSum it up." for rule in RULES]
    text = quoted(*prompts, room=500)
    assert [rule for rule in RULES if rule not in text] == []


@pytest.mark.parametrize(
    "paste",
    [
        "Anna wrote:\n> The port is 9090 now.\nIs she right?",
        "```\nThe port is 9090.\n```\nIs that log all right?",
        "The page says:\n\n| Name | Value |\n| The port is 9090. |",
    ],
)
def test_what_was_pasted_replaces_nothing(paste):
    [rule] = sentences("The port is 8080.")
    assert not any(part.may_replace and replaces(part, rule) for part in sentences(paste))


def test_a_short_list_of_rules_was_typed():
    rules = "\n".join(f"- Never use the word {word}." for word in ("cheap", "best", "simply", "just", "very", "easy"))
    assert [part.rank for part in sentences(f"My rules:\n{rules}\n\nPORT = 8080")] == [1, *[3] * 6, 2]
