"""The style of figures: colours that everyone can distinguish, names of any script as they are, one way to save."""

import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

INK, PALE, GREY, ALARM = "#333333", "#999999", "#8c8c8c", "#cc3311"
DPI = 120
# Metadata of figures by format: without dates the same figure gives the same bytes.
NO_DATES: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
LONGEST_NAME = 32
# Widest characters of a small font in an inch.
IN_INCH = 6.5
# Common fonts of Linux, macOS and Windows for Chinese, Japanese and Korean, and one that covers most of Unicode.
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Arial Unicode MS",
)


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
DARK_PAPER = "#14181d"
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
        # Layouts before `make_legible` would warn of every missing character.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def save(figure: Figure, path: Path, form: str = "png") -> None:
    """Write a figure as PNG, PDF or SVG; the same figure gives the same bytes."""
    figure.set_dpi(DPI)
    make_legible(figure)
    canvas = get_registered_canvas_class(form)(figure)
    # The canvas's own method renders once; `savefig` would render twice.
    with drawing():
        getattr(canvas, f"print_{form}")(path, metadata=NO_DATES.get(form))


def writers(name: str, figure: Figure, formats: Iterable[str]) -> dict[str, Callable[[Path], None]]:
    """Return what writes a figure in each of the formats, by file names that begin with `name`."""
    return {f"{name}.{form}": partial(save, figure, form=form) for form in formats}


def make_legible(figure: Figure) -> None:
    """Escape characters that no installed font has, or that are invisible, except line breaks."""
    for text in figure.findobj(Text):
        text.set_text(_legible(text.get_text()))
    for axis in figure.findobj(Axis):
        # Rendering formats the labels of ticks again.
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FuncFormatter):
            formatter.func = partial(_legible_label, formatter.func)


def _legible_label(label: Callable[..., str], *args: Any) -> str:
    return _legible(label(*args))


def _legible(text: str) -> str:
    characters = _characters()
    return "".join(
        each
        if each == "\n" or (each.isprintable() and ord(each) in characters)
        else each.encode("ascii", "backslashreplace").decode()
        for each in text
    )


def shorten(names: Sequence[str]) -> list[str]:
    """Leave out the middle of names longer than 32 characters: families share the beginning, variants the end.

    Names that would look the same keep as many characters as distinguish them. Characters that no font has are
    escaped, as `make_legible` does.
    """
    names = [_legible(name) for name in names]
    longest = dict.fromkeys(names, LONGEST_NAME)
    while True:
        short = {name: _without_middle(name, length) for name, length in longest.items()}
        count = Counter(short.values())
        alike = [name for name in short if count[short[name]] > 1]
        if not alike:
            return [short[name] for name in names]
        for name in alike:
            longest[name] += 1


def _without_middle(name: str, longest: int) -> str:
    if len(name) <= longest:
        return name
    start = (longest - 1) // 2
    return f"{name[:start]}…{name[start + 1 - longest :]}"


def fold(text: str, inches: float) -> str:
    """Break a text in a font of 9 points or less into lines that are not wider than so many inches."""
    return textwrap.fill(text, int(IN_INCH * inches))


def width_of_names(axes: Axes) -> float:
    """Return the width of the longest label on the vertical axis in inches, which a figure has to leave beside it."""
    figure = axes.get_figure()
    assert figure is not None
    return float(max(label.get_window_extent().width for label in axes.get_yticklabels()) / figure.dpi)


@cache
def _characters() -> frozenset[int]:
    """Return the characters that the fonts have."""
    files = [font_manager.findfont(font_manager.FontProperties(family=[font])) for font in _fonts()]
    return frozenset().union(*(font_manager.get_font(file).get_charmap() for file in files))


@cache
def _fonts() -> list[str]:
    """Return the fonts of names: the usual one, then those for scripts that it lacks."""
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(font for font in FALLBACK_FONTS if font in installed)]
