"""Tables in the layouts in which they are published, each against the plain table that it stands for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.contract.tables.layout import TableLayout
from headstart.contract.tables.table import TransferTable, read_table, without_holes
from headstart.output.errors import UserError

SOURCES, TARGETS = ["net, a", "net, b", "deep, a"], ["b", "x", "y"]
# The cell of each source that comes from a target is left out.
PERFORMANCES = np.array([[0.1, 0.2, 0.3], [np.nan, 0.5, 0.6], [0.7, 0.8, 0.9]])
LONG = ["net,from,on,acc"] + [
    f"{source.replace(', ', ',')},{target},{value}"
    for source, row in zip(SOURCES, PERFORMANCES, strict=True)
    for target, value in zip(TARGETS, row, strict=True)
    if not np.isnan(value)
]
WIDE = ["id,net,from,b,x,y,mean"] + [
    f"{index},{source.replace(', ', ',')},{','.join('' if np.isnan(v) else str(v) for v in row)},0.5"
    for index, (source, row) in enumerate(zip(SOURCES, PERFORMANCES, strict=True))
]
NAMED = {"columns": {"source": ["net", "from"], "target": "on", "performance": "acc"}, "own": "from"}
Read = Callable[..., TransferTable]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def run(lines: list[str], least: int = 0, performances: str | None = None, **layout: Any) -> TransferTable:
        (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
        return read_table(tmp_path / "table.csv", TableLayout(**layout), None, least, performances)

    return run


def check(table: TransferTable) -> None:
    assert (table.sources, table.targets) == (SOURCES, TARGETS)
    assert np.argwhere(table.own).tolist() == [[1, 0]]
    assert (table.known == ~table.own).all()
    np.testing.assert_array_equal(table.performances, np.nan_to_num(PERFORMANCES))


def test_a_source_of_several_columns_is_not_judged_on_its_own_data_set(read: Read) -> None:
    check(read(LONG, **NAMED))
    with_own = [*LONG, "net,b,b,1"]
    check(read(with_own, **NAMED))
    with pytest.raises(UserError, match=r"^table: 1 missing cells: source 'net, b', target 'b'; complete them"):
        read(LONG, columns=NAMED["columns"])
    assert not read(with_own, **NAMED, exclude_target=False).own.any()


def test_one_column_for_each_target(read: Read) -> None:
    layout = {"columns": {"source": ["net", "from"]}, "own": "from"}
    check(read(WIDE, **layout, target_columns=["b", "x", "y"]))
    table = read(WIDE, **layout, target_columns=["b", "...", "y"])
    check(table)
    assert table.ignored_columns == ["id", "mean"]


def test_one_column_for_each_metric(read: Read) -> None:
    lines = ["source,target,performance,gbc,knn"] + [
        f"{s},{t},0.{s}{t},{s + t},{s * t}" for s in (1, 2, 3) for t in (4, 5)
    ]
    table = read(lines, least=2, metric_columns=["gbc", "knn"])
    assert table.metrics == ["gbc", "knn"]
    np.testing.assert_array_equal(table.scores, [[[5, 6], [6, 7], [7, 8]], [[4, 5], [8, 10], [12, 15]]])
    np.testing.assert_array_equal(table.performances, [[0.14, 0.15], [0.24, 0.25], [0.34, 0.35]])


def test_wide_scores_take_performances_of_a_file(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "performances.csv"
    path.write_text(
        "model,data,acc\n"
        + "\n".join(f"{s},{t},0.{i}" for i, (s, t) in enumerate(map(tuple, ("ax", "ay", "bx", "by"))))
    )
    lines = ["metric,source,x,y", "m,a,1,2", "m,b,3,5"]
    columns = {"source": "model", "target": "data", "performance": "acc"}
    wide = {"target_columns": ["x", "y"]}
    table = read(lines, 1, str(path), **wide, performance_columns=columns)
    np.testing.assert_array_equal(table.scores, [[[1, 2], [3, 5]]])
    np.testing.assert_array_equal(table.performances, [[0.0, 0.1], [0.2, 0.3]])
    with pytest.raises(UserError, match="cells are scores; give --performances"):
        read(lines, 1, **wide)
    with pytest.raises(UserError, match="performances: no column source or target"):
        read(lines, 1, str(path), **wide)
    with pytest.raises(UserError, match="cells are performances, and this command needs scores"):
        read(["source,x,y", "a,1,2", "b,3,5"], 1, **wide)


REPEATED = ["source,target,performance,seed,val"] + [
    f"{source},{target},{performance},{seed},{val}"
    for source, target, performance, seed, val in [
        *(("a", "x", 0.2, 0, 0.1), ("a", "x", 0.4, 1, 0.9), ("a", "x", 0.9, 2, 0.9)),
        *(("b", "x", 0.5, 0, 0.3), ("a", "y", 0.1, 0, 0.2), ("b", "y", 0.3, 0, 0.6), ("b", "y", 0.7, 1, 0.6)),
    ]
]


def test_rows_of_a_cell_are_averaged_over_seeds_or_the_best_is_chosen(read: Read) -> None:
    mean = read(REPEATED, mean_over=["seed"])
    np.testing.assert_allclose(mean.performances, [[0.5, 0.1], [0.5, 0.5]])
    assert mean.notes == [
        "2 cells are means over rows that differ in seed, of 1 to 3 rows each, such as source 'a', target 'x'; rows "
        "without a value do not count."
    ]
    best = read(REPEATED, best_by="val")
    np.testing.assert_allclose(best.performances, [[0.4, 0.1], [0.5, 0.3]])
    assert best.notes == ["2 cells are the best of up to 3 rows by val, such as source 'a', target 'x'."]
    assert read(REPEATED, best_by="performance").notes[0].endswith("reported value itself: an optimistic choice.")
    with pytest.raises(
        UserError, match=r"cells with rows that do not differ in .* mean_over: source 'a', target 'x' on"
    ):
        read([*REPEATED, "a,x,0.3,1,0"], mean_over=["seed"])
    with pytest.raises(
        UserError, match=r"2 cells given more than once: .*; name what they differ in by best_by or mean"
    ):
        read(REPEATED)
    with pytest.raises(UserError, match="best_by, mean_over: both given"):
        read(REPEATED, best_by="val", mean_over=["seed"])


def test_rows_are_chosen_and_names_changed(read: Read) -> None:
    lines = ["source,target,performance,kind", "a,X,1,linear", "b,X,2,linear", "a,X,5,knn", "b,X,4,knn"]
    table = read(lines, where={"kind": "knn"}, names={"X": "pets", "a": "small"})
    assert (table.sources, table.targets, table.performances.tolist()) == (["small", "b"], ["pets"], [[5], [4]])
    assert read(lines, where={"kind": ["knn"], "source": ["a", "b"]}).performances.tolist() == [[5], [4]]
    with pytest.raises(UserError, match=r"has no rows with kind = mlp; every row is a cell"):
        read(lines, where={"kind": "mlp"})
    with pytest.raises(UserError, match=r"^where: 'sort' is no column of the table; the first line has 'source',"):
        read(lines, where={"sort": "mlp"})


def test_torn_lines_are_left_out_by_their_numbers(read: Read) -> None:
    lines = ["source,target,performance", "a,x,1", "x,1", "b,x,2"]
    with pytest.raises(
        UserError, match=r"1 wrong entries: line 3, 2 fields .*; mend them, or leave lines out by skip_li"
    ):
        read(lines)
    table = read(lines, skip_lines=[3])
    assert table.performances.tolist() == [[1], [2]]
    assert table.notes == ["Lines of the table that were left out: 3."]
    with pytest.raises(UserError, match=r"^skip_lines: 9 is no line with an entry"):
        read(lines, skip_lines=[3, 9])


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({**NAMED, "own": "home"}, "own: 'home' is no column of the table; the first line has 'net', 'from'"),
        ({"columns": {"source": ["net", "nat"]}}, "columns: source is to be 'nat', but the first line has 'net'"),
        ({"target_columns": ["...", "x"]}, r"target_columns: '\.\.\.' is first or last; it stands between two columns"),
        ({"target_columns": ["on", "on"]}, "target_columns: a column is named twice"),
        ({"target_columns": ["on"], "metric_columns": ["acc"]}, "target_columns, metric_columns: both given"),
    ],
)
def test_mistakes_in_a_layout(read: Read, layout: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        read(LONG, **layout)


def test_a_metric_that_does_not_know_a_source_is_left_out(read: Read) -> None:
    lines = ["metric,source,target,score,performance"]
    lines += [f"{m},{s},{t},{i}{s},0.{s}" for i, m in enumerate(("one", "two")) for s in (1, 2, 3) for t in "xy"]
    partly = [*lines, *(f"accuracy,{s},{t},7{s},0.{s}" for s in (1, 2) for t in "xy"), "accuracy,3,x,,0.3"]
    table = read(partly, 2)
    assert (table.metrics, table.left_out) == (["one", "two"], {"accuracy": "no score of '3'"})
    with pytest.raises(UserError, match="1 missing cells: metric 'accuracy', source '3', target 'y'"):
        read([*partly[:-1], "accuracy,3,x,7,0.3"], 2)


def test_codes_are_found_before_rows_are_averaged_and_in_a_file_of_performances(read: Read, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="performance is -1 in 1 cells and 0 or above in all others"):
        read([*REPEATED, "b,x,-1,1,0.1"], mean_over=["seed"])
    cleaned = read([*REPEATED, "b,x,-1,1,0.1"], mean_over=["seed"], missing_values=[-1])
    np.testing.assert_allclose(cleaned.performances, [[0.5, 0.1], [0.5, 0.5]])

    lines = [
        "metric,source,target,score",
        *(f"m,{s},{t},{i}" for i, (s, t) in enumerate(map(tuple, ("ax", "ay", "bx", "by", "cx", "cy")))),
    ]
    path = tmp_path / "performances.csv"
    path.write_text("source,target,performance\na,x,0.1\na,y,-1\nb,x,\nb,y,0.4\nc,x,0.5\nc,y,0.6\n")
    with pytest.raises(UserError, match="performance is -1 in 1 cells"):
        read(lines, 1, str(path))
    whole = read(lines, 1, str(path), missing_values=[-1], missing="pairwise")
    assert np.argwhere(whole.holes).tolist() == [[0, 1], [1, 0]]


def test_performances_are_averaged_over_the_rows_of_all_metrics(read: Read) -> None:
    """A seed that one metric lacks counts for the performances of the other, too."""
    rows = ["one,a,x,1,0.2,0", "one,a,x,3,0.4,1", "two,a,x,5,0.2,0", "one,b,x,7,0.5,0", "two,b,x,4,0.5,0"]
    table = read(["metric,source,target,score,performance,seed", *rows], 2, mean_over=["seed"])
    np.testing.assert_allclose(table.performances, [[0.3], [0.5]])
    np.testing.assert_allclose(table.scores[:, :, 0], [[2, 7], [5, 4]])


def test_a_source_that_one_of_many_metrics_knows_costs_no_metric(read: Read) -> None:
    lines = ["metric,source,target,score,performance"]
    lines += [f"m{m},{s},{t},{m}{s},0.{s}" for m in (1, 2, 3) for s in (1, 2, 3) for t in "xy"]
    table = read([*lines, "m1,9,x,7,0.9", "m1,9,y,7,0.9"], 2, missing="complete")
    assert (table.metrics, table.left_out) == (["m1", "m2", "m3"], {})
    assert without_holes(table, "complete", 2).sources == ["1", "2", "3"]


def test_targets_that_rank_nothing_are_named(read: Read) -> None:
    lines = ["source,from,target,performance", "a,x,x,1", "b,x,x,2", "c,y,x,3", "a,x,z,1", "b,x,z,2", "c,y,z,3"]
    table = without_holes(read(lines, own="from"), "refuse", 0)
    assert (table.targets, table.notes) == (["z"], ["Left out, as there is nothing to rank: 'x'."])
    gone = read([*lines[:3], *lines[4:]], own="from")
    assert gone.notes == ["Left out: targets from which all sources come: 'x'."]


def test_columns_that_are_there_twice_or_in_another_order_are_named(read: Read) -> None:
    for layout, message in (
        ({"target_columns": ["x", "...", "b"]}, "target_columns: 'x' comes after 'b' in the first line"),
        ({"columns": {"source": []}}, r"columns: source is to be \[\], no column"),
    ):
        with pytest.raises(UserError, match=message):
            read(["source,b,c,x", "s,1,2,3"], **layout)
    for twice in ({"own": "b"}, {"columns": {"performance": "b"}}):
        with pytest.raises(UserError, match=r"'b'.* twice"):
            read(["source,target,performance,b,b", "s,t,0,1,2"], **twice)


def test_a_column_called_classes_that_holds_something_else_does_not_count(read: Read) -> None:
    lines = ["source,target,performance,classes", "a,x,0.1,cat", "b,x,0.2,dog"]
    assert read(lines).performances.tolist() == [[0.1], [0.2]]
    with pytest.raises(UserError, match="classes is 'cat' and not a finite number"):
        read(lines, columns={"classes": "classes"})


def test_metrics_that_contradict_each_other_in_a_seed_are_named(read: Read) -> None:
    lines = ["metric,source,target,score,performance,seed"]
    lines += [f"{m},{s},x,{i}{s},0.{s},{seed}" for i, m in enumerate(("one", "two")) for s in (1, 2) for seed in (0, 1)]
    with pytest.raises(
        UserError, match=r"1 contradicting performances: source '2' on target 'x' has 0\.2 and 0\.5 on line"
    ):
        read([*lines[:-1], "two,2,x,12,0.5,1"], 2, mean_over=["seed"])


def test_classes_of_unknown_targets_are_named(read: Read) -> None:
    with pytest.raises(UserError, match="classes: 'y' given; the targets are x"):
        read(["source,target,performance", "a,x,0.1", "b,x,0.2"], classes={"y": 2})
