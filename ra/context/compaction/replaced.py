"""Finds the sentences of the user that later ones replace: the same said of the same, with another value.

Nothing here asks a model. A sentence is brought into one form for many languages (what says "is" becomes "=", what says
"instead of" becomes "≠", articles and politeness go), and two forms that differ in one place are compared there.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

LONGEST_LEAD = 40  # characters before a colon that are a label, or say no more than that something changes
LONGEST_VALUE = 4  # words that may differ between a sentence and the one that replaces it
PLAIN_VALUE = 2  # the same, where these are no figures and nothing says that something changes
NOMINAL = 4  # words of a sentence without a verb, at most: a name and a measure
SHARED = 0.5  # of the words of a sentence, at least, that the one which replaces it repeats

_ENDS = re.compile(r"(?<=[。！？])|(?<=[.!?؟।])\s+|\n+")
_SIGN = r"\u3040-\u30ff\u3400-\u9fff"  # Chinese and Japanese: a sign is a word
_WORD = re.compile(
    rf"[{_SIGN}]|[$€£¥]?[^\W{_SIGN}]+(?:[.\-/:@'’][^\W{_SIGN}]+)*%?|[=:：≠]",
)
_IS_SIGN = re.compile(rf"[{_SIGN}]")
_MARKS = re.compile(r"[\u064b-\u0652]")  # vowels above and below Arabic letters

# --- one form for many languages ---

_ARTICLES = re.compile(
    r"\b(?:the|an?|der|die|das|den|dem|des|eine?[nmrs]?|les?|la|el|los|las)\b|^\s*(?:The|An?|Der|Die|Das|Les?|La|El)\b"
)
_POLITE = re.compile(r"\b(?:please|bitte|por favor|s'il (?:te|vous) pla[iî]t|пожалуйста)\b|请|請|(?<!\w)من فضلك(?!\w)")
# "Set X to V", "setze X auf V", "把X设为V", "X wird auf V verschoben": X = V.
_SETS = (
    re.compile(r"^\s*(?:set|setze?|stelle?)\s+(.{1,60}?)\s+(?:to|auf)\b"),
    re.compile(r"[把将將](.{1,20}?)(?:设|設)(?:置|定)?(?:为|為|成|到|在)"),
)
_CHANGES_TO = (
    re.compile(
        r"^\s*(?:change|raise|lower|increase|reduce|bump|switch|ändere?|erhöhe?|senke?)\s+(.{1,60}?)\s+(?:to|auf)\b"
    ),
    re.compile(r"[把将將](.{1,20}?)(?:改|换|換|调|調|升)(?:整|级|級)?(?:为|為|成|到)"),
)
_IS_MOVED = re.compile(
    r"\b(?:wird|wurde|ist)\s+(?:auf|zu|nach)\s+(.{1,40}?)\s+"
    r"(?:verschoben|geändert|gesetzt|erhöht|gesenkt|verlegt|umgestellt)"
)
_SHALL_BE = re.compile(r"\b(?:soll(?:en|te)?|muss|müssen)\s+(.{1,40}?)\s+sein\b")
# What says that something has a value now: one sign for all of them, so that "is", "is now" and "changes to" are alike.
_IS = re.compile(
    r"\b(?:(?:(?:has|have|is|are|was|were|will)\s+)?(?:been\s+)?(?:chang(?:es|ed)|mov(?:es|ed)|set|switch(?:es|ed)|raised"
    r"|lowered|increased|reduced|bumped|pushed|postponed|renamed)\s+to"
    r"|(?:is|are|will be|should be|must be|becomes?)(?:\s+now)?(?:\s+(?:called|named))?"
    r"|(?:ist|sind|lautet|beträgt|wird|werden|liegt bei|heißt|heisst|heißen)(?:\s+(?:jetzt|nun|ab\s+sofort))?"
    r"|(?:est|sont|sera|devient)(?:\s+(?:maintenant|désormais))?"
    r"|(?:es|son|será|ahora es|pasa a ser)|(?:é|são|será|agora é)|(?:è|sono|sarà|diventa)|är)\b"
    r"|(?<!\w)(?:هو|هي|أصبح|أصبحت|صار|صارت|يكون|تكون)(?:\s+الآن)?(?!\w)"
    r"|(?:现在|現在)?(?:更)?(?:调整为|調整為|调整到|改为|改為|改成|换成|換成|变为|變為|变成|變成|改用|设置为|设定为|设为|设成|升级到|定为|叫做|叫|是|为|為)"
    r"|は(?=[^。]*(?:です|だ$|に変更|になり|に変わり))|(?<=[가-힣])(?:은|는)(?=\s)"
    r"|(?<=\w) (?:теперь )?[—–] |(?<=\w) теперь |=",
    re.I,
)
_AFTER_IS = re.compile(r"(=)\s+(?:at|on|by|in|am|im|um|bei|auf)\b")
_TAIL = re.compile(
    r"(?:に変更(?:します|する|しました|してください)?|になります|になりました|に変わりました|です)(?=[。\s]*$)"
    r"|(?:으로|로)?\s*(?:변경(?:되었습니다|됐습니다|합니다|해 주세요)?|바꿉니다|입니다)(?=[.\s]*$)"
)
# What says that an earlier word no longer holds.
_CHANGE = re.compile(
    r"\b(?:instead(?! of)|from now on|no longer|has changed|change of plans?|actually|correction|update(?=:)|scrap that"
    r"|rather(?! than)|forget that|strike that|ignore that|on second thoughts?|as of (?:today|now)|henceforth"
    r"|effective immediately|starting (?:today|now))\b"
    r"|\b(?:stattdessen|ab (?:jetzt|sofort|heute)|nicht mehr|geändert|korrektur|künftig|fortan|vergiss das"
    r"|doch lieber)\b"
    r"|\b(?:désormais|plutôt(?! que)|à la place|dorénavant|à partir de maintenant|a partir de (?:ahora|hoy|agora)"
    r"|desde ahora|en su lugar|invece(?! di)|d'ora in poi|voortaan|vanaf nu|od teraz|artık|bundan sonra)\b"
    r"|\b(?:теперь|отныне|впредь|больше не|с этого момента)\b"
    r"|改为|改為|改成|换成|換成|改用|调整为|調整為|(?:从|從)(?:现在|現在|今天)(?:起|开始|開始)?|不再|更正|以后|以後|今后|今後|これから|代わりに"
    r"|に変更|변경|이제부터|앞으로|대신"
    r"|من الآن(?:\s+فصاعدا)?|بدلا(?! من)|لم يعد|تغيير|تصحيح|أصبح|صار",
    re.I,
)
_REVOKES = re.compile(r"\bno longer\b|\bnicht mehr\b|\bбольше не\b|不再|لم يعد|\bya no\b", re.I)
# What rejects a value by its name: "spaces, not tabs", "pnpm statt npm".
_NOT_THIS = re.compile(
    r"\b(?:instead of|rather than|anstelle von|anstatt|statt|plutôt que|au lieu de|en vez de|en lugar de|invece di"
    r"|em vez de|вместо)\b|而不是|而非|代替|(?<!\w)بدلا من(?!\w)"
    r"|[,;—–،，-]\s*(?:(?:and|und|et|y|e|و)\s*)?(?:not|nicht|non|pas|no|não|не|а не|不是|不用|不要|وليس|ليس|لا)\b"
    r"|[，,]\s*(?:不是|不用|不要)"
)
# What a sentence may have that the one before it had not: it is left out of the comparison.
_NEW = re.compile(r"\b(?:new|neue[rsnm]?|nouveau|nouvelle|nuev[oa]|nov[oa])\b|新的|新")
_NOW = re.compile(
    r"\b(?:now|jetzt|nun|maintenant|ahora|agora|adesso|ora|nu|teraz)\b|现在|現在|(?<!\w)(?:الآن|अब|이제)(?!\w)|もう"
)
_STATES = re.compile(
    r"\s*(?:(?:the|our|my|we|i|it|this|these|his|her|their|your|der|die|das|unser\w*|mein\w*|wir|ich|es|le|la|les|notre"
    r"|nos|mon|ma|nous|el|los|nuestr\w+|mi|il|lo|nostr\w+|noss\w+|наш\w*|мы|мой|моя)\b|我|لدينا|نحن)"
)
_STATED = re.compile(r"(?:है|हैं|هے)[\s।.]*$")

# --- what a sentence lays down ---

_LAYS_DOWN = re.compile(
    r"\b(?:must|never|always|only|use|prefers?|don'?t|do not|cannot|can't|may not|no|instead|should|shall|wants?|keep"
    r"|avoid|remember|ensure|make sure|require[ds]?|forbidden|allowed|limit|cap|deadline|from now)\b"
    r"|\b(?:nie|niemals|immer|nur|muss|müssen|darf|dürfen|soll(?:en|te)?|kein(?:e[nrms]?)?|nicht|bitte)\b"
    r"|\b(?:verwende|benutze|nutze|achte)\b"
    r"|\b(?:siempre|nunca|sólo|solo|debe[ns]?|usa|utiliza|toujours|jamais|ne|pas|doit|doivent|utilise[rz]?|uniquement"
    r"|sempre|mai|deve|usare|devem|apenas|não)\b|\b(?:всегда|никогда|нельзя|только|должн\w+|используй\w*|не)\b"
    r"|必须|必須|不要|不得|不能|不准|禁止|只能|只用|总是|總是|始终|永远|使用|请|請|务必|ください|しないで|必ず|常に|항상|반드시|마세요"
    r"|يجب|ممنوع|دائما|دائمًا|أبدا|أبدًا|فقط|استخدم|لا(?=\s)",
    re.I,
)
_LABEL = re.compile(r"\s*(?:[-*•]\s*)?[A-ZÄÖÜА-Я][A-ZÄÖÜА-Я _/-]{2,40}:\s")
_VALUE = re.compile(r"\d|[a-z][A-Z]|\w_\w|\w/\w|[`\"'«“「].+?[`\"'»”」]|\b[A-Z]{2,}\b")
_SAYS_IS = frozenset(("=", ":", "："))
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

# --- figures: a measure can be replaced, a number that names something (port 22, ticket 4711) is another thing ---

_FIGURE = re.compile(r"[$€£¥]?[\d.,:]*\d[\d.,:]*(?:%|[a-zµ]{1,3})?\Z")
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
    r"|सेकंड|मिनट|घंटे|रुपये|초|분|시간|일|월|원|秒|分|时|時|小|天|日|周|月|年|元|块|円|毫)\Z"
)
_BOUND = re.compile(
    r"(?:\b(?:at (?:most|least)|under|below|above|over|(?:more|less|fewer) than|exceed(?:s|ing)?|within"
    r"|max(?:imum|imal)?|min(?:imum|imal)?|up to|no more than|capped at|limit(?:ed to)?|höchstens|mindestens|unter|über"
    r"|bis zu|au (?:plus|maximum|moins)|dépasser|moins de|plus de|como máximo|al menos|menos de|más de|al massimo"
    r"|almeno|не (?:более|менее|больше)|максимум|минимум|до|最 多|至 少|不 超 过|超 过|低 于|高 于"
    r"|少 于|多 于|上 限|最 大|最 小|최대|최소)|(?:الأقصى|الأدنى|أقل من|أكثر من|حتى))(?: [=:])?\Z"
)
_NEGATIVE = frozenset(
    re.findall(
        r"\S+",
        """
        never not don't cannot can't no nicht nie niemals kein keine keinen nunca jamais mai não не никогда нельзя
        لا 不 禁 别
        """,
    )
)
_POLARITY = _NEGATIVE.union(
    re.findall(
        r"\S+",
        """
        always do must may can should shall immer darf dürfen muss müssen kann soll siempre toujours sempre всегда можно
        يجب دائما يمكن 要 得 能 准 必 须 須 总 總 可 以 止
        """,
    )
)


class Sentence(msgspec.Struct, frozen=True):
    """A stretch of what the user typed. `rank` is how much it lays down: the lowest gives way first."""

    start: int
    end: int
    words: tuple[str, ...]
    rank: int
    changes: bool  # does it say that something is otherwise now?
    revokes: bool = False  # or that it is no longer so?
    now: bool = False  # or how it is now, in a statement?

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Where to look for sentences that it could replace: those that begin or end alike, figures aside."""
        if "≠" in self.words:
            at = self.words.index("≠")
            before = _masked(self.words[:at])
            rest = (*before, *_masked(self.words[at + 2 :]))
            ends = (("last", *ending) for ending in (rest[-1:], rest[-2:], before[-1:], before[-2:]))
            return (("first", *rest[:1]), ("first", *rest[:2]), *ends)
        masked = _masked(self.words)
        if len(masked) < 2:
            return ()
        short = (("first", *masked[:1]), ("last", *masked[-1:])) if len(masked) <= NOMINAL else ()
        return (("first", *masked[:2]), ("last", *masked[-2:]), *short)

    @property
    def may_replace(self) -> bool:
        """One that says neither what something is nor a rule, a measure or a change replaces nothing."""
        return (
            self.rank >= 3
            or self.changes
            or self.now
            or "≠" in self.words
            or not _SAYS_IS.isdisjoint(self.words)
            or not _POLARITY.isdisjoint(self.words)
            or any(any(sign.isdigit() for sign in word) for word in self.words)
        )


