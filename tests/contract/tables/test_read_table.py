"""Tables in every layout against the arrays that they stand for, and their mistakes."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headstart.contract.tables.read_table import read_table, without_holes
from headstart.contract.tables.rows import TableLayout
from headstart.contract.tables.table import TransferTable, metric_titles
from headstart.output.errors import UserError

# Metrics out of the paper's order; source b is also a target, and the row of b on b does not count.
METRICS, SOURCES, TARGETS = ["log_me", "gbc"], ["a", "b", "c"], ["x", "b"]
SCORES = np.random.default_rng(0).normal(size=(2, 3, 2))
PERFORMANCES = np.array([[0.1, 0.2], [0.3, 0.99], [0.5, 0.6]])
WIDE = pd.DataFrame(
    {"source": source, "target": target, "performance": PERFORMANCES[n, t]}
    | {metric: SCORES[m, n, t] for m, metric in enumerate(METRICS)}
    for n, source in enumerate(SOURCES)
    for t, target in enumerate(TARGETS)
)
LONG = WIDE.melt(["source", "target", "performance"], METRICS, "metric", "score")
RELEASED = {
    "metric": "Transferability Metric",
    "source": "Source Architecture",
    "target": "Target Dataset",
    "score": "Transferability Metric Score",
    "performance": "Test Accuracy",
}

Read = Callable[..., TransferTable]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads a frame, the text of a CSV file, or those of several targets."""

    def write(content: pd.DataFrame | str, name: str) -> Path:
        path = tmp_path / f"{name}.csv"
        path.write_text(content if isinstance(content, str) else content.to_csv(index=False))
        return path

    def run(content: Any, chosen: Sequence[str] | None = None, minimum: int = 0, **layout: Any) -> TransferTable:
        files = {name: write(its, name) for name, its in content.items()} if isinstance(content, dict) else None
        return read_table(files or write(content, "table"), TableLayout(**layout), chosen, minimum)

    return run


def check(table: TransferTable, with_metrics: bool = True) -> None:
    """Compare a table with the arrays."""
    assert (table.sources, table.targets) == (SOURCES, TARGETS)
    assert np.argwhere(table.own).tolist() == [[1, 1]]
    assert (table.known == ~table.own).all()
    np.testing.assert_array_equal(table.performances, np.where(table.known, PERFORMANCES, 0))
    if with_metrics:
        assert table.metrics == ["gbc", "log_me"], "the paper's order"
        np.testing.assert_array_equal(table.scores, np.where(table.known, SCORES[::-1], 0))


def test_every_layout_is_the_same_table(read: Read, tmp_path: Path) -> None:
    released = LONG.rename(columns=RELEASED)
    trained = pd.concat([released.assign(**{"Trainable Backbone": kept}) for kept in (True, False)])
    trained.loc[~trained["Trainable Backbone"], "Test Accuracy"] = 0.7
    names = WIDE.rename(columns={"source": "Model", "target": "source", "performance": "top 1", "gbc": "mine"})
    signs = WIDE.assign(performance=-WIDE["performance"], gbc=-WIDE["gbc"])
    by_target = {target: rows.drop(columns="target") for target, rows in WIDE.groupby("target", sort=False)}

    check(read(WIDE))
    check(read(LONG))
    check(read(trained))
    check(read(WIDE.to_csv(index=False).replace("\n", "\n\n")))
    check(read(signs, higher_is_better={"performance": False, "gbc": False, "log_me": True}))
    check(read(WIDE.assign(seconds=1, warning="")))
    check(read(by_target))
    check(read(WIDE[["source", "target", "performance"]]), with_metrics=False)
    renamed = read(names, ["log_me", "mine"], columns={"source": "Model", "target": "source", "performance": "top 1"})
    assert (renamed.metrics, renamed.ignored_columns) == (["log_me", "mine"], [])
    np.testing.assert_array_equal(renamed.scores, np.where(renamed.known, SCORES, 0))
    WIDE.to_parquet(tmp_path / "table.parquet")
    check(read_table(tmp_path / "table.parquet"))

    assert read(WIDE.assign(mine=1, seconds=2)).ignored_columns == ["mine", "seconds"], "no names of the catalogue"
    head = read(trained, where={"Trainable Backbone": False})
    assert set(head.performances[head.known]) == {0.7}
    assert read(trained).notes == [
        "12 of 24 rows of table.csv are left out, as they do not have Trainable Backbone = True."
    ]
    assert len({read(table).sha256 for table in (WIDE, LONG, by_target)}) == 3


