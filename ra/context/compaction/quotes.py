"""Quotes what the user typed and a compaction hides, without the sentences that later ones replace.

Rules and decisions are recognised by signs that many languages share (labels, figures, names written like code) and by
short word lists for the most common languages. Other sentences are quoted too, but give way first if the budget is too
small for everything.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from ra.context.compaction.figures import is_sign
from ra.context.compaction.names import identifiers
from ra.context.compaction.replaced import replaces
from ra.context.compaction.sentences import Sentence, sentences
from ra.context.render import level
from ra.context.report import Statement
from ra.context.tokens import Estimator
from ra.context.view import Group, Position, View
from ra.core.messages import Message, Text
from ra.core.model import Request

HEADING = "What the user said there, word for word:"
CUT = " […] "
FLOOR = 80  # tokens that shortening leaves of a message; beyond that, whole messages give way
SCANNED = 200_000  # characters of one message that are read
COMPARED = 24  # a new sentence is compared with at most so many that begin or end alike

OFTEN = 4  # messages that have the same pair of words, at least: then it is said again and again
REPEATED = 0.75  # of the pairs of words of a sentence, at least, that are: then it gives way before what was said once

LONG = 1000  # characters of a message in which it counts what stands apart
SHORT = 300  # characters of a line that stands apart, at most
ALONE = 6  # such lines between empty lines, at most: a text with more is a document

_LINE = re.compile(r"^.*\S.*$", re.M)
_PARAGRAPH = re.compile(r"\S(?:.|\n(?![ \t]*\n))*")
_FRAMED = re.compile(r"\s*<([\w-]+)(?: [\w-]+=\"[^\"]*\")*>\s.*</\1>\s*\Z", re.S)  # an attached file, piped text
_MARKS = re.compile(r"\s*(?:\[…\]\s*)+")
_QUOTED_AT = re.compile(r"^#(\d+): ", re.M)


class Typed(msgspec.Struct, frozen=True):
    """One message of the user, without what was attached to it."""

    place: Position
    text: str
    sentences: tuple[Sentence, ...]
    apart: frozenset[int]  # the numbers of sentences that stand apart from what is long: typed most likely

    @property
    def ref(self) -> str:
        return f"#{self.place[0]}"


class _Said(msgspec.Struct):
    """What is known of a segment's messages so far."""

    places: list[Position] = msgspec.field(default_factory=list)
    typed: dict[Position, Typed] = msgspec.field(default_factory=dict)
    replaced: dict[Position, dict[int, Position]] = msgspec.field(default_factory=dict)  # by number of sentence: where
    replacing: set[tuple[Position, int]] = msgspec.field(default_factory=set)  # sentences that replaced an earlier one
    restored: set[tuple[Position, int]] = msgspec.field(default_factory=set)  # sentences that hold again, it may be
    repeated: set[Position] = msgspec.field(default_factory=set)  # messages that were said again, word for word
    latest: dict[str, Position] = msgspec.field(default_factory=dict)
    pairs: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)  # of words: in how many messages
    alike: defaultdict[tuple[str, ...], deque[tuple[Position, int, Sentence]]] = msgspec.field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=COMPARED))
    )


class Block(NamedTuple):
    """The quotes of a gap; `shortened` if not all of them fit the budget."""

    text: str
    shortened: bool


