"""Tells what was pasted into a message from what the user typed around it: quoted mails, code, logs, listings.

No language is looked at, only the look of lines. What counts as pasted is still quoted, but gives way first, and it
replaces nothing that the user said.
"""

import re
from collections.abc import Iterator, Sequence

ALIKE = 0.4  # of the words of two sentences, at least, where they are lines of one listing
LISTED = 10  # sentences that are alike, at least: a shorter list may be one of rules
NEAR = 16  # sentences before and behind with which one is compared
FEWEST_WORDS = 4  # of a sentence that can be alike
LONGEST_LINE = (
    1_000  # characters of a line that are looked at: a text without line ends must not be read once a sentence
)
DENSE = 5  # lines that look like code or like a log, at least, where they stand close to each other

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?^ {0,3}\1[ \t]*$", re.M | re.S)
_PASTED_LINE = re.compile(
    r"[ \t]*(?:>"  # quoted from a mail
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[\d\d?:\d\d\] "  # a log, a chat
    r"|\|.*\|[ \t]*$"  # a table
    r"|at \S+\(|File \"[^\"]+\", line \d|(?:diff --git|@@|\+\+\+|---|index) \S"  # a trace, a patch
    r"|(?:From|To|Cc|Subject|Date|Sent|Von|An|Betreff|Datum|De|Para|Asunto|Objet)[ \t]*: )",
)
# A single line of these may be what the user typed: "PORT = 8080".
_MACHINE_LINE = re.compile(
    r"[ \t]*#|\t|  +[\w.-]+: |    (?! *[-*•\d])|"
    r".*(?:[{}\[\](;,\\]|\)|\w\)?:|=>|->)[ \t]*$"
    r"|[ \t]*(?://|#include|[\w.]+\([^)]*\)|[\w.\[\]]+ [-+*/|]?= )"
    r"|[ \t]*\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b"
    r"|[^\s,;]*(?:[,;][^,;\s][^,;]*){2,}$"
)
_DIGITS = re.compile(r"\d+")


def pasted(text: str, sentences: Sequence[tuple[int, int, Sequence[str]]]) -> set[int]:
    """The numbers of the sentences that were pasted. Of each sentence: where it starts and ends, and its words."""
    numbers = set(_in_listings([words for _, _, words in sentences])) if len(sentences) >= LISTED else set()
    fences = [match.span() for match in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    machine_lines = []
    for number, (start, end, _) in enumerate(sentences):
        start += len(text[start:end]) - len(text[start:end].lstrip())
        line_start = text.rfind("\n", max(0, end - LONGEST_LINE), start) + 1
        line = text[line_start or max(0, end - LONGEST_LINE) : end].rstrip("\n")
        if any(first <= start < last for first, last in fences) or _PASTED_LINE.match(line):
            numbers.add(number)
        elif len(sentences) >= DENSE and _MACHINE_LINE.match(line):
            machine_lines.append(number)
    return numbers.union(*(group for group in _clusters(machine_lines) if len(group) >= DENSE))


def _clusters(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Numbers in groups, each of those that stand close to each other."""
    first = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] - numbers[at - 1] > DENSE:
            yield numbers[first:at]
            first = at


def _in_listings(sentences: Sequence[Sequence[str]]) -> Iterator[int]:
    """Sentences that are like many of those around them, figures aside."""
    shapes = [frozenset(_DIGITS.sub("0", word) for word in words) for words in sentences]
    alike = [0] * len(shapes)
    for number, shape in enumerate(shapes):
        if len(shape) < FEWEST_WORDS:
            continue
        for other in range(number + 1, min(number + 1 + NEAR, len(shapes))):
            common = len(shape & shapes[other])
            if len(shapes[other]) >= FEWEST_WORDS and common >= ALIKE * (len(shape) + len(shapes[other]) - common):
                alike[number] += 1
                alike[other] += 1
    yield from (number for number, count in enumerate(alike) if count >= LISTED - 1)
