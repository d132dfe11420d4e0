"""Tells figures of which one replaces another, such as measures, from numbers that are names: port 22, ticket 4711."""

import re
from collections.abc import Sequence
from functools import lru_cache

from ra.context.compaction.kinds import CHOOSES, SIGN

NOMINAL = 4  # words of a sentence without a verb, at most: a name and a measure

FIGURE = re.compile(r"[$€£¥]?[\d.,:]*\d[\d.,:]*(?:%|[a-zµ]{1,3})?\Z")
_MEASURED = re.compile(r"[$€£¥]\d|\d%|\d(?:ms|s|min|h|d|kb|mb|gb|tb|kib|mib|gib|px|em|k|m|km|kg|€)\Z")
_MEASURE = re.compile(
    r"(?:%|percent|prozent|pour|cent|dollars?|euros?|usd|eur|gbp|pounds?|yen|rubles?|"
    r"(?:milli|micro)?se[ck](?:onds?|unden?|ondes?|undos?|ondi)?|se[cg]s?|segundos?|min(?:utes?|uten?|utos?|uti)?|ms|h|hours?|stunden?"
    r"|heures?|horas?|ore|days?|tage?n?|jours?|d[ií]as?|giorni|weeks?|wochen?|semaines?|semanas?|months?|monate?n?|mois|years?|jahre?n?"
    r"|[kmgt]i?b|bytes?|[kmg]?bits?|px|pixels?|k?m|cm|kg|"
    r"jan\w*|feb\w*|m[aä]rz|march|apr\w*|may|mai|maja|mayo|maggio|june?|juni|juin|july?|juli|juillet|aug\w*|sep\w*|o[ck]t\w*|nov\w*"
    r"|de[cz]\w*|мая|июня|июля|января|февраля|марта|апреля|августа|сентября|октября|ноября|декабря"
    r"|секунд\w*|минут\w*|час\w*|д(?:ень|ня|ней)|недел\w*|рубл\w*|доллар\w*|евро|процент\w*|[кмг]б"
    r"|ثانية|ثوان[يٍ]?|دقيقة|دقائق|ساعة|ساعات|يوم|أيام|دولار|يورو|ريال|ميغابايت|مايو|يونيو|يوليو"
    r"|सेकंड|मिनट|घंटे|रुपये|초|분|시간|일|월|원|秒|分|时|時|小|天|日|周|月|年|元|块|円|毫|次|个|個|条|行|张|名|位|倍|遍|回|件|人|台|文|字)\Z"
)
_BOUND = re.compile(
    r"(?:\b(?:at (?:most|least)|under|below|above|over|(?:more|less|fewer) than|exceed(?:s|ing)?|within"
    r"|max(?:imum|imal)?|min(?:imum|imal)?|up to|no more than|capped at|limit(?:ed to)?|höchstens|mindestens|unter|über"
    r"|bis zu|au (?:plus|maximum|moins)|dépasser|moins de|plus de|(?:como )?máximo|mínimo|al menos|menos de|más de"
    r"|al massimo|almeno|не (?:более|менее|больше)|максимум|минимум|до|最 多|至 少|不 超 过|超 过|低 于|高 于"
    r"|少 于|多 于|上 限|最 大|最 小|최대|최소)|(?:الأقصى(?: \S+)?|الأدنى(?: \S+)?|أقل من|أكثر من|حتى))(?: [=:])?\Z"
)
_CLOCK = re.compile(r"\d\d?:\d\d\Z|(?:uhr|点|時|时)\Z")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d+\.\d+\.\d{4}|(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])|月\Z"
)
_DIMENSIONS = (
    re.compile(
        r"[$€£¥]\d|\d+€|(?:dollars?|euros?|usd|eur|gbp|pounds?|yen|rubles?|рубл\w*|доллар\w*|евро|元|块|円|원)\Z"
    ),
    re.compile(r"\d+%|(?:percent|prozent|cent|процент\w*)\Z"),
    _CLOCK,
    _DATE,
    re.compile(r"\d+(?:ms|s|min|h|d)\Z|(?:milli)?se[cgk]|min|hours?|stunden?|days?|tage?n?\Z|weeks?|wochen?|秒|天|周"),
    re.compile(r"\d*[kmgt]i?b\Z|bytes?"),
)
# What is counted stands behind its number ("to 200 words"); a number that is a name stands behind what it names.
_COUNTED = re.compile(
    r"(?!(?:must|always|this|does|goes|runs|keeps|needs|uses|handles|has|was|is)\Z)"
    r"[^\W\d]{3,}s\Z|zeichen\Z|zeilen\Z|wörter\Z"
)
_COUNTING = frozenset(
    re.findall(
        r"\S+",
        """
        to under over at in with use than of most least every after for within by about up exactly only = max maximum
        auf mit unter über nach genau verwende benutze nutze en con usa cada avec sur utilise
        """,
    )
)
_SIGN = re.compile(rf"[{SIGN}]")
_PER = ("per", "pro", "par", "por", "each", "every", "je", "в", "每")
_NUMBER_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        one two three four five six seven eight nine ten twelve twenty hundred zwei drei vier fünf sechs sieben acht
        neun zehn zwölf dos tres cuatro cinco seis siete ocho nueve diez deux trois quatre cinq huit neuf dix
        一 二 两 三 四 五 六 七 八 九 十 百 千 万
        """,
    )
)


def are_measures(a: Sequence[str], b: Sequence[str], head: int, tail: int, rank: int) -> bool:
    """Is it a measure that differs, in a bound, a statement, a rule, or beside its name alone?"""
    if _BOUND.search(" ".join(a[:head])):
        return True
    if head and a[head - 1] == "第":
        return False  # the third page is another one than the fourth
    after = a[len(a) - tail] if tail else ""
    measured = all(_MEASURED.search(word) for word in (a[len(a) - tail - 1], b[len(b) - tail - 1]))
    counted = head and tail and a[head - 1] in _COUNTING and _COUNTED.match(after)
    newer = after in ("and", "or") and a[-1] in ("newer", "later", "above", "up", "higher", "older")
    chosen = head >= 2 and tail >= 2 and a[0] in CHOOSES
    if counted or newer or chosen:
        return rank >= 3 or bool(newer)
    if (
        not measured
        and not _MEASURE.match(after)
        and not all(_MEASURE.match(words[len(words) - tail - 1]) for words in (a, b))
    ):
        return False
    return rank >= 3 or "=" in a[:head] or length(a) <= NOMINAL


def are_figures(was: Sequence[str], now: Sequence[str]) -> bool:
    """Figures, with nothing but measures beside them that could differ."""
    names = [
        {word for before, word in zip(("", *value), value, strict=False) if _is_name(word) or before in _PER}
        for value in (was, now)
    ]
    return all(any(map(is_figure, value)) for value in (was, now)) and names[0] == names[1]


def _is_name(word: str) -> bool:
    return not (is_figure(word) or _MEASURE.match(word))


def are_of_one_dimension(was: Sequence[str], now: Sequence[str]) -> bool:
    """Not a time beside a day, a price or a version, as far as the figures say it."""
    if any(any(map(pattern.match, was)) != any(map(pattern.match, now)) for pattern in (_CLOCK, _DATE)):
        return False
    dimensions = [
        {number for number, pattern in enumerate(_DIMENSIONS) for word in value if pattern.match(word)}
        for value in (was, now)
    ]
    return not all(dimensions) or bool(dimensions[0] & dimensions[1])


def length(words: Sequence[str]) -> float:
    """In words: two Chinese or Japanese signs are one, about."""
    return len(words) if "".join(words).isascii() else sum(0.5 if is_sign(word) else 1 for word in words)


def is_longer(words: Sequence[str], limit: int) -> bool:
    return len(words) > limit and length(words) > limit


def is_sign(word: str) -> bool:
    """Is it a sign of Chinese or Japanese, which stands for about half a word?"""
    return not word.isascii() and bool(_SIGN.match(word))


@lru_cache(20_000)
def is_figure(word: str) -> bool:
    return word in _NUMBER_WORDS or any(character.isdigit() for character in word)