def sentences(text: str) -> Iterator[Sentence]:
    start = 0
    for end in (*(match.end() for match in _ENDS.finditer(text)), len(text)):
        if text[start:end].strip():
            yield _sentence(text, start, end)
        start = end


def _sentence(text: str, start: int, end: int) -> Sentence:
    raw = text[start:end]
    lead, colon, body = raw.partition(":")
    introduced = bool(colon) and len(lead) <= LONGEST_LEAD and bool(_LABEL.match(raw) or _CHANGE.search(lead + colon))
    core = body if introduced else raw
    states = bool(_STATES.match(core.casefold()) or _STATED.search(core))
    core = _POLITE.sub(" ", _ARTICLES.sub(" ", _MARKS.sub("", core)).casefold()).strip()
    changes = bool(_CHANGE.search(_MARKS.sub("", raw)))
    for pattern in _CHANGES_TO:
        core, count = pattern.subn(r"\1 = ", core)
        changes = changes or bool(count)
    for pattern in _SETS:
        core = pattern.sub(r"\1 = ", core)
    core, moved = _IS_MOVED.subn(r"= \1", _SHALL_BE.sub(r"= \1", core))
    core = _TAIL.sub(" ", _IS.sub(" = ", _NOT_THIS.sub(" ≠ ", core)))
    now = any(match.start() for match in _NOW.finditer(core))
    core = _NOW.sub(" ", _NEW.sub(" ", _CHANGE.sub(" ", _AFTER_IS.sub(r"\1", core))))
    words = tuple(_WORD.findall(core.lstrip(" =,，")))
    is_stated = not _SAYS_IS.isdisjoint(words)
    rank = 0 if len(words) < 3 and not _VALUE.search(raw) else 1
    if is_stated and _VALUE.search(raw):
        rank = 2
    if _LAYS_DOWN.search(raw) or _LABEL.match(raw):
        rank = 3
    stated_now = now and (states or is_stated or rank >= 3)
    return Sentence(start, end, words, rank, changes or bool(moved), bool(_REVOKES.search(raw)), stated_now)


