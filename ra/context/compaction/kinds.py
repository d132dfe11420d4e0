"""Values that exclude each other: who answers in English does not answer in German. The most used ones, by kind."""

import re
from collections.abc import Iterator, Sequence

LONGEST_VALUE = 4  # words that may differ between a sentence and the one that replaces it
PLAIN_VALUE = 2  # the same, where these are no figures and nothing says that something changes


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


CHOOSES = _words("use prefer verwende benutze nutze nimm usa utiliza utilise utilisez usare используй استخدم")
"""Verbs by which one thing is chosen, and so another is not."""

ANSWERS = _words("answer reply respond antworte responde réponds rispondi отвечай أجب")
"""Verbs of which one language is chosen."""

LANGUAGE = 0  # the kind of which languages are
LANGUAGES = _words(
    """
    english german french spanish italian portuguese russian chinese japanese korean arabic dutch polish turkish hindi
    swedish englisch deutsch französisch spanisch italienisch portugiesisch russisch chinesisch japanisch koreanisch
    arabisch niederländisch polnisch türkisch inglés alemán francés español italiano portugués ruso chino japonés árabe
    anglais allemand français espagnol italien portugais russe chinois japonais arabe inglese tedesco francese spagnolo
    английском немецком русском французском испанском الإنجليزية بالإنجليزية العربية بالعربية الفرنسية بالفرنسية
    الألمانية بالألمانية الإسبانية بالإسبانية الصينية بالصينية
    中文 英文 德文 法文 日文 俄文 英语 英語 德语 德語 法语 法語 汉语 漢語 日语 日語 俄语 韩语 西班牙语
    हिंदी हिन्दी अंग्रेज़ी अंग्रेजी 日本語 中国語 韓国語 ドイツ語 フランス語 スペイン語 ロシア語
    """
)
_KINDS = (
    LANGUAGES,
    # What is said of indenting, with what it is for.
    _words(
        """
        tab tabs space spaces indentation indenting indent tabulator tabulatoren leerzeichen zum einrücken
        einrückung tabulador tabuladores espacio espacios sangrar sangría tabulation tabulations espace espaces
        indenter tabulazioni spazi табы табуляция пробелы المسافات مسافات للإزاحة التبويب
        空格 制表符 スペース タブ
        """
    ),
    _words(
        """
        red green blue yellow orange purple pink black white grey gray brown teal cyan magenta crimson rot grün blau
        gelb lila schwarz weiß grau braun rojo verde azul amarillo negro blanco gris rouge vert bleu jaune noir blanc
        rosso giallo nero bianco красный зелёный синий أحمر أخضر أزرق أصفر أسود أبيض
        红色 紅色 绿色 綠色 蓝色 藍色 黄色 黑色 白色 赤 緑 青
        """
    ),
    _words(
        """
        monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
        sundays montag dienstag mittwoch donnerstag freitag samstag
        sonntag lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche
        lunedì martedì mercoledì giovedì venerdì понедельник вторник среда четверг пятница الأحد الاثنين الثلاثاء
        الأربعاء الخميس الجمعة السبت 周一 周二 周三 周四 周五 周六 周日 星期一 星期二 星期三 星期四 星期五 星期六 星期日
        月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日
        """
    ),
    _words("json yaml xml csv toml html pdf markdown docx txt text ndjson parquet"),
    _words("bullets points sentences prose paragraphs"),
    _words("euro euros dollar dollars pounds yen rubles francs eur usd gbp chf dólares dólar евро рублях долларах"),
    _words("main master trunk develop"),
    _words("usted tú"),
    _words("hourly daily weekly monthly yearly täglich wöchentlich monatlich"),
    _words("npm pnpm yarn bun"),
    _words("pip uv poetry conda pipenv"),
    _words("pytest unittest nose"),
    _words("jest vitest mocha jasmine"),
    _words("mysql mariadb postgres postgresql sqlite mssql oracle mongodb"),
    _words("staging production development"),
    _words("camelcase snake_case kebab-case pascalcase"),
    _words(
        "short long brief detailed terse kurz lang ausführlich knapp corto largo breve detallado court détaillé"
        " 简短 簡短 详细 詳細 简洁 قصيرة طويلة قصير طويل"
    ),
    _words("uppercase lowercase großbuchstaben kleinbuchstaben mayúsculas minúsculas majuscules minuscules"),
)
SIGN = r"\u3040-\u30ff\u3400-\u9fff"  # Chinese and Japanese: a sign is a word
_SIGNS = re.compile(rf"[{SIGN}]+")
_KIND_OF = {word: number for number, words in enumerate(_KINDS) for word in words}
OF_SIGNS = sorted(filter(_SIGNS.fullmatch, _KIND_OF), key=len, reverse=True)
"""The Chinese and Japanese ones: each is a word, though no space stands around it."""


def kind_of(word: str) -> int | None:
    """Which values this one excludes, by the number of their kind; None where nothing is known."""
    return _KIND_OF.get(word)


def choice(words: Sequence[str]) -> tuple[str, ...]:
    """The value that a sentence chooses, if it says nothing else: "use npm", "the database is MySQL"."""
    if 2 <= len(words) <= 1 + PLAIN_VALUE and words[0] in CHOOSES:
        return tuple(words[1:])
    if "=" in words[1:-1] and len(words) - 1 - (at := words.index("=")) <= PLAIN_VALUE:
        return tuple(words[at + 1 :])
    return ()


def rejected_values(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The positions where a value that is rejected by name may be, for each possible number of words."""
    first = words.index("≠") + 1 if "≠" in words else len(words)
    yield from ((first, first + length) for length in range(1, LONGEST_VALUE) if first + length <= len(words))
