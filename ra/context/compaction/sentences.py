"""Splits what the user typed into sentences, each normalised to one form for many languages. Calls no model.

Words for "is" become "=", words for "instead of" become "≠"; articles and polite words are dropped.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

from ra.context.compaction.figures import NOMINAL, is_figure, is_sign
from ra.context.compaction.kinds import OF_SIGNS, SIGN, choice, kind_of, rejected_values
from ra.context.compaction.pasted import pasted

LONGEST_LEAD = 40  # characters before a colon that are a label, or say no more than that something changes
LONGEST_SEARCHED = 200  # words of a sentence in which names are told from other words
LONG_WORD = 5  # letters without its ending; a shorter one may stand for many things
LONGEST_CHOICE = 8  # words of a sentence that chooses one value of a kind
SHORT = 300  # characters of a sentence, at most, that is looked up among earlier ones
REPEATED = 4096  # such sentences, at most

_MONTHS = r"jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz]"
# "3. Mai" goes on, and so does "max. 5". A rule that is hung on to a long sentence is one of its own.
_HANGS_ON = (
    r"(?:and|but|also|und|aber|y|pero|et|mais)\s+(?:(?:also|please|auch|bitte|from now on|ab jetzt)\s+)*"
    r"(?:never|always|don'?t|do not|use|keep|make sure|nie|niemals|immer|verwende|benutze|nunca|siempre|no|usa|jamais"
    r"|toujours)\b"
)
_SHORT_2 = r"\b(?:dr|mr|ms|nr|ca|vs)\."
_SHORT_3 = r"\b(?:max|min|mrs|bzw|e\.g|i\.e)\."
_ENDS = re.compile(
    rf"(?<=[。！？；])|(?=\s)(?:(?<=[.!?؟।;؛])(?<!\b\d\.)(?<!\b\d\d\.)(?<!{_SHORT_2})(?<!{_SHORT_3})\s+"
    rf"|(?<=\d\.)\s+(?!(?:{_MONTHS}))|\n+|(?<=,)\s+(?={_HANGS_ON}))",
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_JOINS = re.compile(r"^\s*(?:(?:and|but|also|und|aber|auch|pero|mais)\b\s*)+", re.I)
# A letter, with the vowels and accents above, below and beside it, which are none to `re` (Hindi, Thai, Hebrew).
_LETTER = rf"(?:[^\W{SIGN}]|[\u0300-\u036f\u0591-\u05c7\u0900-\u0963\u0980-\u0dff\u0e31-\u0e4e\u1000-\u109f])"
_WORD = re.compile(
    rf"{'|'.join(OF_SIGNS)}|[{SIGN}]|[$€£¥]?{_LETTER}+(?:[.\-/:@'’]{_LETTER}+)*%?|[=:：≠]",
)
_MARKS = re.compile(r"[\u064b-\u0652]")  # vowels above and below Arabic letters
_SMALL_I = str.maketrans("İıſ", "iis")  # lower() makes two characters of the first, and leaves the others

# --- one form for many languages; patterns in small letters read small letters, `_FOREIGN` ones what is not ASCII ---

_OBJECT = r"\b[Ee]s (?=(?:an|auf|aus|bis|für|im?|mit|nach|nicht|per|vor|von|zu[mr]?)\b)"  # "sende es an Anna"
_ARTICLES = re.compile(
    r"(?<![/.@_-])\b(?:the|our|an|a(?! (?:partir|ser|la|las|los)\b)|der|die|das|den|dem|des|eine?[nmrs]?"
    r"|les?|la|el|los|las|unsere?[mnrs]?|nos|notre|nuestr[oa]s?)(?=\s)"
    rf"|{_OBJECT}|^\s*(?:The|Our|An|A(?! partir)|Der|Die|Das|Unsere?|Les?|La|Notre|Nos|El|Nuestr[oa]s?)\b"
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
# "Switch from X to Y", "nicht mehr X, sondern Y", "XではなくY": Y ≠ X.
_FROM_TO = re.compile(
    r"^\s*(?:(?:we|let's|wir|nous|please)\s+)*(?:(?:have|are|will|haben|werden)\s+)?(?:now\s+)?"
    r"(?:switch(?:ed|ing)?|mov(?:e|ed|ing)|migrat(?:e|ed|ing)|chang(?:e|ed|ing)|wechsel[nt]?|wechsle)\s+(?:over\s+)?"
    r"(?:from|von)\s+(.{1,30}?)\s+(?:to|auf|zu)\s+([^\s,.;]+)"
)
_NO_LONGER_BUT = re.compile(
    r"(?:\bnicht mehr\s+(.{1,30}?),\s*sondern\b|\bno longer\s+(.{1,30}?),?\s*but\b"
    r"|\bya no\s+(?:es\s+)?(.{1,30}?),?\s*sino\b"
    r"|不再(?:是|用)?(.{1,20}?)[，,]?\s*而(?:是|用)|(?<!\w)لم يعد\s+(.{1,30}?)\s+بل(?!\w))\s*([^\s,.;。，]+)"
)
_NOT_BUT = re.compile(r"([^\s、。]{1,20}?)(?:では?なく、?|じゃなく(?:て)?、?|の代わりに)([^\s、。をにはが]{1,20})")
_MOVES = re.compile(
    r"\b(?:chang(?:es|ed)|mov(?:es|ed)|switch(?:es|ed)|raised|lowered|increased|reduced|bumped|pushed|postponed|renamed)"
    r"\s+to\b|\bse\s+(?:cambi[óa]|movi[óa]|aplazó|pasó|adelantó)\s+al?\b|(?:推迟|推遲|提前|延期|改|移|增加|减少|提高|降低|降)到"
)
_IS_MOVED = re.compile(
    r"\b(?:wird|wurde|ist)\s+(?:auf|zu|nach)\s+(.{1,40}?)\s+"
    r"(?:verschoben|geändert|gesetzt|erhöht|gesenkt|verlegt|umgestellt|verlängert|verkürzt)"
)
_SHALL_BE = re.compile(r"\b(?:soll(?:en|te)?|muss|müssen)\s+(.{1,40}?)\s+sein\b")
_NEGATED = re.compile(r"(?P<ne>\bn['’](?=\w))|ないで(?:ください|下さい)?|(?P<may>てもいい(?:です)?)", re.I)
_SIGNS = {"ne": "ne ", "may": " 可 以 ", "": " 不 "}
# Words that assign a value, all replaced by one sign, so that "is", "is now" and "changes to" are equal.
_IS = re.compile(
    r"\b(?=[abcdehilmprswäèé])(?:(?:(?:has|have|is|are|was|were|will)\s+)?(?:been\s+)?"
    r"(?:chang(?:es|ed)|mov(?:es|ed)|set|switch(?:es|ed)|raised|lowered|increased|reduced|bumped|pushed|postponed|renamed)\s+to"
    r"|(?:is|are|will be|should be|must be|becomes?)(?:\s+now)?(?:\s+(?:called|named))?"
    r"|(?:ist|sind|lautet|beträgt|wird|werden|liegt bei|heißt|heisst|heißen)(?:\s+(?:jetzt|nun|ab\s+sofort))?"
    r"|s'appelle(?:nt)?|se llaman?|si chiama(?:no)?|(?:est|sont|sera|devient)(?:\s+(?:maintenant|désormais))?"
    r"|(?:es|son|será|ahora es|pasa a(?: ser|l))|(?:é|são|será|agora é)|(?:è|sono|sarà|diventa)|är)\b"
    r"|\b(?:هو|هي|أصبح|أصبحت|صار|صارت|يكون|تكون)(?:\s+الآن)?(?!\w)"
    r"|\bse\s+(?:cambi[óa]|movi[óa]|aplazó|pasó|adelantó)\s+al?\b"
    r"|(?:现在|現在)?(?:更)?(?:调整为|調整為|调整到|改为|改為|改成|改到|推迟到|推遲到|增加到|减少到|提高到|降低到|降到|提前到|延期到|延到|移到|换成|換成|变为|變為|变成|變成|设置为|设定为|设为|设成|升级到|定为|叫做|叫|是|为|為)"
    r"|は(?=[^。]*(?:です|だ$|に変更|になり|に変わり))|[은는](?<=[가-힣].)(?=\s)"
    r"| (?<=\w )(?:теперь )?(?:[—–]|называется|зовут) | (?<=\w )теперь |=",
)
_USES = re.compile("改用|使用")
_AFTER_IS = re.compile(r"=\s+(at|on|by|in|am|im|um|bei|auf)\b")
# Words that give a name or set a value: "is called X", "set it to X", "mode=X", "Mode: X".
_ASSIGNS = re.compile(
    r"[=:：]|\b(?:called|named|set|heißt|heisst|heißen|lautet|s'appelle(?:nt)?|se llaman?|si chiama(?:no)?|называ\w+"
    r"|зовут)\b|叫|设|設|定为|定為",
)
_NAMES_THING = re.compile(
    r"\b(?:is|are|ist|sind|est|sont|es|son|è|sono|é|são)\s+(?:(?:now|jetzt|nun|maintenant|désormais|ahora|ora|agora)\s+)?"
    r"(?:an?|the|eine?|der|die|das|une?|les?|la|el|los|las|il|lo|um|uma|o|os)\s",
)
_ASKS = re.compile(r"[?？؟][\s\"'»”」)\]]*\Z|(?:吗|嗎|呢|ですか|ますか|でしょうか)[。\s]*\Z")
# A question that asks for it, where it is polite or speaks of a change: "Could you use spaces from now on?"
_REQUESTS = re.compile(
    r"^\s*(?:(?:can|could|would|will) you|(?:kannst|könntest) du|(?:können|könnten) sie|peux-tu|pourrais-tu|pouvez-vous"
    r"|pourriez-vous|puedes|podrías|podría usted|você pode|puoi|potresti|можешь|можете|能不能|可以|能否)\b",
    re.I,
)
_HEADING = re.compile(r"#{1,6} .+|\[[^\]]+\]|\*\*[^*]+\*\*:?|__[^_]+__:?")
_ANNOUNCES = re.compile(
    r"\b(?:new|updated?|chang\w+|neue?\w*|änder\w+|nouve\w+|nuev\w+|cambi\w+|нов\w+)\b|新|更新|変更|جديد", re.I
)
_TAIL = re.compile(
    r"(?:に変更(?:します|する|しました|してください)?|になります|になりました|に変わりました|です)(?=[。\s]*$)"
    r"|(?:으로|로)?\s*(?:변경(?:되었습니다|됐습니다|합니다|해 주세요)?|바꿉니다|입니다)(?=[.\s]*$)"
)
# Words that revoke an earlier statement.
_CHANGE = re.compile(
    r"\b(?:instead(?! of)|no longer|has changed|change of plans?|actually|correction|update(?=:)|scrap that"
    r"|rather(?! than)|forget that|strike that|ignore that|on second thoughts?|any ?more|any longer|again"
    r"|wieder|de nuevo|à nouveau"
    r"|stattdessen|nicht mehr|geändert|korrektur|vergiss das|(?:doch\s+)?lieber"
    r"|plutôt(?! que)|à la place|en su lugar|invece(?! di)|больше не|art[ıi]k)\b"
    r"|改为|改為|改成|换成|換成|改用|调整为|調整為|不再|更正|代わりに|重新|再次|に変更|に変わり|になり|변경|대신"
    r"|بدلا(?! من)|لم يعد|تغيير|تصحيح|أصبح|صار|مجددا",
)
# Words for "from now on": they may change something, or begin something new.
_ONWARD = re.compile(
    r"\b(?:from now on|as of (?:today|now)|henceforth|effective immediately|starting (?:today|now)"
    r"|ab (?:jetzt|sofort|heute)|von jetzt an|künftig|in zukunft|fortan"
    r"|désormais|dorénavant|à partir de maintenant|a partir de (?:ahora|hoy|agora)"
    r"|de ahora en adelante|desde ahora|d'ora in poi|voortaan|vanaf nu|od teraz|bundan sonra"
    r"|теперь|отныне|впредь|с этого момента)\b"
    r"|(?:从|從)(?:现在|現在|今天|今)(?:起|开始|開始|以后|以後|往后)?|以后|以後|(?:今后|今後|これから)は?|이제부터|앞으로"
    r"|من الآن(?:\s+فصاعدا)?|(?:अब|आज|आगे) से",
)
# Words that add to earlier statements.
_ADDS = re.compile(
    r"\b(?:also|too(?=[.!\s]*$)|as well|additionally|in addition|either(?=[.!\s]*$)|auch|außerdem|zusätzlich|ebenfalls"
    r"|también|además|tampoco|aussi|également|en plus|anche|inoltre|também|также|тоже|кроме того)\b"
)
_ADDS_FOREIGN = re.compile(r"也|还要|還要|另外|同时|同時|(?<=[^てで誰何\W])も(?=\w)|また|أيضا|كذلك|भी|또한")
_REVOKES = re.compile(r"\b(?:no longer|nicht mehr|больше не|ya no)\b|不再|لم يعد")
# Words that return to an earlier state, often without naming it.
_RETURNS = re.compile(
    r"\b(?:(?:go|going|switch|change|move|set it|put it)\s+back|back to|undo|revert|restore"
    r"|(?:as|like) (?:it was )?before|(?:use|take|keep) the (?:old|previous|original|former|first)"
    r"|forget (?:that|what)|scrap that|never ?mind|zurück zu[mr]?|rückgängig|wie (?:vorher|zuvor|früher)"
    r"|wieder (?:den|die|das) (?:alt|erst|vorig)en?|vergiss (?:das|was)|reviens|revenons|annule[rz]?|comme avant"
    r"|rétabli[st]|como antes|deshaz|come prima|annulla|(?:vuelve|volvamos|volver|torna|tornare) al?|volte? para"
    r"|como era antes|верн\w+|как раньше|отмени)\b"
)
_RETURNS_FOREIGN = re.compile(
    "恢复|恢復|还原|還原|撤销|撤銷|改回|用回|照旧|元に戻|取り消|以前の|원래대로|ارجع|كما كان|تراجع|वापस|पहले (?:जैसा|वाल)"
)
# Words that reject a value by name: "spaces, not tabs", "pnpm statt npm".
_NOT_THIS = re.compile(
    r"\b(?:instead of|rather than|anstelle von|anstatt|statt|plutôt que|au lieu de|en vez de|en lugar de|invece di"
    r"|em vez de|вместо)\b|而不是|而非|代替|(?<!\w)بدلا من(?!\w)"
    r"|[,;—–،，-]\s*(?:(?:and|und|et|y|e|و)\s*)?(?:not|nicht|non|pas|no|não|не|а не|不是|不用|不要|وليس|ليس|لا)\b"
    r"|[，,]\s*(?:不是|不用|不要)"
)
# What a sentence may have that the one before it had not: it is left out of the comparison.
_NEW = re.compile(r"\b(?:new|neue[rsnm]?|nouveau|nouvelle|nuev[oa]|nov[oa])\b|新的|新")
_NOW = re.compile(
    r"\b(?:now|already|ya|jetzt|nun|maintenant|ahora|agora|adesso|ora|nu|teraz)\b"
    r"|现在|現在|(?<!\w)(?:الآن|अब|이제)(?!\w)|もう|(?<=\w)了(?=[。\s]*$)"
)
_STATES = re.compile(
    r"\s*(?:(?:the|our|my|we|i|it|this|these|his|her|their|your|der|die|das|unser\w*|mein\w*|wir|ich|es|le|la|les|notre"
    r"|nos|mon|ma|nous|el|los|nuestr\w+|mi|il|lo|nostr\w+|noss\w+|наш\w*|мы|мой|моя)\b|我|لدينا|نحن)"
)
_STATED = re.compile(r"(?:है|हैं|هے)[\s।.]*$")

# --- rules and decisions in a sentence ---

_LAYS_DOWN = re.compile(
    r"\b(?:must|never|always|only|use|prefers?|don'?t|do not|cannot|can't|may not|no|without|instead|should|shall"
    r"|wants?|keep|at most|at least|maximum|max|minimum|min|up to|höchstens|mindestens|maximal|como máximo"
    r"|al menos|au plus|au moins"
    r"|(?:answer|reply|respond|ask|check|tell me|stop)\s+(?:me\s+)?(?:in|with|as|before|first|if|when)"
    r"|avoid|remember|ensure|make sure|require[ds]?|forbidden|allowed|limit|cap|deadline|from now"
    r"|ohne|bevor|antworte|frag|sin|responde|sans|réponds|avant de|antes de|senza|rispondi|без|отвечай"
    r"|nie|niemals|immer|nur|muss|müssen|darf|dürfen|soll(?:en|te)?|kein(?:e[nrms]?)?|nicht|bitte"
    r"|verwende|benutze|nutze|achte"
    r"|siempre|nunca|sólo|solo|debe[ns]?|usa|utiliza|toujours|jamais|ne|pas|doit|doivent|utilise[rz]?|uniquement"
    r"|sempre|mai|deve|usare|devem|apenas|não|всегда|никогда|нельзя|только|должн\w+|используй\w*|не"
    r"|nooit|altijd|alleen|geen|niet|zawsze|nigdy|tylko|nie|zaman|asla|sadece|sak[ıi]n|hiçbir)\b"
)
_LAYS_DOWN_FOREIGN = re.compile(
    r"(?<!\w)(?:हमेशा|सदा|कभी|केवल|सिर्फ़?|मत|नहीं|न)(?=[\s।.,!]|$)"
    r"|最多|至少|不超过|一律|统一|每次|必须|必須|不要|不得|不能|不准|禁止|只能|只用|总是|總是|始终|永远|使用|请|請|务必|回答|先|不带|ください|しないで|必ず|常に|항상|반드시|마세요"
    r"|يجب|ممنوع|دائما|دائمًا|أبدا|أبدًا|فقط|استخدم|أجب|بدون|لا(?=\s)"
)
_LABEL = re.compile(r"\s*(?:[-*•]\s*)?[A-ZÄÖÜА-Я][A-ZÄÖÜА-Я _/-]{2,40}:\s")
_VALUE = re.compile(
    r"\d|[a-z][A-Z]|\w_\w|\w/\w|[`\"'«“「].+?[`\"'»”」]|\b[A-Z]{2,}\b|(?<=[^\W\d_] )[A-ZÄÖÜÉА-Я][^\W\d_]{2,}"
)
_CODE = re.compile(r"[\d/_.@:]")
_QUOTES = frozenset("/`\"'“”«»„")
SAYS_IS = frozenset(("=", ":", "："))

NEGATIVE = frozenset(
    re.findall(
        r"\S+",
        """
        never not don't cannot can't no nicht nie niemals kein keine keinen nunca ne pas jamais mai não не никогда
        нельзя لا 不 禁 别 forbidden verboten prohibido ممنوع
        """,
    )
)
POLARITY = NEGATIVE.union(
    re.findall(
        r"\S+",
        """
        always do must may can should shall immer darf dürfen muss müssen kann soll siempre toujours sempre всегда можно
        يجب دائما يمكن 要 允 许 得 能 准 必 须 須 总 總 可 以 止
        """,
    )
)

# What may be said around a rule that is taken back, besides the words that take it back.
_PERMITS = POLARITY.union(
    re.findall(
        r"\S+",
        """
        use using verwenden verwende usar uses usa utiliser utilise تستخدم استخدام
        you need have to be allowed fine okay ok permitted required = du ihr sie erlaubt verboten darfst kannst musst
        usted puedes puede debes tu vous peux pouvez permitido prohibido permis interdit ne pas de
        يمكنك ممنوع مسموح
        """,
    )
)
_ALLOWS = frozenset(
    re.findall(
        r"\S+",
        """
        may can allowed fine okay ok permitted darfst dürfen kannst erlaubt puedes puede peux pouvez permitido permis
        autorisé можно يمكنك يمكن مسموح
        """,
    )
)
_MAY = re.compile("可 以|允 许")
_ENDINGS = re.compile(r"(?<=..)(?:en|er|es|as|ar|ir|ed|e|a|s|t|n|овать|уйте|уй|[аяи]ть|[аяи]йте|[аяи]й|ите|и|ы)\Z")
_ARABIC_PERSON = re.compile(r"^[تيأن](?=\w{3,}\Z)")


class Sentence(msgspec.Struct, frozen=True):
    """A sentence that the user typed. `rank` is how likely it is a rule or decision: the lowest gives way first."""

    start: int
    end: int
    words: tuple[str, ...]
    rank: int
    changes: bool  # does it say that something is otherwise now?
    onward: bool = False  # or that it holds from now on?
    adds: bool = False  # or that it is said besides?
    revokes: bool = False  # or that it is no longer so?
    forbids: bool = False  # or that it must not be so?
    now: bool = False  # or how it is now, in a statement?
    signs: frozenset[str] = frozenset()  # those for "is" among its words
    kinds: frozenset[int] = frozenset()  # of the values among its words
    raw: str = ""  # without a bullet, and without words that join it to the one before
    preposition: str = ""  # between "is" and the value
    names_thing: bool = False  # does an article stand before the value: "is an owl", not "is slow"?
    assigns: bool = False  # does it give a name or set a value, which no second quality stands beside?
    returns: bool = False  # does it go back to what held before?
    asks: bool = False  # is it a question, and no request?
    pasted: bool = False  # was it pasted, not typed?
    scope: str = ""  # the heading above it, unless that announces a change

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The keys of sentences that it could replace: those that begin or end alike, figures aside,

        those that differ only in allowing or forbidding, and those that choose a value of the same kind.
        """
        stems, value = self.stems, choice(self.words)
        kinds = self.kinds if len(self.words) <= LONGEST_CHOICE else ()
        return (
            *self._ends,
            *((("stems", *sorted(stems)),) if _is_telling(stems) else ()),
            *(("kind", str(kind)) for kind in kinds),
            *((("value", *value),) if value else ()),
            *(("value", *self.words[first:last]) for first, last in rejected_values(self.words)),
        )

    @property
    def plain(self) -> frozenset[str]:
        """Its words in small letters: no names."""
        raw = self.raw if len(self.words) <= LONGEST_SEARCHED else ""
        return frozenset(_plain_words(raw)).intersection(self.words)

    @property
    def stems(self) -> tuple[str, ...]:
        """Its words without endings, and without words that allow or forbid."""
        return tuple(_stem(word) for word in self.words if word not in _PERMITS)

    @property
    def speaks_of_something(self) -> bool:
        """Whether its stems say what is allowed or forbidden. A single short one may be "that"."""
        return _is_telling(self.stems)

    @property
    def _ends(self) -> tuple[tuple[str, ...], ...]:
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
    def allows(self) -> bool:
        return not _ALLOWS.isdisjoint(self.words) or bool(_MAY.search(" ".join(self.words)))

    @property
    def says_anew(self) -> bool:
        """Whether it says that something changes, holds from now on, or holds now."""
        return self.changes or self.onward or self.now

    @property
    def may_replace(self) -> bool:
        """Whether it can replace another one: not a question, not pasted, and a statement, rule, measure or change."""
        return not (self.pasted or self.asks) and (
            self.rank >= 3
            or self.says_anew
            or self.allows
            or "≠" in self.words
            or not SAYS_IS.isdisjoint(self.words)
            or not POLARITY.isdisjoint(self.words)
            or any(sign.isdigit() for sign in "".join(self.words))
        )


