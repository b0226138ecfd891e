"""The style of figures: colours that everyone can distinguish, names as people write them, one way to save."""

import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import matplotlib
import numpy as np
import yaml
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image

INK, PALE, GREY, ALARM, GRID = "#333333", "#999999", "#8c8c8c", "#cc3311", "#e6e6e6"
DPI = 200
# Metadata of figures by format: without dates the same figure gives the same bytes.
NO_DATES: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
LONGEST_NAME = 32
# Labels beside lines, in points: the step from one to the next, their font size, and the distance from the axes.
LABEL_STEP, LABEL_SIZE, LEADER = 11.5, 8.5, 16.0
# Spellings of identifiers, and fonts for names that the usual one lacks.
NAMES = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8"))


class LineStyle(NamedTuple):
    """Style of one of several lines.

    Attributes:
        colour: Its colour.
        dashes: Lengths on and off, in line widths; empty for a solid line.
        marker: Marker of its points.
    """

    colour: str
    dashes: tuple[float, ...]
    marker: str


# Black and those colours of Okabe and Ito, "Color Universal Design", 2008, and Tol, "Colour Schemes", SRON, 2021, that
# lie farthest from each other for readers with normal sight, protanopia, deuteranopia and tritanopia alike.
LINE_STYLES = (
    LineStyle("#000000", (), "o"),
    LineStyle("#aa3377", (5, 1.5), "^"),
    LineStyle("#56b4e9", (1, 1), "s"),
    LineStyle("#117733", (6, 1.5, 1, 1.5), "D"),
    LineStyle("#e69f00", (10, 2), "v"),
    LineStyle("#332288", (4, 1, 1, 1, 1, 1), "P"),
)
# Their colours on a dark page, by the same rule, of the same sets, alike in hue where that is possible.
ON_DARK = ("#ffffff", "#aa4499", "#66ccee", "#228833", "#e69f00", "#7f7fff")


