"""Shows an agent in a notebook: its answer as it arrives, and the content of its window."""

import time
from collections.abc import Iterator
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ra.core.events import Event, RunEnded, TextDelta, ToolStarted, Warned

if TYPE_CHECKING:
    from ra.session.snapshot import Snapshot

UPDATE_S = 0.1
"""Shortest time between two updates of a page: it would flicker at every delta."""
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#9c755f", "#bab0ac")


def context_bar(snapshot: "Snapshot") -> str:
    """The next request by source, as an HTML bar with a legend. Names come from files, so they are escaped."""
    report = snapshot.report
    rows = [row for row in report.rows if row.tokens]
    total = sum(row.tokens for row in rows) or 1
    pieces, legend = [], []
    for place, row in enumerate(rows):
        colour = _COLOURS[place % len(_COLOURS)]
        words = f"{escape(row.name)} {row.tokens:,}"
        width = f"{100 * row.tokens / total:.2f}%"
        pieces.append(f'<div title="{words}" style="width:{width};background:{colour}"></div>')
        legend.append(f'<span style="color:{colour}">■</span> {words}')
    bar = f'<div style="display:flex;height:12px;border-radius:3px;overflow:hidden">{"".join(pieces)}</div>'
    return f"<div>{bar}<small>{' &nbsp; '.join(legend)} &nbsp; <b>{report.total:,} tokens</b></small></div>"


def show(events: Iterator[Event]) -> None:
    """Shows the text as it arrives: as Markdown in a notebook, else printed. Warnings and tools get separate lines."""
    page = _page()
    text, drawn = "", 0.0
    for event in events:
        match event:
            case TextDelta(piece):
                text += piece
                if page is None:
                    print(piece, end="", flush=True)
                elif time.monotonic() - drawn > UPDATE_S:
                    page(text)
                    drawn = time.monotonic()
            case ToolStarted(call):
                print(f"· {call.name}")
            case Warned(words):
                print(f"ra: {words}")
            case RunEnded(error=error):
                if page is not None:
                    page(text)
                print(f"\nra: {error}" if error else "")
            case _:
                pass


def _page() -> Any:
    """A function that replaces the displayed text; None outside a notebook."""
    try:  # by name: IPython is not a dependency, so type checkers may not find it
        ipython, display = import_module("IPython"), import_module("IPython.display")
    except ImportError:
        return None
    if ipython.get_ipython() is None:
        return None
    handle = display.display(display.Markdown(""), display_id=True)
    return None if handle is None else lambda text: handle.update(display.Markdown(text))
