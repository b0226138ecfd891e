"""Pictures: lines that every reader tells apart, names as they are, the same bytes for the same picture."""

from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from headstart.output.figures import (
    as_written,
    drawing,
    label_lines,
    setting_in_words,
    shorten,
    titles,
    writers,
)
from headstart.output.results_folder import FigureFormat


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
    names = ["short", "a" * 40, "b" * 20 + "1" + "c" * 30, "b" * 20 + "2" + "c" * 30]
    short = shorten(names)
    assert short[0] == "short"
    assert short[1] == "a" * 15 + "…" + "a" * 16
    assert len(set(short)) == 4
    assert all(len(name) < 52 for name in short)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("streaming_lda", "Streaming LDA"),
        ("open_clip", "OpenCLIP"),
        ("drawn_pets, noise 2", "Drawn pets, noise 2"),
        ("MyMethod_2", "MyMethod_2"),
        ("_hidden", "_hidden"),
    ],
)
def test_identifiers_are_written_as_a_person_writes_them(name: str, written: str) -> None:
    assert as_written(name) == written


def test_names_that_would_look_alike_stay_as_they_are() -> None:
    assert titles(["a_b", "A b"]) == ["a_b", "A b"]
    assert titles(["a_b", "c"]) == ["A b", "C"]


def test_settings_are_named_by_data_set_backbone_and_weights() -> None:
    name = "ants_and_bees, mobilenet_v2 (mobilenet_v2_imagenet.safetensors)"
    assert setting_in_words(name) == "Ants and bees, MobileNetV2 (ImageNet)"


def test_labels_at_the_ends_of_lines_do_not_overlap_and_keep_their_order() -> None:
    with drawing():
        figure = Figure(figsize=(4, 3))
        axes = figure.subplots()
        axes.set_ylim(0, 100)
        ends = [(1.0, height) for height in (99.0, 98.5, 98.5, 50.0, 1.0, 0.5)]
        label_lines(axes, ends, list("abcdef"), ["black"] * 6)
    figure.draw_without_rendering()
    # That of an annotation would hold its line.
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(boxes))
    assert axes.transData.transform((1, 50))[1] == pytest.approx((boxes[3].y0 + boxes[3].y1) / 2, abs=2)
