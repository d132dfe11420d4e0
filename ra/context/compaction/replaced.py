"""Finds sentences of the user that later ones replace: the same statement about the same subject, with another value.

Two normalised sentences that differ in one place are compared there. If it is not clear that the later one replaces the
earlier one, both stay.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ra.context.compaction.figures import (
    FIGURE,
    NOMINAL,
    are_figures,
    are_measures,
    are_of_one_dimension,
    is_figure,
    is_longer,
    length,
)
from ra.context.compaction.kinds import (
    ANSWERS,
    CHOOSES,
    LANGUAGE,
    LANGUAGES,
    LONGEST_VALUE,
    PLAIN_VALUE,
    choice,
    kind_of,
    rejected_values,
)
from ra.context.compaction.sentences import LONGEST_CHOICE, NEGATIVE, POLARITY, SAYS_IS, Sentence

_OF_PART = re.compile(
    r"\b(?:in|for|on|at|under|im|für|bei|unter|pour|dans|en|sur|para|per|для|в|на|في)\b|[里裡中内內]|用于"
    r"|では|での|में|के लिए"
)
SHARED = 0.5  # the least share of a sentence's words that its replacement repeats

# Labels that introduce many statements, none of which replaces another.
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
_LABELS = frozenset((*_COLONS, "用"))
_IS_LAST = (("है",), ("हैं",))
_OF_WHOLE = frozenset(("of", "von", "de", "des", "du", "del", "di"))
# Verbs whose objects may be several at a time.
_OF_SEVERAL = frozenset(
    re.findall(
        r"\S+",
        """
        ship ships deliver delivers liefere liefern liefert envía enviamos livre livrons доставляем
        support supports accept accepts read reads parse parses handle handles avoid like likes exist exists know knows
        speak speaks learn include includes offer offers sell sells import imports understand understands
        unterstütze unterstützen unterstützt akzeptiere akzeptieren lies liest vermeide mag mögen verstehe spricht
        acepta acepte admite soporta evita habla lee accepte évite parle lis aime
        поддерживает поддерживаем принимает читает избегай говорит
        يدعم ندعم يقبل يقرأ تجنب يتحدث
        """,
    )
)
_OF_SEVERAL_SIGNS = re.compile("支持|接受|避免|喜欢|会说|対応|サポート")


def replaces(new: Sentence, old: Sentence) -> bool:
    """Whether the new sentence states another value for the same thing. The words around the value are equal then.

    A value follows the sign for "is". It may be elsewhere if the new sentence announces a change, or if it is a
    measure. Different subjects make two statements about two things, and so do numbers that are names.
    """
    if old.asks or (new.adds and not new.changes) or (new.scope and _elsewhere(new, old)):
        return False
    if new.signs != old.signs:
        new, old = _stated(new), _stated(old)
    if (new.forbids or new.revokes) != (old.forbids or old.revokes) and _turns(new, old):
        return True
    if not new.kinds.isdisjoint(old.kinds) and _chooses_other(new, old):
        return True
    if "≠" in new.words:
        return any(
            _replaces(new, old, new.words[: first - 1] + new.words[last:], new.words[first:last])
            or _chooses_against(new.words[: first - 1] + new.words[last:], old.words, new.words[first:last])
            for first, last in rejected_values(new.words)
        )
    return _replaces(new, old, new.words, ())


def _stated(sentence: Sentence) -> Sentence:
    """A label or a figure as a statement about its subject: "Port: 8080" and "price 300 dollars"."""
    words = sentence.words
    if "=" in words:
        return sentence
    labels = (at for at, word in enumerate(words) if at and word in _LABELS)
    figures = (at for at, word in enumerate(words) if at and is_figure(word))
    if label := next(labels, 0):
        return replace(sentence, words=(*words[:label], "=", *words[label + 1 :]))
    if not is_longer(words, NOMINAL) and (figure := next(figures, 0)):
        return replace(sentence, words=(*words[:figure], "=", *words[figure:]))
    return sentence


def _elsewhere(new: Sentence, old: Sentence) -> bool:
    """Whether a heading limits the new sentence to another part: "In the tests:", "Frontend:"."""
    if new.scope == old.scope:
        return False
    return bool(_OF_PART.search(new.scope)) or (bool(old.scope) and not new.says_anew)


def _turns(new: Sentence, old: Sentence) -> bool:
    """Whether it allows what was forbidden, or forbids what was decided or allowed."""
    if "≠" in new.words or "≠" in old.words:
        return False
    forbids = new.forbids or new.revokes
    if not (forbids or new.allows or new.changes or new.onward or not POLARITY.isdisjoint(new.words)):
        return False  # what is asked for once is asked for as an exception
    stems, old_stems = new.stems, old.stems
    told = new.says_anew or new.allows
    return new.speaks_of_something and (stems == old_stems or (told and sorted(stems) == sorted(old_stems)))


def _chooses_other(new: Sentence, old: Sentence) -> bool:
    """Whether it chooses another value of the same kind: "use spaces, not tabs", "from now on use four spaces"."""
    a, b = _without_rejected(old.words), _without_rejected(new.words)
    if new.allows or new.revokes or max(len(a), len(b)) > LONGEST_CHOICE or _is_of_several(new):
        return False
    for kind in ({kind_of(word) for word in a} & {kind_of(word) for word in b}) - {None}:
        if kind == kind_of(b[0]) and b[1:2] and b[1] in SAYS_IS:
            continue  # it is what is spoken of
        (rest_a, value_a), (rest_b, value_b) = (_split_off(words, kind) for words in (a, b))
        same = _without_is(rest_a) == _without_is(rest_b) and rest_a and NEGATIVE.isdisjoint(rest_a)
        if same and not set(value_b) <= set(value_a):
            answers = kind_of(value_a[-1]) == LANGUAGE and rest_a[0] in ANSWERS
            return new.says_anew or answers or rest_a[-1] in SAYS_IS or rest_a[0] in CHOOSES
    return False


def _is_of_several(sentence: Sentence) -> bool:
    return not _OF_SEVERAL.isdisjoint(sentence.words) or bool(_OF_SEVERAL_SIGNS.search("".join(sentence.words)))


def _without_is(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in SAYS_IS]


def _split_off(words: Sequence[str], kind: int | None) -> tuple[list[str], list[str]]:
    """The words around a value, and the value with the figure before it."""
    of_value = {at for at, word in enumerate(words) if kind_of(word) == kind}
    of_value |= {at - 1 for at in of_value if at and is_figure(words[at - 1])}
    rest = [word for at, word in enumerate(words) if at not in of_value]
    return rest, [words[at] for at in sorted(of_value)]


def _chooses_against(b: Sequence[str], a: Sequence[str], rejected: Sequence[str]) -> bool:
    """Whether it rejects the earlier value by name and chooses another one."""
    return bool(b) and b[0] == "use" and choice(a) == tuple(rejected) and len(b) <= 1 + PLAIN_VALUE


def _without_rejected(words: Sequence[str]) -> Sequence[str]:
    """The words without the value that is rejected by name at their end."""
    at = words.index("≠") if "≠" in words else len(words)
    return (*words[:at], *words[at + 2 :])


def _replaces(new: Sentence, old: Sentence, b: Sequence[str], rejected: Sequence[str]) -> bool:
    a = old.words
    if a == b:
        return new.revokes and not old.revokes
    head = _common(a, b)
    tail = _common_end(a, b, min(len(a), len(b)) - head)
    was, now = a[head : len(a) - tail], b[head : len(b) - tail]
    if not (SAYS_IS.isdisjoint(a[head:]) and SAYS_IS.isdisjoint(now)):
        return False  # it stands in what is spoken of, not in what is said of it
    if _turned(was, now):
        return head + tail >= 2
    if not was or not now or is_longer(was, LONGEST_VALUE) or is_longer(now, LONGEST_VALUE):
        return False
    if rejected:
        others = {*was}.difference(now, rejected)
        return _within(rejected, was) and (head >= 1 or (tail >= 1 and len(others) <= 1))
    if new.revokes:
        return False  # what is no longer so says nothing of anything else
    if head + tail < 2 or length((*a[:head], *a[len(a) - tail :])) < SHARED * length(a):
        return False
    if NEGATIVE.isdisjoint(was) and not NEGATIVE.isdisjoint(now):
        return False  # what it is not says nothing of what it is
    lead = a[head - 1] if head else ""
    rest = a[len(a) - tail :] if tail else ()
    digits = [any(sign.isdigit() for word in words for sign in word) for words in (was, now)]
    figures = are_figures(was, now)
    alike = figures or bool(_kinds(was) & _kinds(now))
    if not alike and (all(digits) or _is_spoken_of(a[:head], rest)):
        return False  # figures of two things; what is said of something is said of something else besides
    changes = new.changes or (new.says_anew and _exclude(new, old, was, now, a[:head], rest))
    if LANGUAGES.isdisjoint(was) != LANGUAGES.isdisjoint(now):
        return False  # a language does not take the place of anything else
    if lead in SAYS_IS and not _same_sort(new, old, now, was, rest, changes=changes):
        return False
    if not (NEGATIVE.isdisjoint(a[:head]) or figures):
        return False  # what else is forbidden is forbidden besides
    if head >= 2 and lead == "=":
        return figures or changes or max(length(was), length(now)) <= PLAIN_VALUE
    if lead in _COLONS and rest and not (new.changes or figures):
        return False  # a sentence stands behind the label, not a value
    if head >= 2 and lead in SAYS_IS and _OF_MANY.isdisjoint(a[:head]):
        plain = head >= 3 and max(length(was), length(now)) <= PLAIN_VALUE
        return plain or changes or all(len(value) == 1 and FIGURE.match(value[0]) for value in (was, now))
    return changes or (figures and are_measures(a, b, head, tail, min(old.rank, new.rank)))


def _is_spoken_of(before: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether its place makes it the subject or object of the statement, and not a value."""
    if len(before) > 1 or rest[-1:] in _IS_LAST:
        return not before
    return not (before and (before[0] in SAYS_IS or (before[0] in CHOOSES and rest)))


