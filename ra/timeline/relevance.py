"""Orders the matches of a search: first those whose best passage has most of the question, rare words above all.

A question in plain words shares few words with its answer, and many of those carry no meaning ("what", "my", "is").
These stop words are dropped, the others are searched as prefixes, and an event is as good as its best passage: words
within one paragraph belong together, words spread over a long file do not.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

from ra.core.facts import Checkpointed, Edited, Fact, Rotated, Said, TimelineEvent
from ra.core.messages import Message, ToolCall, ToolResult

RECALL = "Recall"  # the tool whose calls and results repeat the searched words
PASSAGE = 400  # characters of a passage, about a paragraph
COVERAGE = 0.3  # the weight of a word outside the best passage
MOST_PLACES = 500  # occurrences of one word in one text
AROUND = 80  # characters of a snippet before and after the passage
LONGEST = 240  # characters of a snippet after the first word of the passage

_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_EDGES = re.compile(r"^[^\w/~#$-]+|[^\w/~-]+$")
_ENDINGS = re.compile(
    r"(?:ational|ations?|ingly|edly|ities|ments?|ness|ings?|ies|ied|ers?|ed|es|ly|al|or|e|y|s)$", re.IGNORECASE
)
_LEAST_STEM = 3
_SAYS_NOTHING = re.compile(
    "a|about|again|all|also|am|an|and|any|are|as|at|be|been|being|but|by|can|could|did|do|does|doing|done|for|"
    "from|give|had|has|have|having|he|her|here|hers|him|his|how|i|if|in|into|is|it|its|just|may|me|might|mine|"
    "more|most|must|my|no|nor|not|of|off|on|only|or|other|our|ours|over|own|please|same|say|shall|she|should|so|"
    "some|such|tell|than|that|the|their|theirs|them|then|there|these|they|this|those|to|too|under|very|was|we|"
    "were|what|when|where|which|who|whom|whose|why|will|with|would|you|your|yours",
    re.IGNORECASE,
)


class Find(NamedTuple):
    """A matching event, and its best passage."""

    event: TimelineEvent
    snippet: str


def keywords(words: Sequence[str]) -> tuple[str, ...]:
    """The stems of the words that carry meaning; all words if none does."""
    return tuple(dict.fromkeys(_keywords(words))) or tuple(words)


def _keywords(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if " " in word:  # a phrase in quotes
            yield word
            continue
        bare = _EDGES.sub("", word)
        parts = bare.split("-")
        if not all(map(_PLAIN_WORD.fullmatch, parts)):  # a path, a number, a name with signs in it
            if any(map(str.isalnum, bare)):
                yield bare
            continue
        for part in parts:
            plain = re.split("['’]", part)[0]
            if not _SAYS_NOTHING.fullmatch(plain):
                yield stem(plain)


def stem(word: str) -> str:
    """A word without its English ending, so that `accessories` finds `accessory`. Other languages lose little."""
    ending = _ENDINGS.search(word, _LEAST_STEM)
    start = word[: ending.start()] if ending else word
    doubled = len(start) > _LEAST_STEM and start.isascii() and start[-1] == start[-2] and start[-1] not in "ls"
    return start[:-1] if doubled else start


def best_first(words: Sequence[str], candidates: Iterable[tuple[TimelineEvent, str]]) -> list[Find]:
    """The candidates (event, searchable text), in the index's order, sorted by how well they match the words.

    Earlier searches are left out: their calls and results repeat the words of every question. Indexes and summaries
    come last: they only repeat what the timeline has.
    """
    asked = [_folded(word) for word in keywords(words)]
    texts = [_Text(event, text, asked) for event, text in candidates]
    texts = [text for text in texts if text.places or _search_in(text.event.fact) is None]
    holders = Counter(word for text in texts for word in text.words)
    rarity = [log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5)) for word in range(len(asked))]
    ranked = [(text.repeats, -text.score(rarity), number) for number, text in enumerate(texts)]
    return [texts[number].find(rarity, words) for _, _, number in sorted(ranked)]


class _Text:
    """The text of one candidate, and the positions of the words in it."""

    def __init__(self, event: TimelineEvent, text: str, asked: Sequence[str]) -> None:
        self.event = event
        self.text = text
        self.repeats = isinstance(event.fact, Checkpointed | Rotated | Edited)
        search = _search_in(event.fact)
        folded = _folded(text if search is None else search.text)  # of a message with a search, only the rest counts
        self.places = sorted((place, number) for number, word in enumerate(asked) for place in _places(folded, word))
        self.words = {number for _, number in self.places}

    def score(self, rarity: Sequence[float]) -> float:
        return self._passage(rarity)[0] + COVERAGE * sum(rarity[word] for word in self.words)

    def find(self, rarity: Sequence[float], words: Sequence[str]) -> Find:
        _, first, last = self._passage(rarity)
        if not self.places:  # the words occur only inside other words
            folded = self.text.lower()
            first = last = min((at for word in words if (at := folded.find(word.lower())) >= 0), default=0)
        start, end = max(0, first - AROUND), min(last + AROUND, first + LONGEST)
        passage = " ".join(self.text[start:end].split())
        return Find(self.event, f"{'…' if start else ''}{passage}{'…' if end < len(self.text) else ''}")

    def _passage(self, rarity: Sequence[float]) -> tuple[float, int, int]:
        """The score of the best passage, its start, and the position of its last word."""
        best, passage, left = 0.0, (0, 0), 0
        counts: Counter[int] = Counter()
        for place, word in self.places:
            counts[word] += 1
            while place - self.places[left][0] > PASSAGE:
                counts[self.places[left][1]] -= 1
                left += 1
            # The shortest passage of this score: it does not begin with a word that is repeated later in it.
            while counts[self.places[left][1]] > 1:
                counts[self.places[left][1]] -= 1
                left += 1
            worth = sum(rarity[number] for number, count in counts.items() if count)
            if worth > best:
                best, passage = worth, (self.places[left][0], place)
        return best, *passage


def _search_in(fact: Fact) -> Message | None:
    """The message, if it is a search or the result of one."""
    if not isinstance(fact, Said):
        return None
    traffic = [block for block in fact.message.blocks if isinstance(block, ToolCall | ToolResult)]
    return fact.message if traffic and all(block.name == RECALL for block in traffic) else None


def _places(text: str, word: str) -> Iterator[int]:
    """The positions of the word, and of words that begin with it."""
    place, count = text.find(word), 0
    while place >= 0 and count < MOST_PLACES:
        # In scripts without spaces, any position may be the start of a word.
        if not place or not word[0].isascii() or not text[place - 1].isalnum():
            count += 1
            yield place
        place = text.find(word, place + 1)


class _Fold(dict[int, int]):
    """Lower case without accents, one character for each character, so that positions stay valid."""

    def __missing__(self, code: int) -> int:
        parts = unicodedata.normalize("NFD", chr(code)).lower()
        plain = ord(parts[0]) if all(map(unicodedata.combining, parts[1:])) else code
        self[code] = plain
        return plain


_FOLD = _Fold()


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_FOLD)