class Quotes:
    """Writes quotes. Each message is analysed once."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._said = _Said()

    def missing(self, view: View, room: int) -> Block:
        """Quotes of what the user typed that is hidden and not quoted in an existing gap. Gaps share `room` tokens."""
        self._read(view)
        standing = [group for group in view.groups if group.kind in ("marker", "handover")]
        texts = [group.item.message.text for group in standing] + [view.summary]
        room -= sum(map(self.size, texts))
        quotes = "\n".join(text.partition(HEADING)[2] for text in texts)
        quoted = {int(at) for at in _QUOTED_AT.findall(quotes)}
        holding = ((at, number) for at, number in self._said.restored if number not in self._said.replaced[at])
        quoted -= {at[0] for at, number in holding if self._sentence_text(at, number) not in quotes}
        quoted |= view.omitted
        hidden = [group.place for group in view.hidden if group.is_prompt and group.at not in quoted]
        return self.write(hidden, room)

    def outdated(self, view: View) -> bool:
        """Whether an existing gap quotes a sentence that was replaced since."""
        self._read(view)
        markers = (group.item.message.text for group in view.groups if group.kind == "marker")
        return any(map(self._quotes_what_was_replaced, markers))

    def replaced_names(self, view: View) -> set[str]:
        """The identifiers in replaced sentences."""
        self._read(view)
        rows = ((place, number) for place, numbers in self._said.replaced.items() for number in numbers)
        return set().union(*(identifiers(self._sentence_text(place, number)) for place, number in rows))

    def mended_handover(self, view: View) -> str:
        """The segment's hand-over without sentences that were replaced since; "" if it quotes none of them."""
        self._read(view)
        text = next((group.item.message.text for group in view.groups if group.kind == "handover"), "")
        if not self._quotes_what_was_replaced(text):
            return ""
        head, _, quotes = text.partition(HEADING)
        for place, numbers in self._said.replaced.items():  # they stand in "What was said last" as well
            for number in numbers:
                head = head.replace(self._sentence_text(place, number), CUT.strip())
        lines = [self._mended(line) for line in quotes.split("\n#")]
        left = "\n#".join(line for line in lines if line is not None)
        return f"{head}{HEADING}{left}"

    def _mended(self, line: str) -> str | None:
        """One quote without replaced sentences; None if nothing is left of it."""
        at, colon, text = line.partition(": ")
        places = (place for place in self._said.replaced if colon and at == str(place[0]))
        for place in places:
            for number in self._said.replaced[place]:
                text = text.replace(self._sentence_text(place, number), CUT)
        left = _MARKS.sub(CUT, text).strip()
        return f"{at}{colon}{left}" if left != CUT.strip() else None

    def _quotes_what_was_replaced(self, text: str) -> bool:
        quotes = f"\n{text.partition(HEADING)[2]}\n#"
        return any(
            self._sentence_text(place, number) in line
            for place, numbers in self._said.replaced.items()
            if (line := quotes.partition(f"\n#{place[0]}: ")[2].partition("\n#")[0])
            for number in numbers
        )

    def _sentence_text(self, place: Position, number: int) -> str:
        typed = self._said.typed[place]
        return typed.text[typed.sentences[number].start : typed.sentences[number].end].strip()

    def size(self, text: str) -> int:
        """The tokens of a marker's quotes."""
        return self._estimator.text(text.partition(HEADING)[2]) if HEADING in text else 0

    def write(self, places: Iterable[Position], room: int, *, longest: int | None = None) -> Block:
        """Quotes of the messages at these positions, in order, in at most `room` tokens, each at most `longest`."""
        reading = self._said
        messages = [
            reading.typed[place] for place in places if place in reading.typed and place not in reading.repeated
        ]
        lines = {typed.place: line for typed in messages if (line := self._line(typed))}
        if not lines:
            return Block("", shortened=False)
        room -= self._estimator.text(HEADING) + 1
        sizes = {place: self._estimator.text(line) + 1 for place, line in lines.items()}
        if sum(sizes.values()) <= room and (longest is None or max(sizes.values()) <= longest):
            return Block("\n".join((HEADING, *lines.values())), shortened=False)
        text = "\n".join(self._fitted(messages, lines, sizes, room, longest).values())
        return Block(f"{HEADING}\n{text}" if text else "", shortened=True)

    def _fitted(
        self,
        messages: Sequence[Typed],
        lines: Mapping[Position, str],
        sizes: Mapping[Position, int],
        room: int,
        longest: int | None,
    ) -> dict[Position, str]:
        """The lines that fit: first the rules and decisions of each message, then an equal share of the rest."""
        laid_down = {
            typed.place: self._shortened(typed, sizes[typed.place], least_rank=2)
            for typed in messages
            if typed.place in lines
        }
        least = {place: self._estimator.text(line) + 1 if line else 0 for place, line in laid_down.items()}
        if sum(least.values()) > room:
            cap = max(level([*least.values()], room), FLOOR)
            least = {place: min(size, cap) for place, size in least.items()}
        share = _share(sizes, least, room)
        most = share if longest is None else min(share, longest)
        cores, shortened = {}, dict(lines)
        for typed in messages:
            place = typed.place
            if place not in lines:
                continue
            allowance = most if longest is not None else max(most, least[place])
            if sizes[place] > max(most, FLOOR):
                too_little = allowance < FLOOR and laid_down[place] and least[place] <= allowance
                shortened[place] = laid_down[place] if too_little else self._shortened(typed, max(allowance, FLOOR) - 1)
            if 0 in (ranks := self._ranks(typed)):
                cores[place] = self._shortened(typed, max(allowance, FLOOR) - 1, least_rank=1) if any(ranks) else ""
        # What lays down most stays; of what is alike the short, so that most of it stays.
        rank = {typed.place: max(self._ranks(typed), default=0) for typed in messages}
        fitting: dict[Position, str] = {}
        for texts in (shortened | cores, shortened):
            final_sizes = {place: self._estimator.text(text) + 1 for place, text in texts.items()}
            for place in sorted(texts, key=lambda place: (-rank[place], final_sizes[place], place)):
                more = final_sizes[place] - (self._estimator.text(fitting[place]) + 1 if place in fitting else 0)
                if texts[place] and more <= room and (more > 0 or place not in fitting):
                    fitting[place] = texts[place]
                    room -= more
        return {place: fitting[place] for place in lines if place in fitting}

    def _ranks(self, typed: Typed) -> list[int]:
        """The rank of each sentence. One that replaced another must stay for both; one that resembles what many other
        messages say is no rule, or is quoted from those."""
        replacing = self._said.replacing
        return [
            3 if (typed.place, number) in replacing else max(0, sentence.rank - 2 * self._is_repeated(sentence))
            for number, sentence in enumerate(typed.sentences)
        ]

    def _is_repeated(self, sentence: Sentence) -> bool:
        pairs = [*pairwise(sentence.words)]
        return sum(self._said.pairs[pair] >= OFTEN for pair in pairs) >= max(1, REPEATED * len(pairs))

    def statements(self, view: View, request: Request) -> list[Statement]:
        """The rules and decisions of the user in this session, oldest first. `request` is the next one."""
        self._said = _Said()
        for group in view.prompted:
            self.add(group)
        texts = (block.text for message in request.messages for block in message.blocks if isinstance(block, Text))
        sections = (section.content for section in request.sections)
        visible_text = _spaced("\n".join((*sections, *texts)))
        rows = []
        for place in self._said.places:
            typed = self._said.typed[place]
            for number, (sentence, rank) in enumerate(zip(typed.sentences, self._ranks(typed), strict=True)):
                if rank >= 2 or number in self._said.replaced[place]:
                    text = typed.text[sentence.start : sentence.end].strip()
                    replaced_at, _ = self._said.replaced[place].get(number, (0, 0))
                    rows.append(Statement(place[0], text, replaced_at, _spaced(text) in visible_text))
        return rows

    # --- reading ---

    def _read(self, view: View) -> None:
        """Read new messages; all of them if the segment no longer begins with the messages that were read."""
        of_segment = {group.place: group for group in (*view.hidden, *view.groups) if group.is_prompt}
        groups = {group.place: group for group in view.prompted} | of_segment
        prompts = [groups[place] for place in sorted(groups) if place[0] not in view.omitted]
        count = len(self._said.places)
        if [group.place for group in prompts[:count]] != self._said.places:
            self._said, count = _Said(), 0
        for group in prompts[count:]:
            self.add(group)

    def add(self, group: Group) -> None:
        """Read one more message. What it repeats or replaces is quoted from it, not from the earlier message."""
        reading, place, text = self._said, group.place, typed_text(group.item.message)
        parts = sentences(text)
        typed = reading.typed[place] = Typed(place, text, parts, _apart(text, parts))
        reading.places.append(place)
        reading.replaced[place] = {}
        reading.pairs.update({pair for sentence in parts for pair in pairwise(sentence.words)})
        normalized = " ".join(text.casefold().split())
        if normalized in reading.latest:
            reading.repeated.add(reading.latest[normalized])
        reading.latest[normalized] = place
        for sentence in typed.sentences:
            if sentence.returns and not (sentence.asks or sentence.pasted):
                self._restore(sentence)
        for number, sentence in enumerate(typed.sentences):
            rows = [reading.alike[key] for key in sentence.keys]
            if sentence.may_replace:  # most of what is alike is so in several ways: each is compared once
                alike = {(at, earlier): other for row in rows for at, earlier, other in row if at != place}
                for (at, earlier), other in alike.items():
                    if earlier not in reading.replaced[at] and replaces(sentence, other):
                        reading.replaced[at][earlier] = place
                        reading.replacing.add((place, number))
            for row in rows:
                row.append((place, number, sentence))

    def _restore(self, sentence: Sentence) -> None:
        """Keep a replaced sentence on the same subject, or else the last replaced one: it may hold again."""
        reading = self._said
        replaced = [(by, at, number) for at, numbers in reading.replaced.items() for number, by in numbers.items()]
        subject = frozenset(word for word in sentence.words if len(word) > 2 or is_sign(word))
        spoken_of = [row for row in replaced if not subject.isdisjoint(reading.typed[row[1]].sentences[row[2]].words)]
        last = max(replaced, default=((0, 0), (0, 0), 0))[0]
        for _, at, number in spoken_of or (row for row in replaced if row[0] == last):
            del reading.replaced[at][number]
            reading.restored.add((at, number))

    # --- writing ---

    def _line(self, typed: Typed) -> str:
        """The message as typed, without replaced sentences; empty if a later message repeats the rest."""
        replaced = self._said.replaced[typed.place]
        if not replaced:
            return f"{typed.ref}: {typed.text.strip()}" if typed.text.strip() else ""
        staying = [number for number in range(len(typed.sentences)) if number not in replaced]
        text = _joined(typed, staying)
        return f"{typed.ref}: {text}" if text and not self._said_again(typed, staying) else ""

    def _said_again(self, typed: Typed, numbers: Sequence[int]) -> bool:
        """Whether each of these sentences is also in the message that replaced the others."""
        texts = [self._said.typed[place].text for place in self._said.replaced[typed.place].values()]
        sentences = (typed.sentences[number] for number in numbers)
        return all(
            any(typed.text[sentence.start : sentence.end].strip() in text for text in texts) for sentence in sentences
        )

    def _shortened(self, typed: Typed, room: int, *, least_rank: int = 0) -> str:
        """Its highest-ranked sentences, then those at both ends, within so many tokens.

        With a `least_rank`, only sentences of at least that rank; empty if there are none.
        """
        replaced = self._said.replaced[typed.place]
        ranks = [rank + (number in typed.apart) for number, rank in enumerate(self._ranks(typed))]
        last = len(typed.sentences) - 1
        numbers = [number for number in range(last + 1) if number not in replaced and ranks[number] >= least_rank]
        order = sorted(numbers, key=lambda number: (-ranks[number], min(number, last - number)))
        fitting: list[int] = []
        texts: set[str] = set()
        room -= self._estimator.text(f"{typed.ref}: ")
        left = room
        for number in order:
            text = typed.text[typed.sentences[number].start : typed.sentences[number].end].strip()
            size = self._estimator.text(f"{text}{CUT}")
            if size <= left and text not in texts:  # repeated lines of a log say nothing new
                fitting.append(number)
                texts.add(text)
                left -= size
        if not fitting and least_rank:
            return ""
        text = (
            _joined(typed, sorted(fitting)) if fitting else self._estimator.clip(typed.text.strip(), room, marker=CUT)
        )
        return f"{typed.ref}: {text}"


