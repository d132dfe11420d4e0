"""Finds the sentences of the user that later ones replace: the same said of the same, with another value.

Two sentences in the one form of all languages that differ in one place are compared there. Where it is not clear that
the later one takes the place of the earlier, both stay.
"""

import re
from collections.abc import Sequence

from ra.context.compaction.figures import FIGURE, are_figures, are_measures, are_of_one_dimension, is_figure
from ra.context.compaction.kinds import ANSWERS, CHOOSES, LANGUAGE, LANGUAGES, kind_of
from ra.context.compaction.sentences import (
    LONGEST_CHOICE,
    LONGEST_VALUE,
    NEGATIVE,
    PLAIN_VALUE,
    POLARITY,
    SAYS_IS,
    Sentence,
    choice,
    is_sign,
    rejected_values,
)

_OF_PART = re.compile(
    r"\b(?:in|for|on|at|under|im|für|bei|unter|pour|dans|en|sur|para|per|для|в|на|في)\b|[里裡中内內]|用于"
    r"|では|での|में|के लिए"
)
SHARED = 0.5  # of the words of a sentence, at least, that the one which replaces it repeats

# Labels under which many things are said, each beside the others.
_OF_MANY = frozenset(
    re.findall(
        r"\w+",
        """
        todo note notes bug fix fixme error warning question example step task file files test idea hint issue problem
        see notiz fehler frage beispiel aufgabe datei schritt remarque erreur exemple nota ejemplo
        """,
    )
)

_COLONS = (":", "：")
_OF_WHOLE = frozenset(("of", "von", "de", "des", "du", "del", "di"))
# Verbs of what there may be several of.
_OF_SEVERAL = frozenset(
    re.findall(
        r"\S+",
        """
        support supports accept accepts read reads parse parses handle handles avoid like likes exist exists know knows
        speak speaks learn include includes offer offers sell sells import imports understand understands
        unterstütze unterstützen unterstützt akzeptiere akzeptieren lies liest vermeide mag mögen verstehe spricht
        acepta acepte admite soporta evita habla lee accepte évite parle lis aime
        поддерживает поддерживаем принимает читает избегай говорит
        يدعم ندعم يقبل يقرأ تجنب يتحدث
        """,
    )
)
_OF_SUBJECT = frozenset(re.findall(r"\S+", "keep make leave halte mache lass mantén garde rends"))


def replaces(new: Sentence, old: Sentence) -> bool:
    """Does it say the same of the same, but with another value? Then the words around the value are equal.

    A value follows what says "is". It may stand elsewhere where the new sentence says that something changes, or where
    it is a measure. A subject that differs makes two statements about two things, and so does a number that is a name.
    """
    if _elsewhere(new, old) or (new.adds and not new.changes):
        return False
    if _turns(new, old) or _chooses_other(new, old):
        return True
    if "≠" in new.words:
        return any(
            _replaces(new, old, new.words[: first - 1] + new.words[last:], new.words[first:last])
            or _chooses_against(new.words[: first - 1] + new.words[last:], old.words, new.words[first:last])
            for first, last in rejected_values(new.words)
        )
    return _replaces(new, old, new.words, ())


def _elsewhere(new: Sentence, old: Sentence) -> bool:
    """Does a heading say that the new one is about another part: "In the tests:", "Frontend:"?"""
    if not new.scope or new.scope == old.scope:
        return False
    return bool(_OF_PART.search(new.scope)) or (bool(old.scope) and not new.says_anew)


def _turns(new: Sentence, old: Sentence) -> bool:
    """Does it allow what was forbidden, or forbid what was laid down or allowed?"""
    forbids = [not NEGATIVE.isdisjoint(sentence.words) or sentence.revokes for sentence in (new, old)]
    if forbids[0] == forbids[1] or "≠" in (*new.words, *old.words):
        return False
    if not (forbids[0] or new.allows or new.changes or new.onward or not POLARITY.isdisjoint(new.words)):
        return False  # what is asked for once is asked for as an exception
    stems, old_stems = new.stems, old.stems
    told = new.says_anew or new.allows
    return len(stems) >= 2 and (stems == old_stems or (told and sorted(stems) == sorted(old_stems)))


