"""Divides the bills of a session among the pieces of its requests."""

from bisect import bisect_right
from collections.abc import Sequence

from ra.bench.requests import RequestChange
from ra.web.values import Rate


class Shares:
    """Divides bills among pieces: each piece pays for its position in every request that carried it.

    A request is read from the cache up to one position, written up to another, and plain input after that. Each token
    of the pieces that are read costs the same, so one running sum serves them all: the work grows with the new pieces,
    not with the carried ones.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self.dollars = [0.0] * len(tokens)
        self._tokens = tokens
        self._pieces: list[int] = []
        self._ends: list[int] = []  # of the pieces, in our own token count
        self._read = 0.0  # dollars per token for all cache reads so far
        self._since: list[float] = []  # of the pieces that are read: `_read` when that began

    def bill(self, sent: RequestChange, *, read: int, write: int, total: int, rate: Rate, factor: float) -> None:
        """Adds one call; `factor` is the ratio of the paid to the list price."""
        self._settle(min(sent.keep, len(self._since)))
        del self._pieces[sent.keep :], self._ends[sent.keep :]
        for number in sent.added:
            self._pieces.append(number)
            self._ends.append((self._ends[-1] if self._ends else 0) + self._tokens[number])
        counted = self._ends[-1] if self._ends else 0
        if not counted or not total:
            return
        scale = total / counted
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
        """Settles the pieces from position `keep` on, which are no longer read from the cache."""
        for index in range(keep, len(self._since)):
            number = self._pieces[index]
            self.dollars[number] += self._tokens[number] * (self._read - self._since[index])
        del self._since[keep:]