def sentences(text: str) -> tuple[Sentence, ...]:
    ends = [match.end() for match in _ENDS.finditer(_small(text))]
    parts = [
        msgspec.structs.replace((_read_once if len(raw) <= SHORT else _read)(raw), start=start, end=end)
        for start, end in pairwise((0, *ends, len(text)))
        if (raw := text[start:end]).strip()
    ]
    numbers = pasted(text, [(part.start, part.end, part.words) for part in parts])
    scopes = enumerate(zip(parts, _scopes(text, parts), strict=True))
    return tuple(
        msgspec.structs.replace(part, rank=0 if number in numbers else part.rank, pasted=number in numbers, scope=scope)
        for number, (part, scope) in scopes
    )


def _scopes(text: str, parts: Sequence[Sentence]) -> Iterator[str]:
    """The heading of each: a Markdown heading until the next one, a line that ends in a colon until an empty line."""
    heading = lead = ""
    begun = False
    for part in parts:
        raw = text[part.start : part.end]
        line = raw.strip()
        if _HEADING.fullmatch(line):
            yield ""
            heading, lead = " ".join(part.words), ""
        elif line[-1] in ":：" and raw.endswith("\n"):
            yield heading
            lead, begun = " ".join(part.words[:-1]), False
            if part.changes or part.onward or _ANNOUNCES.search(line):
                lead = ""
        else:
            yield lead or heading
            begun = True
        if begun and raw.endswith("\n\n"):
            lead = ""


