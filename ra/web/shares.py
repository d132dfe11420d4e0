"""Divides the bills of a session among the pieces of its requests."""

from bisect import bisect_right
from collections.abc import Sequence

from ra.bench.requests import RequestChange
from ra.web.values import Rate


class Shares:
    """How the bills divide among the pieces: each pays for its place in every request that carried it.

    A request is read from the cache up to some place, written up to another, and plain input from there on. Pieces that
    lie in the part that is read pay the same for each of their tokens, so one running sum serves them all: the work is
    in what is new, not in what is carried.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.dollars = [0.0] * len(tokens)
        self._tokens = tokens
        self._pieces: list[int] = []
        self._ends: list[int] = []  # of the pieces, in tokens as we count them
        self._read = 0.0  # dollars that a token has paid so far for being read with every request
        self._since: list[float] = []  # of the pieces that are read: the sum when that began

    def bill(self, sent: RequestChange, *, read: int, write: int, total: int, rate: Rate, factor: float) -> None:
        """One call; `factor` is what was paid for each dollar of the list price."""
        self._settle(min(sent.keep, len(self._since)))
        del self._pieces[sent.keep :], self._ends[sent.keep :]
        for number in sent.added:
            self._pieces.append(number)
            self._ends.append((self._ends[-1] if self._ends else 0) + self._tokens[number])
        whole = self._ends[-1] if self._ends else 0
        if not whole or not total:
            return
        scale = total / whole
        cached = bisect_right(self._ends, read / scale)
        self._settle(min(cached, len(self._since)))
        self._since += [self._read] * (cached - len(self._since))
        dollars = [each * factor / 1e6 for each in (rate.read, rate.write, rate.input)]
        self._read += dollars[0] * scale
        edges = (0, read, read + write, total)
        start = self._ends[cached - 1] * scale if cached else 0.0
        for index in range(cached, len(self._pieces)):
            end = self._ends[index] * scale
            for low, high, each in zip(edges, edges[1:], dollars, strict=False):
                self.dollars[self._pieces[index]] += max(0.0, min(end, high) - max(start, low)) * each
            start = end

    def close(self) -> list[float]:
        self._settle(0)
        return self.dollars

    def _settle(self, keep: int) -> None:
        """The pieces from here on are no longer read along."""
        for index in range(keep, len(self._since)):
            number = self._pieces[index]
            self.dollars[number] += self._tokens[number] * (self._read - self._since[index])
        del self._since[keep:]
