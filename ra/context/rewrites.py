"""Keeps the state of a view before each rewrite, so that somebody can go back behind it."""

from typing import Any

REMEMBERED = 20  # rewrites that can be taken back


class Rewrites:
    """States, oldest first, each with the position of the rewrite that came after it."""

    def __init__(self) -> None:
        self.reach = 0  # who goes back to a position before this one cannot be shown what was there
        self._states: list[tuple[int, dict[str, Any]]] = []

    def copy(self) -> "Rewrites":
        twin = Rewrites()
        twin.reach, twin._states = self.reach, self._states.copy()
        return twin

    def remember(self, at: int, state: dict[str, Any]) -> None:
        self._states.append((at, state))
        if len(self._states) > REMEMBERED:
            self.reach = self._states.pop(0)[0]

    def take_back(self, to: int) -> dict[str, Any]:
        """The state before the first rewrite after this position, which is forgotten with all later ones."""
        later = [state for at, state in self._states if at > to]
        self._states = [(at, state) for at, state in self._states if at <= to]
        return later[0] if later else {}