def _chooses_other(new: Sentence, old: Sentence) -> bool:
    """Is another value of the same kind chosen for the same: "use spaces, not tabs", "from now on use four spaces"?"""
    a, b = _without_rejected(old.words), _without_rejected(new.words)
    if new.allows or max(len(a), len(b)) > LONGEST_CHOICE or not _OF_SEVERAL.isdisjoint(new.words):
        return False
    for kind in ({kind_of(word) for word in a} & {kind_of(word) for word in b}) - {None}:
        if kind == kind_of(b[0]) and b[1:2] and b[1] in SAYS_IS:
            continue  # it is what is spoken of
        (rest_a, value_a), (rest_b, value_b) = (_split_off(words, kind) for words in (a, b))
        if _without_is(rest_a) == _without_is(rest_b) and rest_a and value_a != value_b and NEGATIVE.isdisjoint(rest_a):
            answers = kind_of(value_a[-1]) == LANGUAGE and rest_a[0] in ANSWERS
            return new.says_anew or answers or rest_a[-1] in SAYS_IS or rest_a[0] in CHOOSES
    return False


def _without_is(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in SAYS_IS]


def _split_off(words: Sequence[str], kind: int | None) -> tuple[list[str], list[str]]:
    """The words beside a value, and the value with the figure before it."""
    of_value = {at for at, word in enumerate(words) if kind_of(word) == kind}
    of_value |= {at - 1 for at in of_value if at and is_figure(words[at - 1])}
    rest = [word for at, word in enumerate(words) if at not in of_value]
    return rest, [words[at] for at in sorted(of_value)]


def _chooses_against(b: Sequence[str], a: Sequence[str], rejected: Sequence[str]) -> bool:
    """Is the one value that was chosen rejected by its name, and another put in its place?"""
    return bool(b) and b[0] == "use" and choice(a) == tuple(rejected) and len(b) <= 1 + PLAIN_VALUE


def _without_rejected(words: Sequence[str]) -> Sequence[str]:
    """Without the one word at least that is rejected by its name at the end."""
    at = words.index("≠") if "≠" in words else len(words)
    return (*words[:at], *words[at + 2 :])


def _replaces(new: Sentence, old: Sentence, b: Sequence[str], rejected: Sequence[str]) -> bool:
    a = old.words
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    was, now = a[head : len(a) - tail], b[head : len(b) - tail]
    if not was and not now:
        return new.revokes and not old.revokes
    if SAYS_IS & {*was, *now, *(a[len(a) - tail :] if tail else ())}:
        return False  # it stands in what is spoken of, not in what is said of it
    if _turned(was, now):
        return head + tail >= 2
    if not was or not now or _length(was) > LONGEST_VALUE or _length(now) > LONGEST_VALUE:
        return False
    if rejected:
        return _within(rejected, was) and head + tail >= 1
    if head + tail < 2 or _length((*a[:head], *a[len(a) - tail :])) < SHARED * _length(a):
        return False
    if NEGATIVE.isdisjoint(was) and not NEGATIVE.isdisjoint(now):
        return False  # what it is not says nothing of what it is
    lead = a[head - 1] if head else ""
    rest = a[len(a) - tail :] if tail else ()
    changes = new.changes or (new.says_anew and _exclude(new, old, was, now, lead, rest))
    if head == 1 and tail and lead in _OF_SUBJECT:
        return False
    if LANGUAGES.isdisjoint(was) != LANGUAGES.isdisjoint(now):
        return False  # a language does not take the place of anything else
    if lead in SAYS_IS and not _same_sort(new, old, now, was, rest, changes=changes):
        return False
    if not (NEGATIVE.isdisjoint(a[:head]) or are_figures(was, now)):
        return False  # what else is forbidden is forbidden besides
    if head >= 2 and lead == "=":
        return are_figures(was, now) or changes or max(_length(was), _length(now)) <= PLAIN_VALUE
    if lead in _COLONS and rest and not (new.changes or are_figures(was, now)):
        return False  # a sentence stands behind the label, not a value
    if head >= 2 and lead in SAYS_IS and _OF_MANY.isdisjoint(a[:head]):
        plain = head >= 3 and max(_length(was), _length(now)) <= PLAIN_VALUE
        return plain or changes or all(len(value) == 1 and FIGURE.match(value[0]) for value in (was, now))
    return changes or (are_figures(was, now) and are_measures(a, b, head, tail, min(old.rank, new.rank)))


