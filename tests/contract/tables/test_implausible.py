"""Codes for missing values, and values that no metric or accuracy can have."""

from pathlib import Path

import pytest

from headstart.contract.tables.layout import TableLayout
from headstart.contract.tables.table import TransferTable, read_table
from headstart.output.errors import UserError


def read(tmp_path: Path, *rows: str, header: str = "source,target,performance", **layout: object) -> TransferTable:
    (tmp_path / "table.csv").write_text("\n".join([header, *rows]))
    least = int("metric" in header)
    return read_table(tmp_path / "table.csv", TableLayout(**layout), least=least)  # type: ignore[arg-type]


CELLS = ("a,x,0.5", "b,x,0.6", "c,x,0.7", "a,y,0.4", "b,y,-1", "c,y,0.2")


def test_a_code_for_missing_values_is_noticed_or_declared(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, *CELLS)
    assert str(error.value) == (
        "table: performance is -1 in 1 cells and 0 or above in all others, as of source 'b' on target 'y'; if it "
        "means a missing one, give --missing_values='[-1]', else --missing_values='[]'"
    )
    with pytest.raises(UserError, match="1 missing performances: source 'b' on target 'y'; complete"):
        read(tmp_path, *CELLS, missing_values=[-1])
    assert read(tmp_path, *CELLS, missing_values=[-1], missing="pairwise").holes.sum() == 1
    assert read(tmp_path, *CELLS, missing_values=[]).performances.min() == -1
    losses = [row.replace(",0.", ",-0.").replace("-1", "-0.1") for row in CELLS]
    assert read(tmp_path, *losses).performances.max() < 0


@pytest.mark.parametrize(
    ("factor", "value", "warned"),
    [(1, 1.2, "0 to 1"), (1, 45.0, "0 to 1"), (100, 101.0, "0 to 100"), (100, -3.5, "0 to 100"), (1, 0.9, "")],
)
def test_accuracies_beyond_their_scale_are_named(tmp_path: Path, factor: int, value: float, warned: str) -> None:
    rows = [
        f"{source},{target},{factor * 0.1 * i}"
        for i, (source, target) in enumerate(map(tuple, ("ax", "bx", "cx", "ay", "by")))
    ]
    notes = read(tmp_path, *rows, f"c,y,{value}").notes
    expected = f"WARNING: 1 performances outside of {warned}, where most are: {value:g} on line 7 (source 'c', target"
    assert [note.startswith(expected) for note in notes] == [True] * bool(warned)


def test_numbers_of_another_scale_are_no_accuracies(tmp_path: Path) -> None:
    rows = [f"{s},{t},{100 * i + 150}" for i, (s, t) in enumerate(map(tuple, ("ax", "bx", "ay", "by")))]
    assert read(tmp_path, *rows).notes == []


@pytest.mark.parametrize(
    ("metric", "value", "named"),
    [
        ("h_score", 1.001, "scores of h_score above classes - 1 or below 0"),
        ("H-score", -0.1, "scores of H-score above classes - 1 or below 0"),
        ("leep", 0.1, "scores of leep above 0"),
        ("nleep", 0.1, "scores of nleep above 0"),
        ("h_score", 1.0, ""),
        ("leep", 0.0, ""),
        ("log_me", 45.0, ""),
    ],
)
@pytest.mark.parametrize("by_column", [True, False])
def test_impossible_scores_are_named(tmp_path: Path, metric: str, value: float, named: str, by_column: bool) -> None:
    scores = {"a": 0.5 if metric.lower()[0] == "h" else -0.5, "b": value, "c": 0.0}
    header = "metric,source,target,score,performance" + ",classes" * by_column
    rows = [f"{metric},{s},x,{score},0.{ord(s)}" + ",2" * by_column for s, score in scores.items()]
    rows += [] if by_column else [f"num_classes,{s},x,2,0.{ord(s)}" for s in scores]
    table = read(tmp_path, *rows, header=header)
    assert [named in note for note in table.notes] == [True] * bool(named)
    assert all(f"{value:g} on line 3 (source 'b', target 'x')" in note for note in table.notes)


@pytest.mark.parametrize(
    ("metric", "scores", "saturated"),
    [
        ("h_score", (2.0, 2.0, 1.5), True),
        ("sfda", (1.0, 1.0 - 1e-12, 0.4), True),
        ("sfda", (1.0, 0.99, 0.4), False),
        ("h_score", (1.5, 1.5, 0.4), False),
        ("log_me", (2.0, 2.0, 1.0), False),
    ],
)
def test_a_metric_at_its_bound_for_several_sources_is_named(
    tmp_path: Path, metric: str, scores: tuple[float, ...], saturated: bool
) -> None:
    rows = [
        f"{metric},{source},{target},{score},0.5,3"
        for target in "xy"
        for source, score in zip("abc", scores, strict=True)
    ]
    notes = read(
        tmp_path,
        *rows[:-1],
        rows[-1].replace(",0.5,3", ",0.6,3"),
        header="metric,source,target,score,performance,classes",
    ).notes
    assert [f"{metric} is as high as it can be for two sources or more on 'x', 'y':" in note for note in notes] == (
        [True] * saturated
    )
