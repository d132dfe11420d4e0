"""Renders styled text with Rich into a string for this terminal."""

import io
from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.text import Text

NARROWEST = 20


def light_background(env: Mapping[str, str]) -> bool:
    """Whether the terminal reports a light background; many report nothing."""
    return env.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


class Paper:
    """Renders for a width. Without `colour`, bold and dim remain; `plain` leaves text only."""

    def __init__(self, *, colour: bool, plain: bool = False, width: int = 80, light: bool = False) -> None:
        self.plain = plain
        self.colour = colour
        self.light = light  # the terminal's background is light
        self._file = io.StringIO()
        self.console = Console(
            file=self._file,
            force_terminal=not plain,
            no_color=not colour,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            width=max(width, NARROWEST),
        )

    @property
    def code_theme(self) -> str:
        """A theme from the terminal's own sixteen colours that is readable on its background."""
        return "ansi_light" if self.light else "ansi_dark"

    @property
    def width(self) -> int:
        return self.console.width

    def resize(self, width: int) -> None:
        self.console.width = max(width, NARROWEST)

    def rendered(self, *parts: RenderableType, wrap: bool = True) -> str:
        """The parts, one below the other. Without `wrap`, the terminal breaks long lines: they copy as one line."""
        for part in parts:
            self.console.print(part, soft_wrap=not wrap)
        text = self._file.getvalue()
        self._file.seek(0)
        self._file.truncate()
        return text

    def line(self, text: str, style: str = "") -> str:
        """One paragraph of text, already sanitized."""
        return self.rendered(Text(text, style=style))
