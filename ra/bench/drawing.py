"""How is a picture written down? A few shapes, as SVG for the web or as PNG for a report."""

import io
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never

from ra.core.errors import UserError
from ra.core.value import Value

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SUFFIXES = (".svg", ".png")
SCALE = 2  # pixels of a PNG for one unit, so that text is sharp in print
SMOOTH = 2  # it is drawn so much larger and made smaller: lines without steps
DASH = (5.0, 4.0)  # drawn and left out
GRID, INK, FAINT = "#e5e5e5", "#444444", "#666666"


class Line(Value, frozen=True):
    """Straight through all of its points."""

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
    """Text whose baseline is at `y`; it begins at `x`, ends there, or has its middle there."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    colour: str = "#000000"
    size: int = 13
    bold: bool = False


Shape = Line | Dot | Bar | Label


class Drawing(Value, frozen=True):
    """Later shapes lie on earlier ones, all of them on white."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


def check(option: str, file: Path | None) -> None:
    """Raises UserError for a file that cannot be drawn, before anything is measured for it."""
    if file is not None and file.suffix.lower() not in SUFFIXES:
        raise UserError(f"{option} {file}: its name must end in {' or '.join(SUFFIXES)}.")
    if file is not None and not file.parent.is_dir():
        raise UserError(f"{option} {file}: there is no folder {file.parent}; name another file.")


def write(drawing: Drawing, file: Path) -> None:
    """As SVG or PNG, by the file's name. Raises UserError."""
    drawn = png(drawing) if file.suffix.lower() == ".png" else svg(drawing).encode()
    try:
        file.write_bytes(drawn)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; name another file.") from error


# --- SVG ---


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
        case Line(points, colour, width, dashed):
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


# --- PNG ---

_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png(drawing: Drawing) -> bytes:
    from PIL import Image, ImageDraw  # 60 ms, and only for who wants a PNG

    times = SCALE * SMOOTH
    image = Image.new("RGB", (drawing.width * times, drawing.height * times), "white")
    pen = ImageDraw.Draw(image)
    for shape in drawing.shapes:
        _paint(pen, shape, times)
    small = image.resize((drawing.width * SCALE, drawing.height * SCALE), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.quantize(256, method=Image.Quantize.FASTOCTREE).save(file, "PNG", optimize=True)
    return file.getvalue()


def _paint(pen: "ImageDraw", shape: Shape, times: int) -> None:
    match shape:
        case Line(points, colour, width, dashed):
            for part in dashes(points, *DASH) if dashed else [points]:
                scaled = [(x * times, y * times) for x, y in part]
                pen.line(scaled, fill=colour, width=round(width * times), joint="curve")
        case Dot(x, y, radius, colour):
            box = ((x - radius) * times, (y - radius) * times, (x + radius) * times, (y + radius) * times)
            pen.ellipse(box, fill=colour)
        case Bar(x, y, width, height, colour):
            if width > 0 and height > 0:
                pen.rectangle((x * times, y * times, (x + width) * times, (y + height) * times), fill=colour)
        case Label(x, y, text, anchor, colour, size, bold):
            from PIL.ImageFont import load_default  # Pillow's own font: no machine lacks it

            font = load_default(size * times)
            stroke = times // 3 if bold else 0
            place = (x * times, y * times)
            pen.text(place, text, fill=colour, font=font, anchor=_ANCHORS[anchor], stroke_width=stroke)
        case _:
            assert_never(shape)


def dashes(points: Sequence[tuple[float, float]], on: float, off: float) -> list[list[tuple[float, float]]]:
    """A line in pieces, `on` long and `off` apart."""
    pieces: list[list[tuple[float, float]]] = [[]]
    left, drawing = on, True
    for (x, y), (to_x, to_y) in pairwise(points):
        length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
        done = 0.0
        if drawing and not pieces[-1]:
            pieces[-1].append((x, y))
        while length - done > left:
            done += left
            corner = (x + (to_x - x) * done / length, y + (to_y - y) * done / length)
            if drawing:
                pieces[-1].append(corner)
            else:
                pieces.append([corner])
            drawing = not drawing
            left = on if drawing else off
        left -= length - done
        if drawing:
            pieces[-1].append((to_x, to_y))
    return [piece for piece in pieces if len(piece) > 1]
