"""Distinguishes a misspelt name from another word: `modle` means `model`; `mode` and `modern` do not."""

from collections.abc import Iterable

PREFIX = 4  # letters of a name that identify it: sess, perm
LONG = 7  # names of this length may have two slips, shorter ones one

# Words within a slip or two of a command's name that people also use in prompts.
_ORDINARY = """
    ace act amp attached attack beach benched books bunch cap cast clean cleared clearer clearly clears coast coat
    combat commits comp compacted company compare compass concept concert congest connect consent contact contempt
    contend content contents contest contexts continua continued continuer convent convert convex cooks cools cortex
    costly cosy debut drip droop drops edict edit emit emits enemies energies entail entire entities entre exist exit
    exits expert folk for ford fore forge forged forgets forgot forked forks form fort heap held hell helm helped
    helper helps keen keeper keeps kills lists locale locales locally logic lokal looks loyal map modal mode modeled
    modell modes modul mop motel oben ofen omen omits opened opener openly opens oper oven pain pan pen permissive pie
    pig pine ping pink pins pint pit preview pride prime prize prompts provider provides pun quiet quilt quite quits
    quiz rebind recalled recalls remind reply resumed resumen resumes resumo resumé reviews résume sad sail sand saved
    saves seasons section sections serie served serves setting skid slid smart speed spent starts state stately states
    statue stays still stills strategic stratify tanking terms thanking thin think thinning thrust ticking tinting
    toil toll too took toots toured tours tout tricking trost truest trusted trustee trusts und unde undoes undone
    unto updated updates upgrades
"""
WORDS = frozenset(_ORDINARY.split())


def close(word: str, names: Iterable[str]) -> str | None:
    """The name that a misspelt word resembles, unless people use the word in prompts."""
    choices = list(names)
    return nearest(word, choices) if word.lower() in choices or word.lower() not in WORDS else None


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that a misspelt one resembles, or of which it is a beginning or a longer form."""
    word, choices = word.lower(), list(names)
    if word in choices:
        return word
    if len(word) < PREFIX - 1:
        return None
    for name in choices:
        longer = len(name) >= PREFIX and word.startswith(name) and len(word) - len(name) <= 2
        if len(word) >= PREFIX and (longer or name.startswith(word)):
            return name
    ranked = sorted((_distance(word, name), number) for number, name in enumerate(choices) if _begin_alike(word, name))
    return next((choices[number] for count, number in ranked if count <= _forgiven(word, choices[number])), None)


def one_slip(word: str, names: Iterable[str]) -> str | None:
    """The name that is one slip away: other words of a language are farther off."""
    if len(word) <= PREFIX or word in WORDS:
        return None
    return next((name for name in names if word != name and slips(word, name) == 1), None)


def slips(word: str, name: str) -> int:
    """The number of keys that were missed, added, mistaken or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(name) + 1))
    for i, letter in enumerate(word):
        earlier, before, row = before, row, [i + 1]
        for j, wanted in enumerate(name):
            count = min(before[j + 1] + 1, row[j] + 1, before[j] + (letter != wanted))
            if i and j and letter == name[j - 1] and word[i - 1] == wanted:
                count = min(count, earlier[j - 1] + 1)
            row.append(count)
    return row[-1]


def _distance(word: str, name: str) -> int:
    """The slips, without the plural: `modle` is one slip away from `models`, because `model` means the same."""
    return min(slips(word, name), slips(word, name.removesuffix("s")) if len(name) > PREFIX else len(name))


def _begin_alike(word: str, name: str) -> bool:
    """Few people miss the first key, but some swap the first two."""
    return word[0] == name[0] or word[:2] == name[1::-1]


def _forgiven(word: str, name: str) -> int:
    return 2 if len(name) >= LONG and len(word) >= LONG - 1 else 1
