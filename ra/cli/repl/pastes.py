"""Folds a long paste into a short label in the input line."""

import re

LONG = 600  # characters; shorter pastes are shown as they are
LINES = 6

LABEL = re.compile(r"\[pasted text (\d+): [\d,]+ lines?, [\d,.]+ [kM]?B\]")


class Pastes:
    """The pastes of this process, by number. An edited label is ordinary text."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, str]] = []

    def fold(self, text: str) -> str:
        """The text that replaces a paste in the input line."""
        text = clean(text)
        lines = text.count("\n") + 1
        if len(text) <= LONG and lines <= LINES:
            return text
        count = f"{lines:,} line{'s' * (lines != 1)}"
        label = f"[pasted text {len(self._texts) + 1}: {count}, {_size(len(text.encode()))}]"
        self._texts.append((label, text))
        return label

    def unfold(self, text: str) -> str:
        def whole(match: re.Match[str]) -> str:
            number = int(match[1]) - 1
            paste = self._texts[number] if 0 <= number < len(self._texts) else ("", "")
            return paste[1] if paste[0] == match[0] else match[0]

        return LABEL.sub(whole, text)

    @staticmethod
    def label_before(text: str) -> int:
        """The length of the label at the end of the text; 0 without one."""
        labels = [match for match in LABEL.finditer(text) if match.end() == len(text)]
        return len(labels[0][0]) if labels else 0


def clean(text: str) -> str:
    """Normalizes line ends and replaces bytes that are not UTF-8, which can be neither stored nor sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()


def _size(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