def _small(text: str) -> str:
    """In small letters, each in its place: a pattern finds them much faster than letters of either case."""
    return text.lower() if text.isascii() else text.translate(_SMALL_I).lower()


def _read(text: str) -> Sentence:
    """One sentence, at position 0."""
    raw = _JOINS.sub("", _BULLET.sub("", text))
    small = _small(raw)
    foreign = not text.isascii()
    bare = _MARKS.sub("", small) if foreign else small
    lead, colon, body = raw.partition(":")
    introduced = (
        bool(colon) and len(lead) <= LONGEST_LEAD and bool(_LABEL.match(raw) or _speaks_of_change(_small(lead) + colon))
    )
    core = body if introduced else raw
    polite = bool(_POLITE.search(raw.casefold()))
    asks = bool(_ASKS.search(raw))
    if asks and (polite or _speaks_of_change(small)):
        core, requests = _REQUESTS.subn("", core)
        asks = not requests
    states = bool(_STATES.match(core.casefold()) or _STATED.search(core))
    core = _NEGATED.sub(lambda match: _SIGNS[match.lastgroup or ""], _MARKS.sub("", core) if foreign else core)
    core = _POLITE.sub(" ", _ARTICLES.sub(" ", core).casefold()).strip()
    changes = bool(_CHANGE.search(bare))
    now = any(match.start() for match in _NOW.finditer(core))
    revokes = bool(_REVOKES.search(small))
    if revokes or foreign:
        core = _NO_LONGER_BUT.sub(_but, core)
    core, switched = _FROM_TO.subn(r"use \2 ≠ \1 ", core)
    if foreign:
        core = _NOT_BUT.sub(r"\2 ≠ \1 ", core)
    for pattern in _CHANGES_TO:
        core, count = pattern.subn(r"\1 = ", core)
        changes = changes or bool(count)
    for pattern in _SETS:
        core = pattern.sub(r"\1 = ", core)
    core, moved = _IS_MOVED.subn(r"= \1", _SHALL_BE.sub(r"= \1", core))
    core = _IS.sub(" = ", _NOT_THIS.sub(" ≠ ", _USES.sub("用", core)))
    if foreign:
        core = _TAIL.sub(" ", core)
    preposition = _AFTER_IS.search(core)
    core = _NOW.sub(" ", _NEW.sub(" ", _ONWARD.sub(" ", _CHANGE.sub(" ", _AFTER_IS.sub("=", core)))))
    words = tuple(_WORD.findall(core.lstrip(" =,，")))
    is_stated = not SAYS_IS.isdisjoint(words)
    rank = 0 if len(words) < 3 and not _VALUE.search(raw) else 1
    if is_stated and _VALUE.search(raw):
        rank = 2
    if _LAYS_DOWN.search(small) or (foreign and _LAYS_DOWN_FOREIGN.search(small)) or _LABEL.match(raw):
        rank = 3
    stated_now = now and (states or is_stated or rank >= 3)
    changes = changes or bool(moved or switched or _MOVES.search(raw))
    return Sentence(
        0,
        len(text),
        words,
        rank,
        changes,
        signs=SAYS_IS.intersection(words),
        forbids=not NEGATIVE.isdisjoint(words),
        kinds=frozenset(kind for word in words if (kind := kind_of(word)) is not None),
        onward=bool(_ONWARD.search(bare)),
        adds=bool(_ADDS.search(bare) or (foreign and _ADDS_FOREIGN.search(bare))),
        revokes=revokes,
        now=stated_now,
        raw=raw,
        preposition=preposition[1] if preposition else "",
        names_thing=bool(_NAMES_THING.search(small)),
        assigns=bool(_ASSIGNS.search(small)),
        returns=bool(_RETURNS.search(small) or (foreign and _RETURNS_FOREIGN.search(small))),
        asks=asks,
    )