def replaces(new: Sentence, old: Sentence) -> bool:
    """Does it say the same of the same, but with another value? Then the words around the value are equal.

    A value follows what says "is". It may stand elsewhere where the new sentence says that something changes, or where
    it is a measure. A subject that differs makes two statements about two things, and so does a number that is a name.
    """
    if "≠" in new.words:
        return any(
            _replaces(new, old, new.words[: at[0]] + new.words[at[1] :], new.words[at[0] + 1 : at[1]])
            for at in _rejected(new.words)
        )
    return _replaces(new, old, new.words, ())


def _rejected(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where a value may stand that is rejected by its name: as many words as it may have."""
    at = words.index("≠")
    yield from ((at, at + 1 + length) for length in range(1, LONGEST_VALUE) if at + 1 + length <= len(words))


def _replaces(new: Sentence, old: Sentence, b: Sequence[str], rejected: Sequence[str]) -> bool:
    a = old.words
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    was, now = a[head : len(a) - tail], b[head : len(b) - tail]
    if not was and not now:
        return new.revokes and not old.revokes
    if _SAYS_IS & {*was, *now, *(a[len(a) - tail :] if tail else ())}:
        return False  # it stands in what is spoken of, not in what is said of it
    if _turned(was, now):
        return head + tail >= 2
    if not was or not now or _length(was) > LONGEST_VALUE or _length(now) > LONGEST_VALUE:
        return False
    if rejected:
        return _within(rejected, was) and head + tail >= 1
    if head + tail < 2 or _length((*a[:head], *a[len(a) - tail :])) < SHARED * _length(a):
        return False
    lead = a[head - 1] if head else ""
    changes = new.changes or new.now
    if head >= 2 and lead == "=":
        return _are_figures(was, now) or changes or max(_length(was), _length(now)) <= PLAIN_VALUE
    if head >= 2 and lead in _SAYS_IS and _OF_MANY.isdisjoint(a[:head]):
        plain = head >= 3 and max(_length(was), _length(now)) <= PLAIN_VALUE
        return plain or changes or all(len(value) == 1 and _FIGURE.match(value[0]) for value in (was, now))
    return changes or (_are_figures(was, now) and _measures(a, b, head, tail, min(old.rank, new.rank)))


def _measures(a: Sequence[str], b: Sequence[str], head: int, tail: int, rank: int) -> bool:
    """Is it a measure that differs, in a bound, a statement, a rule, or beside its name alone?"""
    if _BOUND.search(" ".join(a[:head])):
        return True
    if head and a[head - 1] == "第":
        return False  # the third page is another one than the fourth
    after = a[len(a) - tail] if tail else ""
    measured = all(_MEASURED.search(word) for word in (a[len(a) - tail - 1], b[len(b) - tail - 1]))
    if (
        not measured
        and not _MEASURE.match(after)
        and not all(_MEASURE.match(words[len(words) - tail - 1]) for words in (a, b))
    ):
        return False
    return rank >= 3 or "=" in a[:head] or len(a) <= NOMINAL


def _turned(was: Sequence[str], now: Sequence[str]) -> bool:
    """Is it allowed what was forbidden, or forbidden what was allowed?"""
    if not (was or now) or not _POLARITY.issuperset((*was, *now)):
        return False
    return _NEGATIVE.isdisjoint(was) != _NEGATIVE.isdisjoint(now)


def _are_figures(was: Sequence[str], now: Sequence[str]) -> bool:
    return all(any(character.isdigit() for character in "".join(value)) for value in (was, now))


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    return any(tuple(whole[at : at + len(part)]) == tuple(part) for at in range(len(whole) - len(part) + 1))


def _length(words: Sequence[str]) -> float:
    """In words: two Chinese or Japanese signs are one, about."""
    return sum(0.5 if _IS_SIGN.match(word) else 1 for word in words)


def _masked(words: Sequence[str]) -> tuple[str, ...]:
    return tuple("0" if any(character.isdigit() for character in word) else word for word in words)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for word, counterpart in zip(a, b, strict=False):
        if word != counterpart:
            break
        count += 1
    return count
