"""Values that exclude each other: who answers in English does not answer in German. The most used ones, by kind."""

import re


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
        """
    ),
    _words(
        """
        red green blue yellow orange purple pink black white grey gray brown teal cyan magenta crimson rot grün blau
        gelb lila schwarz weiß grau braun rojo verde azul amarillo negro blanco gris rouge vert bleu jaune noir blanc
        rosso giallo nero bianco красный зелёный синий
        """
    ),
    _words(
        """
        monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag
        sonntag lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche
        lunedì martedì mercoledì giovedì venerdì понедельник вторник среда четверг пятница الأحد الاثنين الثلاثاء
        الأربعاء الخميس الجمعة السبت
        """
    ),
    _words("json yaml xml csv toml html pdf markdown docx txt ndjson parquet"),
    _words("npm pnpm yarn bun"),
    _words("pip uv poetry conda pipenv"),
    _words("pytest unittest nose"),
    _words("jest vitest mocha jasmine"),
    _words("mysql mariadb postgres postgresql sqlite mssql oracle mongodb"),
    _words("staging production development"),
    _words("camelcase snake_case kebab-case pascalcase"),
    _words("short long brief detailed terse kurz lang ausführlich knapp corto largo breve detallado court détaillé"),
    _words("uppercase lowercase großbuchstaben kleinbuchstaben mayúsculas minúsculas majuscules minuscules"),
)
_KIND_OF = {word: number for number, words in enumerate(_KINDS) for word in words}


def kind_of(word: str) -> int | None:
    """Which values this one excludes, by the number of their kind; None where nothing is known."""
    return _KIND_OF.get(word)