def _exclude(
    new: Sentence, old: Sentence, was: Sequence[str], now: Sequence[str], before: Sequence[str], rest: Sequence[str]
) -> bool:
    """Whether a value that holds "from now on" excludes the other one, as far as the words show.

    "From now on" begins something new as often as it changes something: then both stay.
    """
    if are_figures(was, now):
        return not new.allows
    if new.allows or _is_of_several(new):
        return False  # one more of several
    after = rest[0] if rest else ""
    lead = before[-1] if before else ""
    if after in _OF_WHOLE:
        return False  # other parts of one thing
    kinds, old_kinds = _kinds(now), _kinds(was)
    if kinds or old_kinds:
        return bool(kinds & old_kinds) and (bool(before) or _besides_kinds(now) == _besides_kinds(was))
    if _without_case(now) or _without_case(was):
        return lead in SAYS_IS or bool(rest)
    plain = new.plain.issuperset(now), old.plain.issuperset(was)
    if plain[0] != plain[1]:
        return False
    if lead in SAYS_IS:
        return not plain[0] or new.assigns or new.names_thing
    if plain[0]:  # what a verb is done to, or else an attribute
        return bool(rest) and lead in CHOOSES
    return bool(rest) or lead not in CHOOSES


def _kinds(words: Sequence[str]) -> set[int]:
    return {kind for word in words if (kind := kind_of(word)) is not None}