_read_once = lru_cache(REPEATED)(_read)  # what is short is often said again


def _speaks_of_change(text: str) -> bool:
    return bool(_CHANGE.search(text) or _ONWARD.search(text))


def _plain_words(raw: str) -> Iterator[str]:
    """The lower-case words that are not names: not `out/`, not "orion" in quotes."""
    is_foreign = sum(letter.isalpha() and not letter.isascii() for letter in raw) > len(raw) / 3
    for match in _WORD.finditer(raw):
        word, around = match[0], raw[max(0, match.start() - 1) : match.start()] + raw[match.end() : match.end() + 1]
        if word.islower() and not (
            _CODE.search(word) or _QUOTES.intersection(around) or (is_foreign and word.isascii())
        ):
            yield word


def _but(match: re.Match[str]) -> str:
    *rejected, value = match.groups()
    return f" {value} ≠ {next(text for text in rejected if text)} "


def _is_telling(stems: Sequence[str]) -> bool:
    return len(stems) >= 2 or any(len(word) >= LONG_WORD for word in stems)


@lru_cache(20_000)
def _stem(word: str) -> str:
    if not word.isalpha() or is_sign(word):
        return word
    return _ENDINGS.sub("", _ARABIC_PERSON.sub("", word))


def _masked(words: Sequence[str]) -> tuple[str, ...]:
    return tuple("0" if is_figure(word) else word for word in words)
