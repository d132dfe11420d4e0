"""Draws lines, dots, bars and labels as SVG."""

from html import escape
from pathlib import Path
from typing import Literal, assert_never

from ra.core.errors import UserError
from ra.core.value import Value

DASH = (5.0, 4.0)  # lengths of a dash and of a gap
GRID, INK, FAINT = "#e5e5e5", "#444444", "#666666"


class Polyline(Value, frozen=True):
    """A line straight through all of its points."""

    points: tuple[tuple[float, float], ...]
    colour: str = GRID
    width: float = 1.0
    dashed: bool = False


class Dot(Value, frozen=True):
    x: float
    y: float
    radius: float
    colour: str


class Bar(Value, frozen=True):
    x: float
    y: float
    width: float
    height: float
    colour: str


class Label(Value, frozen=True):
    """Text whose baseline is at `y`; `x` is its beginning, its end, or its middle."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    colour: str = "#000000"
    size: int = 13
    bold: bool = False


Shape = Polyline | Dot | Bar | Label


class Drawing(Value, frozen=True):
    """Later shapes cover earlier ones, on a white background."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def check(option: str, file: Path | None) -> None:
    """Raises UserError for a file that cannot be drawn, before anything is measured for it."""
    if file is not None and file.suffix.lower() != ".svg":
        raise UserError(f"{option} {file}: its name must end in .svg.")
    if file is not None and not file.parent.is_dir():
        raise UserError(f"{option} {file}: there is no folder {file.parent}; name another file.")


def write(drawing: Drawing, file: Path) -> None:
    """Raises UserError."""
    try:
        file.write_text(svg(drawing), "utf-8")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; name another file.") from error


def svg(drawing: Drawing) -> str:
    width, height = drawing.width, drawing.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif">'
    )
    back = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join((head, back, *map(_element, drawing.shapes), "</svg>")) + "\n"


def _element(shape: Shape) -> str:
    match shape:
        case Polyline(points, colour, width, dashed):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            dash = f' stroke-dasharray="{DASH[0]:g} {DASH[1]:g}"' if dashed else ""
            drawn = f'fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linejoin="round"{dash}'
            return f'<polyline points="{path}" {drawn}/>'
        case Dot(x, y, radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Bar(x, y, width, height, colour):
            return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        case Label(x, y, text, anchor, colour, size, bold):
            weight = ' font-weight="600"' if bold else ""
            place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
            return f'<text {place} fill="{colour}"{weight}>{escape(text)}</text>'
        case _:
            assert_never(shape)