def _share(sizes: Mapping[Position, int], least: Mapping[Position, int], room: int) -> int:
    """The tokens for each message. Messages with more rules and decisions keep more."""
    low, high = 0, max(sizes.values())
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(least[place], min(size, middle)) for place, size in sizes.items()) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _apart(text: str, parts: Sequence[Sentence]) -> frozenset[int]:
    """The sentences in the first and last line of a long message, and in isolated lines if these are few."""
    if len(text) < LONG:
        return frozenset()
    lines = [match.span() for match in _LINE.finditer(text)]
    alone = [match.span() for match in _PARAGRAPH.finditer(text) if "\n" not in match[0]]
    ends = (*lines[:1], *lines[-1:], *(alone if len(alone) <= ALONE else ()))
    spans = [(start, end) for start, end in ends if end - start <= SHORT]
    return frozenset(
        number
        for number, part in enumerate(parts)
        if part.rank and any(start < part.end and part.start < end for start, end in spans)
    )


def _spaced(text: str) -> str:
    return " ".join(text.split())


def typed_text(message: Message) -> str:
    """What the user typed, without attached files and piped text, which are in tags."""
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    return "\n".join(text for text in texts if not _FRAMED.match(text))[:SCANNED]


def _joined(typed: Typed, numbers: Sequence[int]) -> str:
    """These sentences in order, with a mark where others were left out."""
    parts: list[str] = []
    before = -1
    for number in numbers:
        sentence = typed.sentences[number]
        if number > before + 1:
            parts = ["".join(parts).rstrip(), CUT]
        parts.append(typed.text[sentence.start : sentence.end])
        before = number
    after = CUT.rstrip() if numbers and before < len(typed.sentences) - 1 else ""
    return ("".join(parts).rstrip() + after).strip()
