"""Pictures: lines that every reader tells apart, names as they are, the same bytes for the same picture."""

from io import BytesIO
from itertools import combinations, pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from headstart.output.figures import (
    ALARM,
    GREY,
    LINE_STYLES,
    ON_DARK,
    as_written,
    drawing,
    label_lines,
    save,
    setting_in_words,
    shorten,
    titles,
    writers,
)
from headstart.output.results_folder import FigureFormat

# The page's colour in dark mode, as `output/page/page.css` has it.
DARK_PAPER = "#14181d"
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE
# Transactions on Visualization and Computer Graphics, 2009, severity 1, in linear RGB.
SIGHT = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# IEC 61966-2-1.
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def to_linear(colour: str) -> NDArray[np.float64]:
    encoded = np.array(to_rgb(colour))
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def to_lab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE 15, L*a*b* under D65."""
    ratio = TO_XYZ @ np.clip(linear, 0, 1) / TO_XYZ.sum(1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(first: str, second: str, sight: str) -> float:
    """Return the CIE 1976 difference of two colours as they are seen; about 2.3 is just noticeable."""
    one, other = (to_lab(np.array(SIGHT[sight]) @ to_linear(colour)) for colour in (first, second))
    return float(np.linalg.norm(one - other))


def test_lines_are_distinct_for_everyone_on_white_and_dark_pages() -> None:
    colours = [style.colour for style in LINE_STYLES]
    assert len({style.dashes for style in LINE_STYLES}) == len({style.marker for style in LINE_STYLES}) == 6
    assert len(ON_DARK) == len(LINE_STYLES)
    for sight in SIGHT:
        assert min(distance(*pair, sight) for pair in combinations(colours, 2)) > 30
        # The colours are compared with white and with the greys of the baseline and the threshold.
        assert min(distance(colour, "white", sight) for colour in (*colours, ALARM)) > 30
        assert distance(LINE_STYLES[-1].colour, GREY, sight) > 30
        assert min(distance(*pair, sight) for pair in combinations((*ON_DARK, DARK_PAPER), 2)) > 27
    # WCAG 2.2, success criterion 1.4.11: graphical objects have a contrast of 3 or more.
    paper, *lines = (float(TO_XYZ[1] @ to_linear(colour)) + 0.05 for colour in (DARK_PAPER, *ON_DARK))
    assert min(lines) / paper > 3


def draw() -> Figure:
    with drawing():
        figure = Figure(figsize=(2, 2))
        axes = figure.subplots()
        axes.set_title("$x_2$ $\\frac{ 猫")
        axes.plot([0, 1], [1, 0], label="_a")
    return figure


def test_files_of_every_format_and_the_same_bytes_again(tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        for name, write in writers("picture", draw(), get_args(FigureFormat)).items():
            write(tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert contents[0] == contents[1]
    assert set(contents[0]) == {f"picture.{form}" for form in get_args(FigureFormat)}
    assert contents[0]["picture.pdf"].startswith(b"%PDF")
    assert b"<svg" in contents[0]["picture.svg"]
    with Image.open(tmp_path / "picture.png") as picture:
        assert picture.size == (400, 400)


def test_long_names_lose_their_middle_but_stay_different() -> None:
    alike = ["b" * 20 + digit + "c" * 30 for digit in "12"]
    assert shorten(["short", "a" * 40, *alike]) == ["short", "a" * 15 + "…" + "a" * 16, *alike]


def test_names_are_written_as_a_person_writes_them() -> None:
    written = {"streaming_lda": "Streaming LDA", "open_clip": "OpenCLIP", "drawn_pets, noise 2": "Drawn pets, noise 2"}
    for name, expected in {**written, "MyMethod_2": "MyMethod_2", "_hidden": "_hidden"}.items():
        assert as_written(name) == expected
    assert titles(["a_b", "c"]) == ["A b", "C"]
    # Names that would look alike stay as they are.
    assert titles(["a_b", "A b"]) == ["a_b", "A b"]
    name = "ants_and_bees, mobilenet_v2 (mobilenet_v2_imagenet.safetensors)"
    assert setting_in_words(name) == "Ants and bees, MobileNetV2 (ImageNet)"


def test_labels_at_the_ends_of_lines_do_not_overlap_and_keep_their_order() -> None:
    with drawing():
        figure = Figure(figsize=(4, 3))
        axes = figure.subplots()
        axes.set_ylim(0, 100)
        ends = [(1.0, height) for height in (99.0, 98.5, 98.5, 50.0, 1.0, 0.5)]
        label_lines(axes, ends, list("abcdef"), ["black"] * 6)
    save(figure, BytesIO())
    # That of an annotation would hold its line.
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))
    assert axes.transData.transform((1, 50))[1] == pytest.approx((boxes[3].y0 + boxes[3].y1) / 2, abs=2)