def _besides_kinds(words: Sequence[str]) -> list[str]:
    return [word for word in words if kind_of(word) is None]


def _turned(was: Sequence[str], now: Sequence[str]) -> bool:
    """Whether it allows what was forbidden, or the reverse."""
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
    if is_plain != was_plain or "的" in (was[-1], now[-1], *tail[:1]):
        return False  # one says what it is, the other how it is
    known = [bool(of_kind) or any(map(is_figure, value)) for of_kind, value in ((kinds, now), (old_kinds, was))]
    if known[0] != known[1] and (is_plain or _without_case(was if known[0] else now)):
        return False
    elsewhere = new.preposition != old.preposition
    if any(known) or elsewhere:
        return changes and not (elsewhere and new.preposition and old.preposition)
    named = not (is_plain or _without_case(now) or _without_case(was))
    return bool(changes or named or new.assigns)


def _without_case(words: Sequence[str]) -> bool:
    """Is it in a script without capital letters, in which names cannot be told from other words?"""
    return all(word.upper() == word.lower() for word in words)


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == tuple(part) for at in range(len(whole) - len(part) + 1))


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for word, counterpart in zip(a, b, strict=False):
        if word != counterpart:
            break
        count += 1
    return count


def _common_end(a: Sequence[str], b: Sequence[str], most: int) -> int:
    count = 0
    while count < most and a[-1 - count] == b[-1 - count]:
        count += 1
    return count