def test_a_file_for_each_target_with_models_at_several_sizes(read: Read) -> None:
    """The layout of timm's results: results-imagenet.csv, results-imagenet-a.csv, ..."""
    header = "model,img_size,top1,top1_err,param_count\n"
    plain = f"{header}vit,224,81.1,18.9,86.6\nvit,384,83.5,16.5,86.9\nresnet,224,79.3,20.7,25.6"
    other = f"{header}resnet,224,11.5,88.5,25.6\nvit,384,50.9,49.1,86.9\nvit,224,27,73,86.6"
    files, sizes = {"imagenet": plain, "imagenet-a": other}, {"source": ["model", "img_size"]}
    table = read(files, columns={**sizes, "performance": "top1"})
    assert (table.sources, table.targets) == (["vit, 224", "vit, 384", "resnet, 224"], ["imagenet", "imagenet-a"])
    np.testing.assert_array_equal(table.performances, [[81.1, 27], [83.5, 50.9], [79.3, 11.5]])

    table = read(files, columns={"source": "model", "performance": "top1"}, where={"img_size": 224.0})
    assert (table.sources, table.performances.tolist()) == (["vit", "resnet"], [[81.1, 27.0], [79.3, 11.5]])
    assert table.notes == [
        f"1 of 3 rows of {name}.csv are left out, as they do not have img_size = 224.0." for name in files
    ]
    worse = {"performance": False, "param_count": False}
    columns = {**sizes, "performance": "top1_err"}
    table = read({"imagenet": plain}, ["param_count"], 1, columns=columns, higher_is_better=worse)
    np.testing.assert_array_equal(table.performances[:, 0], [-18.9, -16.5, -20.7])
    np.testing.assert_array_equal(table.scores[0, :, 0], [-86.6, -86.9, -25.6])


def test_sources_are_not_judged_on_the_data_set_they_come_from(read: Read) -> None:
    rows = "net,from,target,performance\nr,x,x,1\nr,x,y,.2\nv,y,x,.3\nv,y,y,.4\nv,z,x,.5\nv,z,y,.6\nv,w,w,.7\nr,x,w,.8"
    layout = {"columns": {"source": ["net", "from"], "own": "from"}, "missing": "pairwise"}
    table = read(rows, **layout)
    assert (table.sources, table.targets) == (["r, x", "v, y", "v, z"], ["y", "x", "w"])
    assert np.argwhere(table.own).tolist() == [[0, 1], [1, 0]]
    assert np.argwhere(table.holes).tolist() == [[1, 2], [2, 2]]
    assert not read(rows, **layout, exclude_target=False).own.any()
    lost = read(rows.rpartition("\n")[0], **layout)
    assert lost.notes == ["Left out: targets from which all sources come: 'w'."]
    assert lost.targets == ["y", "x"]


def test_holes_are_named_or_kept(read: Read) -> None:
    for text in ("", "NaN", "-", "n/a", "-inf"):
        rows = WIDE.astype(str)
        rows.loc[0, "gbc"], rows.loc[4, "performance"] = text, text
        with pytest.raises(UserError) as error:
            read(rows)
        assert str(error.value) == (
            "table: 1 missing cells: metric 'gbc', source 'a', target 'x'; 1 missing performances: source 'c', target "
            "'x'; complete them, or choose metrics that have them, or choose --missing=complete|pairwise"
        )
        assert np.argwhere(read(rows, missing="pairwise").holes).tolist() == [[0, 0], [2, 0]]
        with pytest.raises(UserError, match="1 missing performances: source 'c', target 'x'; complete them"):
            read(rows, ["log_me"])
    rows = WIDE.replace({"performance": {0.1: -1}})
    [warning] = read(rows).notes
    assert warning.startswith(
        "WARNING: 1 performances are outside of 0 to 1, where most are, such as -1 on row 2 source"
    )
    assert np.argwhere(read(rows, missing_value=-1, missing="pairwise").holes).tolist() == [[0, 0]]


def test_metrics_that_rank_nothing_or_lack_a_source_are_left_out(read: Read) -> None:
    constant = WIDE.assign(num_classes=[2, 3, 2, 9, 2, 3])
    assert read(constant).left_out == {"num_classes": "the same score for all sources on every target"}
    assert read(constant.replace({"num_classes": {9: 8}}), exclude_target=False).left_out == {}
    without = WIDE.assign(leep=[1, 2, 3, 4, "", None])
    assert (read(without).left_out, read(without).metrics) == ({"leep": "no score of 'c'"}, ["gbc", "log_me"])
    with pytest.raises(
        UserError, match=r"1 metrics besides num_classes \(the same .*\) and 3 sources found; two or more"
    ):
        read(constant.drop(columns="gbc"), minimum=2)
    rows = LONG.assign(metric="nce", score=range(len(LONG)))[: len(WIDE)]
    known_by_one = pd.DataFrame([["z", "x", 0.4, "gbc", 1]], columns=LONG.columns)
    table = read(pd.concat([LONG, rows, known_by_one]), missing="complete")
    assert (table.left_out, without_holes(table, "complete", 3).sources) == ({}, SOURCES)


def test_warnings_of_performances_are_kept(read: Read) -> None:
    rows = LONG.assign(warning=["predicts one class"] + [""] * (len(LONG) - 1))
    assert read(rows).remarks()[0] == "WARNING: a on x: predicts one class"
    assert read(LONG).remarks() == read(LONG.assign(warning="")).remarks() == []


