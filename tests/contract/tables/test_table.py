"""Tables in both layouts, and the mistakes in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.contract.tables.layout import TableLayout
from headstart.contract.tables.table import TransferTable, metric_titles, read_table
from headstart.output.errors import UserError

PLAIN = ["metric,source,target,score,performance"] + [
    f"{metric},{source},{target},{10 * index + row},{0.1 * (index + 1)}"
    for row, metric in enumerate(["own", "n_leep", "gbc"])
    for index, (source, target) in enumerate([("a", "x"), ("b", "x"), ("c", "x"), ("a", "b"), ("c", "b")])
]
RELEASED = [
    ",Transferability Metric,Source Architecture,Transferability Metric Score,Test Accuracy,Trainable Backbone,"
]
RELEASED[0] += "Target Dataset"
RELEASED += [
    f"{index},{metric},{source},{(1 if trained else -1) * (1 + (source == 'b'))},{0.5 if trained else 0.4},{trained},t"
    for index, (metric, source, trained) in enumerate(
        (metric, source, trained) for metric in ("hscore", "gbc") for source in "ab" for trained in (True, False)
    )
]

Read = Callable[..., TransferTable]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def run(
        lines: list[str],
        chosen: list[str] | None = None,
        least: int = 2,
        performances: str | None = None,
        **layout: Any,
    ) -> TransferTable:
        path = tmp_path / "table.csv"
        path.write_text("\n".join(lines) + "\n")
        return read_table(path, TableLayout(**layout), chosen, least, performances)

    return run


def test_plain_layout(read: Read) -> None:
    table = read(PLAIN)
    assert (table.sources, table.targets) == (["a", "b", "c"], ["x", "b"])
    assert table.metrics == ["gbc", "n_leep", "own"], "the paper's come first, in its order"
    assert np.argwhere(table.own).tolist() == [[1, 1]]
    np.testing.assert_array_equal(table.scores[0], [[2, 32], [12, 0], [22, 42]])
    np.testing.assert_allclose(table.performances, [[0.1, 0.4], [0.2, 0], [0.3, 0.5]])
    assert table.titles == ["GBC", "N-LEEP", "own"]


@pytest.mark.parametrize(("trainable", "score", "performance"), [(True, 1, 0.5), (False, -1, 0.4)])
def test_released_layout(read: Read, trainable: bool, score: float, performance: float) -> None:
    table = read(RELEASED, trainable=trainable)
    assert table.metrics == ["gbc", "hscore"]
    assert table.scores[..., 0].tolist() == [[score, 2 * score]] * 2
    assert (table.performances == performance).all()
    assert table.ignored_columns == []


def test_columns_that_are_not_needed_are_reported(read: Read) -> None:
    assert read([f"{line},{'seconds' if line == PLAIN[0] else 1}" for line in PLAIN]).ignored_columns == ["seconds"]


def test_own_cells_count_only_where_the_target_is_kept(read: Read) -> None:
    own = [f"{metric},b,b,99,0.9" for metric in ("own", "n_leep", "gbc")]
    assert read(PLAIN + own).scores.max() < 99
    with_own = read(PLAIN + own, exclude_target=False)
    assert not with_own.own.any()
    assert with_own.scores[0, 1, 1] == 99
    with pytest.raises(UserError, match=r"3 missing cells: metric 'gbc', source 'b', target 'b'; "):
        read(PLAIN, exclude_target=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "table: 1 missing cells: metric 'gbc', source 'c', target 'b'"),
        (
            lambda lines: [*lines, lines[1]],
            "1 cells given more than once: metric 'own', source 'a', target 'x' on lines 2",
        ),
        (lambda lines: [*lines[:-1], "gbc,c,b,high,0.5"], "1 wrong entries: line 16, score is 'high'"),
        (lambda lines: [*lines[:-1], "gbc,c,b,nan,0.5"], "1 missing cells: metric 'gbc', source 'c', target 'b'; "),
        (
            lambda lines: [*lines[:-1], "gbc,c,b,-Inf,0.5"],
            "1 missing cells: metric 'gbc', source 'c', target 'b'; comp",
        ),
        (lambda lines: [*lines[:-1], "gbc,c,b,,0.5"], "1 missing cells: metric 'gbc', source 'c', target 'b'; "),
        (lambda lines: [*lines[:-1], "gbc,c,b,1,"], "table: 1 missing performances: source 'c' on target 'b'"),
        (lambda lines: [*lines[:-1], "gbc,c,b,1"], "1 wrong entries: line 16, 4 fields where the first line has 5"),
        (
            lambda lines: [lines[0], f"{lines[1]},9", *lines[2:-1], "gbc,c,b,high,0.5"],
            "2 wrong entries: line 2, 6 fields where the first line has 5; line 16, score is 'high'",
        ),
        (
            lambda lines: [*lines[:-2], lines[1]],
            "table: 2 missing cells: metric 'gbc', source 'a', target 'b'; metric 'gbc', source 'c', target 'b'; "
            "also 1 cells given more than once: metric 'own', source 'a', target 'x' on lines 2, 15",
        ),
        (
            lambda lines: [lines[0], "own,a,x,0,0.7", *lines[2:]],
            "table: 1 contradicting performances: source 'a' on target 'x' has 0.7 on line 2 and 0.1 on line 7",
        ),
        (lambda lines: [*lines[:-1], "gbc,,b,1,0.5"], "line 16, source is empty"),
        (
            lambda lines: [*lines[:-1], "gbc,c,b,1,0.6"],
            "1 contradicting performances: source 'c' on target 'b' has 0.5",
        ),
        (lambda lines: ["method" + lines[0][6:], *lines[1:]], "no column 'metric' or 'Transferability Metric' in"),
        (lambda lines: [lines[0] + ",Test Accuracy", *lines[1:]], "columns 'performance', 'Test Accuracy' both"),
        (lambda lines: lines[:1], "has no rows"),
        (lambda lines: [], "which has nothing"),
        (lambda lines: lines[:6], "1 metrics and 3 sources found; two or more"),
    ],
)
def test_mistakes_are_named(read: Read, change: Callable[[list[str]], list[str]], message: str) -> None:
    with pytest.raises(UserError) as error:
        read(change(PLAIN))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_truth_is_named(read: Read) -> None:
    with pytest.raises(UserError, match="line 2, Trainable Backbone is 'yes' and neither True nor False"):
        read([RELEASED[0], RELEASED[1].replace("True", "yes"), *RELEASED[2:]])


def test_of_many_mistakes_the_first_are_named(read: Read) -> None:
    lines = [PLAIN[0], *(f"{metric},s{index},t,1,0.5" for metric in ("full", "empty") for index in range(25))]
    with pytest.raises(UserError, match=r"24 missing cells: .*; and 21 more; complete them") as error:
        read(lines[:27])
    assert str(error.value).count("metric 'empty', source") == 3


def test_chosen_metrics_alone_count(read: Read) -> None:
    table = read([PLAIN[0], "own,a,x,high,", *PLAIN[3:]], chosen=["gbc", "n_leep"])
    assert table.metrics == ["gbc", "n_leep"]
    with pytest.raises(UserError, match=r"metrics: 'leep' not in the table; it has own, n_leep, gbc$"):
        read(PLAIN, chosen=["gbc", "leep"])


def test_constant_metrics_are_left_out(read: Read) -> None:
    """One is 2 for all sources of target x and 3 for those of b; the score of b as its own source does not count."""
    constant = [f"num_classes,{source},x,2,{value}" for source, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))]
    constant += ["num_classes,a,b,3,0.4", "num_classes,b,b,9,1", "num_classes,c,b,3,0.5"]
    table = read(PLAIN + constant)
    assert table.metrics == ["gbc", "n_leep", "own"]
    assert table.scores.shape == (3, 3, 2)
    assert table.left_out == {"num_classes": "the same score for all sources on every target"}
    constant[-1] = "num_classes,c,b,4,0.5"
    assert read(PLAIN + constant).left_out == {}
    with pytest.raises(UserError, match=r"1 metrics besides m \(the same score for all sources .*\) and 2 sources"):
        read([PLAIN[0], "m,a,t,1,0.1", "m,b,t,1,0.2", "other,a,t,1,0.1", "other,b,t,2,0.2"])


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "table.csv", tmp_path / "missing.csv"):
        with pytest.raises(UserError, match=path.name):
            read_table(path)


@pytest.mark.parametrize(
    ("names", "titles"),
    [
        (["gbc", "nleep", "N-LEEP (own)", "H_Score"], ["GBC", "N-LEEP", "N-LEEP (own)", "H-score"]),
        (["gbc", "GBC+", "gbc_é", "g.b.c"], ["GBC", "GBC+", "gbc_é", "g.b.c"]),
        (["n_leep", "nleep", "logme"], ["n_leep", "nleep", "LogME"]),
        (["gbc(covariance=diagonal)", "gbc", "mine.own(k=2)"], ["GBC (diagonal)", "GBC", "mine.own(k=2)"]),
        (
            ["n_leep(components_per_class=2, pca=0.9)", "gbc(pca=null, variant=released)"],
            ["N-LEEP (components per class 2, pca 0.9)", "GBC (pca null, released)"],
        ),
        (["H-score (shrunk)", "h_score_shrunk", "GBC", "gbc"], ["H-score (shrunk)", "h_score_shrunk", "GBC", "gbc"]),
    ],
)
def test_titles_are_for_the_catalogues_spellings_and_never_two_alike(names: list[str], titles: list[str]) -> None:
    assert metric_titles(names) == titles


def test_only_the_papers_spellings_take_its_order(read: Read) -> None:
    assert read([line.replace("n_leep", "gbc+") for line in PLAIN]).metrics == ["gbc", "own", "gbc+"]


COLUMNS = {"source": "Model", "score": "Zahl", "performance": "target"}
MAPPED = [line.replace("source", "Model").replace("target,score,performance", "Dataset,Zahl,target") for line in PLAIN]


def test_columns_may_be_called_otherwise(read: Read) -> None:
    expected, renamed = read(PLAIN), read(MAPPED, columns={**COLUMNS, "target": "Dataset"})
    assert (renamed.metrics, renamed.sources, renamed.targets) == (expected.metrics, expected.sources, expected.targets)
    np.testing.assert_array_equal(renamed.scores, expected.scores)
    np.testing.assert_array_equal(renamed.performances, expected.performances)
    both = [f"{','.join([*line.split(',')[:2], 'target'])},{line.split(',', 2)[2]}" for line in PLAIN]
    both[0] = both[0].replace("target,target", "target,Dataset")
    assert read(both, columns={"target": "Dataset"}).targets == expected.targets


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sorce": "Model"}, "columns: 'sorce' given; there are metric, source, target, score, performance"),
        ({"source": "model"}, "columns: source is to be 'model', but the first line has 'metric', 'Model', 'Dataset'"),
        (COLUMNS, "columns: target and performance are both 'target'; each is a column of its own"),
        ({**COLUMNS, "target": "Model"}, "columns: source and target are both 'Model'; each is a column"),
        ({"source": "Model", "target": "Dataset", "score": "Zahl"}, "no column 'performance' or 'Test Mean IoU' or"),
    ],
)
def test_mistakes_in_names_of_columns(read: Read, columns: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as error:
        read(MAPPED, columns=columns)
    assert message in str(error.value)


def test_a_table_without_metrics(read: Read) -> None:
    bare = ["source,target,performance", "a,x,0.1", "b,x,0.2", "a,b,0.4", "b,b,0.9"]
    table = read(bare, least=0)
    assert (table.metrics, table.scores.shape, np.argwhere(table.own).tolist()) == ([], (0, 2, 2), [[1, 1]])
    np.testing.assert_array_equal(table.performances, [[0.1, 0.4], [0.2, 0]])
    with pytest.raises(UserError, match="no column 'metric' or 'Transferability Metric' in the first line"):
        read(bare)
    with pytest.raises(UserError, match=r"table: 1 missing cells: source 'b', target 'x'; complete them, or"):
        read([*bare[:2], *bare[3:]], least=0, exclude_target=False)
    with pytest.raises(UserError, match="no column 'score' or"):
        read(["metric,source,target,performance", "m,a,x,0.1"], least=0)
    with pytest.raises(UserError, match="metrics: 'gbc' not in the table; it has none"):
        read(bare, least=0, chosen=["gbc"])


@pytest.mark.parametrize("kept", ["none", "empty", "wrong"])
def test_performances_of_a_file_of_their_own(read: Read, tmp_path: Path, kept: str) -> None:
    expected = read(PLAIN)
    known = {tuple(line.split(",")[1:3]): line.rpartition(",")[2] for line in PLAIN[1:]}
    (tmp_path / "performances.csv").write_text(
        "\n".join(
            ["source,target,performance,note", *(f"{s},{t},{value}," for (s, t), value in known.items()), "z,z,1,"]
        )
    )
    own = {"none": "", "empty": ",", "wrong": ",9 %"}[kept]
    lines = [line.rpartition(",")[0] + own for line in PLAIN]
    lines[0] = PLAIN[0].rpartition(",")[0] if kept == "none" else PLAIN[0]
    table = read(lines, performances=str(tmp_path / "performances.csv"))
    np.testing.assert_array_equal(table.performances, expected.performances)
    np.testing.assert_array_equal(table.scores, expected.scores)
    (tmp_path / "performances.csv").write_text("source,target,performance\na,x,0.1\n")
    with pytest.raises(UserError, match=r"^table: \d missing performances: source 'a' on target 'b'; source 'b' on "):
        read(lines, performances=str(tmp_path / "performances.csv"))


def test_warnings_of_performances_are_kept(read: Read, tmp_path: Path) -> None:
    assert read(PLAIN).remarks() == read([PLAIN[0] + ",warning", *(f"{line}," for line in PLAIN[1:])]).remarks()
    source, target = PLAIN[1].split(",")[1:3]
    remark = f"WARNING: {source} on {target}: predicts nothing."
    lines = [f"{line},predicts nothing." if f",{source},{target}," in line else f"{line}," for line in PLAIN[1:]]
    assert read([PLAIN[0] + ",warning", *lines]).remarks()[0] == remark

    # Those of other performances are not theirs.
    pairs = {tuple(line.split(",")[1:3]) for line in PLAIN[1:]}
    rows = [f"{source},{target},0.5,{'none'[: 4 * (source == 'a')]}" for source, target in sorted(pairs)]
    (tmp_path / "performances.csv").write_text("\n".join(["source,target,performance,warning", *rows]))
    table = read([PLAIN[0] + ",warning", *lines], performances=str(tmp_path / "performances.csv"))
    warned = [note for note in table.notes if note.endswith(": none")]
    assert warned == [f"WARNING: {source} on {target}: none" for source, target in sorted(pairs) if source == "a"]


def test_other_performances_are_another_table(read: Read, tmp_path: Path) -> None:
    digests = set()
    for value in (0.1, 0.2):
        pairs = {tuple(line.split(",")[1:3]) for line in PLAIN[1:]}
        rows = [f"{source},{target},{value}" for source, target in sorted(pairs)]
        (tmp_path / "performances.csv").write_text("\n".join(["source,target,performance", *rows]))
        digests.add(read(PLAIN, performances=str(tmp_path / "performances.csv")).sha256)
    assert len(digests | {read(PLAIN).sha256}) == 3