def _exclude(
    new: Sentence, old: Sentence, was: Sequence[str], now: Sequence[str], lead: str, rest: Sequence[str]
) -> bool:
    """Is the value that holds from now on one that stands in place of the other, as far as the words tell?

    "From now on" begins something new as often as it changes something: then both stay.
    """
    if are_figures(was, now):
        return not new.allows
    if new.allows or not _OF_SEVERAL.isdisjoint(new.words):
        return False  # one more of several
    after = rest[0] if rest else ""
    if after in _OF_WHOLE or (not lead and after in SAYS_IS):
        return False  # other parts of one thing, other subjects
    kinds, old_kinds = _kinds(now), _kinds(was)
    if kinds or old_kinds:
        return bool(kinds & old_kinds)
    if not lead:
        return False
    if _without_case(now) or _without_case(was):
        return lead in SAYS_IS or bool(rest)
    plain = new.plain.issuperset(now), old.plain.issuperset(was)
    if plain[0] != plain[1]:
        return False
    if lead in SAYS_IS:
        return not plain[0] or new.assigns or new.names_thing
    return bool(rest) or not (plain[0] or lead in CHOOSES)


def _kinds(words: Sequence[str]) -> set[int]:
    return {kind for word in words if (kind := kind_of(word)) is not None}


def _turned(was: Sequence[str], now: Sequence[str]) -> bool:
    """Is it allowed what was forbidden, or forbidden what was allowed?"""
    if not (was or now) or not POLARITY.issuperset((*was, *now)):
        return False
    return NEGATIVE.isdisjoint(was) != NEGATIVE.isdisjoint(now)


def _same_sort(
    new: Sentence, old: Sentence, now: Sequence[str], was: Sequence[str], tail: Sequence[str], *, changes: bool
) -> bool:
    """Are both values that one thing has one of? A day that is fixed is still a day, a client in a hurry has a name."""
    if are_figures(was, now):
        return are_of_one_dimension(was, now)
    kinds, old_kinds = _kinds(now), _kinds(was)
    if kinds & old_kinds:
        return True
    is_plain, was_plain = new.plain.issuperset(now), old.plain.issuperset(was)
    if is_plain and not was_plain:
        return False
    known = [bool(of_kind) or any(map(is_figure, value)) for of_kind, value in ((kinds, now), (old_kinds, was))]
    elsewhere = new.preposition != old.preposition
    if any(known) or elsewhere:
        return changes and not (elsewhere and new.preposition and old.preposition)
    if now[-1] == "的" or tail[:1] == ("的",):
        return False  # says how it is
    named = not (is_plain or _without_case(now) or _without_case(was))
    return bool(changes or named or new.assigns)


def _without_case(words: Sequence[str]) -> bool:
    """Is it in a script without capital letters, in which names cannot be told from other words?"""
    return all(word.upper() == word.lower() for word in words)


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == tuple(part) for at in range(len(whole) - len(part) + 1))


def _length(words: Sequence[str]) -> float:
    """In words: two Chinese or Japanese signs are one, about."""
    return sum(0.5 if is_sign(word) else 1 for word in words)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for word, counterpart in zip(a, b, strict=False):
        if word != counterpart:
            break
        count += 1
    return count