PLAIN = "source,target,performance\na,x,0.1\nb,x,0.2\na,y,0.3\nb,y,0.4\n"
SCORED = LONG.to_csv(index=False)


TWICE, TORN = "1 cells given more than once: ", "1 rows without the 3 fields of the first: "
MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    (PLAIN + "a,x,0.1", {}, f"table: {TWICE}source 'a', target 'x' on rows 2, 6; keep one row of each$"),
    ({"x": "source,performance\na,1\nb,1\na,1"}, {}, f"table: {TWICE}.* on rows x.csv 2, x.csv 4; keep"),
    (SCORED.replace("a,b,0.2", "a,b,0.7", 1), {}, "table: 1 contradicting .* 'b' has 0.7 on row 3 and 0.2 on row 9"),
    (PLAIN + "c,x,high", {}, "table: 1 wrong entries: row 6, performance is 'high' and not a finite number"),
    (PLAIN + "c,x,1_0\nd,x,1e999", {}, "table: 2 wrong entries: row 6, performance is '1_0' and not .* row 7, .*1e999"),
    (PLAIN + "c,x", {}, f"table: {TORN}row 6 has 2 fields"),
    (PLAIN + ",x,1", {}, "table: 1 wrong entries: row 6, source is empty"),
    (PLAIN.replace("performance", "target"), {}, "table: '.*table.csv' has the column 'target' twice; rename one"),
    (PLAIN.replace("performance", "acc"), {}, "table: no column 'performance'; .* has 'source', 'target', 'acc';"),
    ("metric,source,target,performance\nm,a,x,1", {}, "table: no column 'score'"),
    ("Test Accuracy," + PLAIN.replace("\n", "\n1,", 4), {}, "table: 'Test Accuracy' and 'performance' both name"),
    (PLAIN.replace(",", ";"), {}, "table: no column 'source'; .* has 'source;target;performance'; name it by columns"),
    (PLAIN[:26], {}, "table: '.*table.csv' has no rows"),
    (PLAIN, {"columns": {"sorce": "Model"}}, "columns: 'sorce' given; there are metric, source, target, score"),
    (PLAIN, {"columns": {"source": ["source", "no"]}}, "columns: source is to be 'source', 'no', but .* has 'sou"),
    (PLAIN, {"where": {"sort": 1}}, "where: 'sort' is no column of '.*table.csv', which has source, target"),
    (PLAIN, {"where": {"source": ["c", 1]}}, "table: '.*table.csv' has no rows with source = c or 1"),
    (PLAIN, {"higher_is_better": {"m": False}}, "higher_is_better: 'm' given; there are performance$"),
    (PLAIN, {"chosen": ["gbc"]}, "metrics: 'gbc' not in the table; it has none"),
    (PLAIN, {"minimum": 2}, "table: 0 metrics and 2 sources found; two or more of each are compared"),
    ("source,target,performance\na,x,1\na,y,2", {}, "table: 0 metrics and 1 sources found; two or more sources"),
    (PLAIN[:-8] + "c,y,1\nd,z,1", {}, "table: 7 missing cells: .*source 'b', target 'y'; and 4 more; complete"),
]


def test_mistakes_are_named(read: Read) -> None:
    wrong = []
    for content, options, message in MISTAKES:
        with pytest.raises(UserError) as error:
            read(content, **options)
        if not re.match(message, str(error.value)):
            wrong.append((message, str(error.value)))
    assert not wrong, wrong


def test_files_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("table.csv", "table.parquet"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00")
        with pytest.raises(UserError, match=rf"^table: '.*{name}' cannot be read \(.*\); give a"):
            read_table(tmp_path / name)
        with pytest.raises(UserError, match=rf"^table: there is no file '.*no{name}'; give a CSV .* or a Parquet file"):
            read_table(tmp_path / f"no{name}")

    def no_engine(path: Path) -> pd.DataFrame:
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    with pytest.raises(UserError, match=r"^table: .parquet needs pyarrow; pip install 'headstart\[datasets\]'$"):
        read_table(tmp_path / "table.parquet")


def test_titles_are_for_the_catalogues_spellings_and_never_two_alike() -> None:
    for expected in (
        {"gbc": "GBC", "nleep": "N-LEEP", "N-LEEP (own)": "N-LEEP (own)", "H_Score": "H-score"},
        {"gbc": "GBC", "GBC+": "GBC+", "gbc_é": "gbc_é", "g.b.c": "g.b.c"},
        {"n_leep": "n_leep", "nleep": "nleep", "logme": "LogME"},
        {"gbc(covariance=diagonal)": "GBC (covariance=diagonal)", "gbc": "GBC", "mine.own(k=2)": "mine.own(k=2)"},
        {"H-score (shrunk)": "H-score (shrunk)", "h_score_shrunk": "h_score_shrunk", "GBC": "GBC", "gbc": "gbc"},
    ):
        assert dict(zip(expected, metric_titles(list(expected)), strict=True)) == expected
