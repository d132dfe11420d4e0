"""How large are the messages? A row with running totals, cut back to where something changed and grown again."""

from collections.abc import Sequence

from ra.context.tokens import Estimator
from ra.core.messages import Message


class Tape:
    """Counting is lazy and every message is counted once, so that the next request costs what is new in it."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator
        self._messages: list[Message] = []
        self._totals: list[int] = [0]  # of the first 0, 1, 2… messages, as far as they were counted
        self._frozen: tuple[Message, ...] | None = ()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def counted(self) -> int:
        """How many messages were counted already."""
        return len(self._totals) - 1

    @property
    def messages(self) -> tuple[Message, ...]:
        if self._frozen is None:
            self._frozen = tuple(self._messages)
        return self._frozen

    def extend(self, messages: Sequence[Message]) -> None:
        if messages:
            self._messages.extend(messages)
            self._frozen = None

    def cut(self, length: int) -> None:
        """Forget all but the first so many messages."""
        if length < len(self._messages):
            del self._messages[length:]
            del self._totals[length + 1 :]
            self._frozen = None

    def tokens(self, *, since: int = 0) -> int:
        """Tokens (o200k_base) of the messages from index `since` on."""
        if since > self.counted:  # what lies before was reported by the provider and need not be counted
            return self._estimator.messages(self._messages[since:])
        for message in self._messages[self.counted :]:
            self._totals.append(self._totals[-1] + self._estimator.message(message))
        return self._totals[-1] - self._totals[since]

    def copy(self) -> "Tape":
        twin = Tape(self._estimator)
        twin._messages = self._messages.copy()
        twin._totals = self._totals.copy()
        twin._frozen = self._frozen
        return twin
