"""Printed tables hold every number, whatever the terminal; the one of scores says what the results hold."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from headstart.metrics.sample_efficiency.scores import score
from headstart.output.printable import print_lines
from headstart.output.tables import (
    Table,
    format_number,
    format_with_error,
    latex_tables,
    markdown_tables,
    print_scores,
    print_table,
    print_tables,
)
from headstart.tests.material.runs import reaching

ROOT = Path(__file__).parents[2]
LONG = "a_method_with_a_rather_long_name"
ROWS = [
    ["source", "mean rank", "LEEP", "H-score (shrunk)"],
    ["a", "1.00", "-0.125 (1)", "12.75 (2)"],
    ["[red]a name beyond everything[/red]", "2.00", "–", "13.25 (1)"],
]
NUMBERS = [cell for row in ROWS[1:] for cell in row[1:]]


def describe(samples: list[list[float]]) -> dict[str, Any]:
    """Return the parts of a results document that the table needs."""
    values = np.array(samples)
    names = ["baseline", LONG][: len(values)]
    protocol = {"dataset": "pets", "backbone": "resnet50", "weights": "some/where/birds.pth", "batch_size": 8}
    return {
        "criterion": {"measure": "accuracy", "threshold": 0.8, "consecutive": 10},
        "protocol": {**protocol, "orderings": values.shape[1]},
        "restricted_at": 200,
        **score(reaching(names, values, 200), [100, 200]),
    }


def split_row(printed: str, name: str) -> list[str]:
    """Split a row into its name and cells, which stand two blanks apart."""
    (line,) = [line for line in printed.splitlines() if line.startswith(name)]
    return re.split(r" {2,}", line.strip())[1:]


@pytest.fixture
def print_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Print a table at a width; give its lines."""

    def run(width: int, rows: Any = ROWS) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        print_table("Some title of [red] its own", rows, "A caption.")
        return capsys.readouterr().out.splitlines()

    return run


def test_scores_stand_in_the_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    print_scores(describe([[100, 120, 80, 100], [50, 60, 40, np.inf]]))
    printed = capsys.readouterr().out
    words = re.sub(r"\s+", " ", printed)
    for part in (
        "80% validation accuracy at 10 consecutive",
        "pets, resnet50 (birds.pth), 4 orderings, batch size 8",
        "min(samples, 200)",
    ):
        assert part in words
    assert split_row(printed, "baseline") == ["4/4", "100", "100.0", "75.0%"]
    reached, median, mean, improvement, p_value, accuracy = split_row(printed, LONG)
    assert (reached, median, mean, accuracy) == ("3/4", "55", "87.5", "68.8%")
    assert re.fullmatch(r"12% \[-\d+, \d+\]", improvement)
    assert float(p_value) <= 1


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_width_breaks_a_number_or_is_exceeded(print_at: Any, width: int) -> None:
    lines = print_at(width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert sorted(cell for cell in NUMBERS if text.count(cell) < NUMBERS.count(cell)) == []
    # Text that looks like markup is printed, and wrapped where it is too long.
    assert "[red]" in text
    names = "".join(line[: len("[red]a name ")] for line in lines) if width == 30 else text
    assert "everything" in re.sub(r"\s+", "", names)


METHOD = "gaussian_discriminant_analysis"
HEADER = ["method", "reached", "median", "restricted mean", "improvement", "p", "accuracy at 500"]


@pytest.mark.parametrize("width", [50, 60, 70, 80, 100, 120, 160])
def test_tables_of_one_kind_lack_the_same_columns_and_keep_the_essential_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    essential = ("method", "reached", "median", "improvement")
    wide = [HEADER, [METHOD, "20/20", "101 [88, 120]", "104.4 [95.1, 113.8]", "-13 % [-35, 5]", "0.00096", "83.8%"]]
    narrow = [HEADER, ["mean", "2/2", "1", "1", "2", "1", "1%"]]
    tables = [
        Table("Wide", wide, essential, notes=["A note."]),
        Table("Narrow", narrow, essential),
        Table("Other", ROWS),
    ]
    print_tables(tables)
    printed = capsys.readouterr().out
    assert max(map(cell_len, printed.splitlines())) <= width
    assert all(cell in printed for cell in ("20/20", "101 [88, 120]", "-13 % [-35, 5]", "A note.", *NUMBERS))
    left_out = re.findall("no room for: ([^.]*?)\n(?:A note|\n|$)", printed)
    assert len(left_out) in (0, 2)
    absent = left_out[0].replace("\n", " ").split(", ") if left_out else []
    # The last ones go first.
    assert absent == [each for each in HEADER if each not in essential][3 - len(absent) :]
    assert ("104.4 [95.1, 113.8]" in printed) == ("restricted mean" not in absent)
    assert (len(absent) < 3) == (width >= 100)


def test_tables_in_markdown_and_latex_keep_hostile_texts_as_they_are() -> None:
    table = Table("a|b_c", [["method", "%"], ["[x] & $y$ #1", "<b>"]], about="50 %", notes=["two\nlines\x1b"])
    assert markdown_tables([table]).splitlines() == [
        *("## a|b\\_c", "", "50 %", "", "| method | % |", "| --- | ---: |"),
        *("| \\[x\\] \\& \\$y\\$ \\#1 | \\<b\\> |", "", "- two lines\x1b"),
    ]
    latex = latex_tables([table])
    assert "% two\\nlines\\x1b\n" in latex
    assert "\\caption{a\\textbar{}b\\_c. 50 \\%}" in latex
    assert "{[x] \\& \\$y\\$ \\#1} & \\textless{}b\\textgreater{} \\\\" in latex


def test_sentences_are_broken_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = f"/{'long-path/' * 9}"
    sentence = f"A long sentence, with [brackets] and /a/path/of/some/length, and {path} among its many words."
    print_lines([sentence, "second"], indent=4)
    *first, second = capsys.readouterr().out.splitlines()
    assert (" ".join(line.strip() for line in first), second) == (sentence, "second")
    assert all(len(line) <= 60 for line in first if path not in line)
    assert [line[:4].isspace() for line in first] == [False, *[True] * (len(first) - 1)]


def test_numbers() -> None:
    assert [format_number(value) for value in (None, -0.0, 1 / 3)] == ["–", "0", "0.3333"]
    assert [format_number(value, ".1f") for value in (-0.04, -0.06)] == ["0.0", "-0.1"]
    assert [format_number(value, ",.0f") for value in (-0.4, -1234, 1234)] == ["0", "-1,234", "1,234"]


def test_a_number_has_as_many_decimals_as_its_error_has_with_two_digits() -> None:
    shown: list[tuple[float | None, float | None, str]] = [
        (-0.097712, 0.0123, "-0.098 ± 0.012"),
        (1234567.8, 1234, "1234600 ± 1200"),
        (0.123456, 0.0999, "0.12 ± 0.10"),
        (5.0, 1e-320, "5 ± 0"),
        (1 / 3, None, "0.3333"),
        (-8.9e-18, 1e-17, "0 ± 0"),
        (None, None, "–"),
    ]
    assert [format_with_error(value, error) for value, error, _ in shown] == [text for *_, text in shown]