@contextmanager
def drawing() -> Iterator[None]:
    """Plot in the common style within; texts are printed as they are, dollar signs included."""
    settings: Any = {
        "axes.edgecolor": PALE,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": "medium",
        "figure.titlesize": "medium",
        "font.family": _fonts(),
        "legend.frameon": False,
        "text.color": INK,
        "text.parse_math": False,
        "xtick.color": PALE,
        "xtick.labelcolor": INK,
        "ytick.color": PALE,
        "ytick.labelcolor": INK,
        # Otherwise the identifiers within an SVG file are random.
        "svg.hashsalt": "headstart",
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A character that no installed font has is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def save(figure: Figure, file: Path | BinaryIO, form: str = "png") -> None:
    """Write a figure into a file as PNG, PDF or SVG; the same figure has the same bytes."""
    figure.set_dpi(DPI)
    canvas = get_registered_canvas_class(form)(figure)
    with drawing():
        if form == "png":
            _write_png(canvas, file)
        else:
            # The canvas's own method renders once; `savefig` would render twice.
            getattr(canvas, f"print_{form}")(file, metadata=NO_DATES.get(form))


def _write_png(canvas: Any, file: Path | BinaryIO) -> None:  # noqa: ANN401 - a canvas of Agg, which has no types
    """Write a picture with 256 colours, in which lines and bands look the same and take a third of the bytes."""
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # A scale of colours has more.
    if not canvas.figure.findobj(AxesImage):
        picture = picture.quantize(256, dither=Image.Dither.NONE)
    picture.save(file, format="png", dpi=(DPI, DPI))


def writers(name: str, figure: Figure, formats: Iterable[str]) -> dict[str, Callable[[Path], None]]:
    """Return what writes a figure in each of the formats, by file names that begin with `name`."""
    return {f"{name}.{form}": partial(save, figure, form=form) for form in formats}


def as_written(name: str) -> str:
    """Return an identifier as a person writes it: `streaming_lda` is "Streaming LDA"; other names stay as they are.

    An identifier has lower-case letters, digits and underscores only. What follows a comma stays as it is, as in
    `drawn_pets, noise 2`.
    """
    words = spelled(name)
    # A spelling such as iNaturalist keeps its first letter.
    return words[0].upper() + words[1:] if _is_identifier(name) and words.split(" ")[0].islower() else words


def spelled(name: str) -> str:
    """Return an identifier as in the middle of a sentence: `streaming_lda` is "streaming LDA"."""
    if not _is_identifier(name):
        return name
    identifier, comma, rest = name.partition(",")
    words = identifier.strip("_").replace("_", " ")
    for plain in sorted(NAMES["spellings"], key=len, reverse=True):
        words = re.sub(rf"\b{plain}\b", NAMES["spellings"][plain], words)
    return words + comma + rest


def setting_in_words(name: str) -> str:
    """Return the name of a setting, `data_set, backbone (file of weights)`, as a person writes it."""
    # The file repeats the name of the backbone.
    name = re.sub(r"(\w+) \((?:\1_)?([^()]+?)\.\w+\)", r"\1 (\2)", name)
    words = re.sub(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)*\b", lambda found: spelled(found[0]), name)
    return words[:1].upper() + words[1:]


def _is_identifier(name: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_]*", name.partition(",")[0]) is not None


def titles(names: Sequence[str]) -> list[str]:
    """Return names as people write them, shortened as `shorten` does; as they are if two would look the same."""
    written = [as_written(name) for name in names]
    return shorten(written if len(set(written)) == len(set(names)) else names)


def shorten(names: Sequence[str]) -> list[str]:
    """Leave out the middle of names longer than 32 characters: families share the beginning, variants the end.

    Names that would look the same stay whole.
    """
    short = {name: _without_middle(name) for name in names}
    count = Counter(short.values())
    return [short[name] if count[short[name]] == 1 else name for name in names]


def _without_middle(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    start = (LONGEST_NAME - 1) // 2
    return f"{name[:start]}…{name[start + 1 - LONGEST_NAME :]}"


def fold(text: str, inches: float, points: float = 10) -> str:
    """Break a text of a font size into lines that are not wider than so many inches; line breaks in it stay."""
    return "\n".join(_fold_line(line, inches, points) for line in text.split("\n"))


def _fold_line(text: str, inches: float, points: float) -> str:
    for characters in range(int(200 * inches / points), 10, -1):
        lines = textwrap.wrap(text, characters)
        if not lines or max(_width(line, points) for line in lines) <= inches:
            break
    return "\n".join(lines)


def _width(text: str, points: float) -> float:
    with drawing():
        return float(Figure(dpi=72).text(0, 0, text, fontsize=points).get_window_extent().width) / 72


def label_lines(axes: Axes, ends: Sequence[tuple[float, float]], labels: Sequence[str], colours: Sequence[str]) -> None:
    """Write labels in a column on the right of the axes, each near its line's end and above the next one.

    Labels that would overlap move apart, and a thin line leads from each to its end.

    Args:
        axes: The axes, with their final limits and size.
        ends: Ends of the lines in the units of the data, from the highest label to the lowest.
        labels: Their labels.
        colours: Their colours.
    """
    figure = axes.get_figure()
    assert figure is not None
    points = 72 / figure.dpi
    positions = [axes.transData.transform(end) * points for end in ends]
    box = axes.get_window_extent()
    heights = _apart([float(y) for _, y in positions], float(box.y0) * points, float(box.y1) * points)

    line: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.6, "alpha": 0.6, "shrinkA": 1, "shrinkB": 1}
    where: dict[str, Any] = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
    for end, (x, y), height, label, colour in zip(ends, positions, heights, labels, colours, strict=True):
        to_text = (float(box.x1) * points + LEADER - x, height - y)
        leader = {**line, "color": colour, "relpos": (0, 0.5)}
        axes.annotate(label, end, xytext=to_text, color=colour, fontsize=LABEL_SIZE, arrowprops=leader, **where)


def room_for_labels(labels: Sequence[str]) -> float:
    """Return the inches on the right of the axes that `label_lines` needs."""
    return max(_width(label, LABEL_SIZE) for label in labels) + (LEADER + LABEL_SIZE) / 72


def _apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Return heights in falling order, a step apart or more, near the wanted ones and, if they fit, between bounds."""
    heights = [min(height, high - index * LABEL_STEP) for index, height in enumerate(wanted)]
    for index in range(1, len(heights)):
        heights[index] = min(heights[index], heights[index - 1] - LABEL_STEP)
    for index in reversed(range(len(heights))):
        heights[index] = max(heights[index], low + (len(heights) - 1 - index) * LABEL_STEP)
    return heights


def width_of_names(axes: Axes) -> float:
    """Return the width of the longest label on the vertical axis in inches, which a figure has to leave beside it."""
    figure = axes.get_figure()
    assert figure is not None
    return float(max(label.get_window_extent().width for label in axes.get_yticklabels()) / figure.dpi)


@cache
def _fonts() -> list[str]:
    """Return the fonts of names: the usual one, then those for scripts that it lacks."""
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(font for font in NAMES["fallback_fonts"] if font in installed)]
