"""Metrics by name and by import path, and the mistakes in both."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart import evaluate
from headstart.contract.tables.table import metric_titles
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS, SELECTION_METRICS, digest_metrics, find_metrics
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.output.errors import UserError
from headstart.output.markup import escape_markdown

FEATURES, LABELS = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 2, 2])
HEAD = np.full((6, 4), 0.25)
SOURCE = """
import numpy as np

def spread(features, labels):
    means = [features[labels == label].mean(0) for label in sorted(set(labels))]
    return np.var(means)

def with_head(labels, probabilities, *, seed=7, scale=2):
    return scale * probabilities.sum() + len(labels) + 1000 * seed

def writes(features, labels):
    features[0] = 1
    return 0.0

def refuses(features):
    raise ValueError("too\\n  few")

def no_number(features, labels):
    return "high"

def many(features, labels, **options):
    return len(options)

def other(features, classes):
    return 1

def nothing():
    return 1

value = 3
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module of a name of its own, for modules are imported once in a process."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    (tmp_path / f"{name}_broken.py").write_text("import sys\nsys.exit('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def compute(path: str, head: bool = True) -> float:
    [metric] = find_metrics([path]).values()
    assert metric.title == path
    return float(metric.compute(Inputs(FEATURES, LABELS, HEAD if head else None, seed=3)))


def test_defaults_leave_out_what_is_slow() -> None:
    slow, facts = {"linear_probe", "pactran"}, {"source_accuracy", "parameters"}
    assert set(METRICS) - set(DEFAULT_METRICS) == {*slow, *facts, "etran", "ncti"}
    assert set(DEFAULT_METRICS) - set(SELECTION_METRICS) == {"n_leep", "knn", "parc", "sfda"}
    assert list(find_metrics(["leep", "gbc"])) == ["leep", "gbc"]


def test_a_function_is_given_what_its_arguments_name(mine: str) -> None:
    assert compute(f"{mine}.spread") == pytest.approx(np.var([[2, 3], [4, 5], [9, 10]]))
    assert compute(f"{mine}.with_head") == 2 * 6 + 6 + 1000 * 3
    assert "probabilities" in find_metrics([f"{mine}.with_head"])[f"{mine}.with_head"].data
    assert compute(f"{mine}.many") == 0
    with pytest.raises(ValueError, match="the model has no source head"):
        compute(f"{mine}.with_head", head=False)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("writes", "line 12: ValueError: assignment destination is read-only"),
        ("refuses", "line 16: ValueError: too few"),
        ("no_number", "ValueError: could not convert string to float: 'high'"),
    ],
)
def test_an_error_is_a_reason_in_one_line(mine: str, name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        compute(f"{mine}.{name}")
    assert not isinstance(error.value, UserError)
    assert "\n" not in str(error.value)
    assert FEATURES[0, 0] == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}.none", "cannot be imported (AttributeError: "),
        ("{}_broken.f", "cannot be imported (SystemExit: no)"),
        ("no_such_module.f", "cannot be imported (ModuleNotFoundError: "),
        ("{}.value", "cannot be imported (TypeError: "),
        ("{}.other", "takes features, classes; a metric takes some of features, labels, probabilities, seed"),
        ("{}.nothing", "takes nothing; a metric takes some of features, labels, probabilities, seed"),
    ],
)
def test_unknown_metrics_are_named(mine: str, name: str, message: str) -> None:
    path = name.format(mine)
    with pytest.raises(UserError) as error:
        find_metrics([path])
    assert str(error.value).startswith(f"metrics: {path} {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "name", "title", "expected"),
    [
        ({"gbc": {"variant": "released"}}, "gbc(variant=released)", "GBC (released)", {"variant": "released"}),
        (
            {"gbc": {"pca": None, "covariance": "diagonal"}},
            "gbc(covariance=diagonal, pca=null)",
            "GBC (diagonal, pca null)",
            None,
        ),
        (
            {"n_leep": {"components_per_class": 2}},
            "n_leep(components_per_class=2)",
            "N-LEEP (components per class 2)",
            None,
        ),
        ({"knn": {"neighbours": 1}}, "knn(neighbours=1)", None, None),
        (
            {"pactran": {"prior_variance": 100}},
            "pactran(prior_variance=100)",
            "PACTran (prior variance 100, released)",
            {"prior_variance": 100},
        ),
        ({"gbc": {}}, "gbc", "GBC (textbook)", {}),
        ({"parc": {}}, "parc", "PARC (published)", {}),
        ({"parc": {"components": 3}}, "parc(components=3)", "PARC (components 3, published)", {"components": 3}),
        ({"knn": {}}, "knn", "kNN", {}),
    ],
)
def test_options_are_those_of_the_function(given: Any, name: str, title: str | None, expected: Any) -> None:
    [(key, metric)] = find_metrics([given]).items()
    [(plain, options)] = given.items()
    assert key == name
    assert title in (None, metric.title)
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    inputs = Inputs(generator.standard_normal((60, 5)) + labels[:, None], labels)
    functions: dict[str, Callable[..., float]] = {
        function.__name__.removesuffix("_accuracy"): function for function in (gbc, n_leep, knn_accuracy, pactran, parc)
    }
    assert metric.compute(inputs) == functions[plain](inputs.features, labels, **options)
    if options:
        assert metric.compute(inputs) != METRICS[plain].compute(inputs)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gbc": {"variants": "released"}}, "gbc: there is no option 'variants'; it has covariance, pca, variant"),
        ({"h_score": {"shrinkage": True}}, "h_score: there is no option 'shrinkage'; it has no options"),
        ({"n_leep": {"seed": 1}}, "n_leep: there is no option 'seed'; it has pca, components_per_class"),
        ({"gbc": {"variant": "other"}}, "gbc: variant is 'other': Input should be 'textbook' or 'released'"),
        ({"n_leep": {"components_per_class": "3"}}, "n_leep: components_per_class is '3': Input should be a valid int"),
        ({"gbcs": {"variant": "released"}}, "'gbcs' is no metric (closest: gbc); there are "),
        ({"gbc": "released"}, "{'gbc': 'released'} is no metric; give a name, or {name: {option: value}}"),
        ({"gbc": {}, "leep": {}}, "{'gbc': {}, 'leep': {}} is no metric; give a name"),
        (3, "3 is no metric; give a name"),
    ],
)
def test_options_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        find_metrics([given])
    assert str(error.value).startswith(f"metrics: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "name", "title"),
    [
        ({"etran": {"variant": "released"}}, "etran", "ETran (released)"),
        ({"n_leep": {"fits": 8}}, "n_leep", "N-LEEP"),
        ({"pactran": {"penalty_share": 1}}, "pactran", "PACTran (released)"),
        ({"gbc": {"pca": None, "covariance": "spherical"}}, "gbc(pca=null)", "GBC (pca null, textbook)"),
        # The diagonal form is the same in both variants.
        ({"gbc": {"covariance": "diagonal", "variant": "released"}}, "gbc(covariance=diagonal)", "GBC (diagonal)"),
    ],
)
def test_options_without_an_effect_make_no_other_metric(given: Any, name: str, title: str) -> None:
    [(key, metric)] = find_metrics([given]).items()
    assert (key, metric.title) == (name, title)
    with pytest.raises(UserError, match="none of them twice"):
        find_metrics([given, key if "(" not in name else given])


def test_readers_of_a_table_give_metrics_with_options_the_same_titles() -> None:
    plain = {"gbc": {"covariance": "diagonal"}, "parc": {"components": 32}, "pactran": {"prior_variance": 5}}
    given = {**plain, "etran": {"variant": "published"}, "n_leep": {"fits": 2, "pca": 0.9}}
    metrics = find_metrics([{name: options} for name, options in given.items()])
    assert metric_titles(list(metrics)) == [metric.title for metric in metrics.values()]


def test_a_metric_comes_once_with_the_same_options() -> None:
    find_metrics(["gbc", {"gbc": {"variant": "released"}}])
    options = {"variant": "released", "covariance": "diagonal"}
    with pytest.raises(UserError, match="none of them twice"):
        find_metrics([{"gbc": options}, {"gbc": dict(reversed(options.items()))}])


def test_options_of_a_function_of_the_users_own(mine: str) -> None:
    path = f"{mine}.with_head"
    [(name, metric)] = find_metrics([{path: {"scale": 5}}]).items()
    assert (name, metric.title) == (f"{path}(scale=5)", f"{path}(scale=5)")
    assert metric.compute(Inputs(FEATURES, LABELS, HEAD, seed=3)) == 5 * 6 + 6 + 1000 * 3
    assert digest_metrics([name]) == digest_metrics([path])
    assert list(find_metrics([{path: {"scale": 2}}])) == [path]
    # Further arguments of a function can be options.
    assert find_metrics([{f"{mine}.other": {"classes": 2}}])[f"{mine}.other(classes=2)"].compute(
        Inputs(FEATURES, LABELS)
    )
    with pytest.raises(UserError, match=r"with_head: there is no option 'bias'; it has scale"):
        find_metrics([{path: {"bias": 5}}])


@pytest.mark.parametrize("command", ["transferability", "target-selection"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logme", "'logme' is no metric (closest: log_me); there are gbc, leep, n_leep, "),
        ("???", "'???' is no metric; there are gbc, leep, n_leep, "),
        ("my_metrics.", "'my_metrics.' is no metric; there are gbc, "),
    ],
)
def test_a_misspelt_name_is_refused_with_the_closest(
    command: str, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        evaluate.main([command, f"--metrics=['gbc', '{name}']"])
    text = capsys.readouterr().err
    assert end.value.code == 2
    assert text.count("\n") == 1
    assert text.startswith("error: metrics: " + message)
    assert text.endswith("parameters, and functions by import path, module.name\n")


def test_tables_call_a_metric_by_its_path(run: Callable[..., Any], mine: str) -> None:
    scored = run(f"--metrics=[h_score, {mine}.spread, {mine}.with_head, {mine}.refuses]", models="[resnet18, headless]")
    cells = scored.document["scores"]["photos"]
    assert {row["metric"] for row in scored.rows} == {
        "h_score",
        *(f"{mine}.{n}" for n in ("spread", "with_head", "refuses")),
    }
    assert cells["resnet18"][f"{mine}.spread"]["rank"] in (1, 2)
    assert cells["resnet18"][f"{mine}.with_head"]["score"] == pytest.approx(2 * 24 + 24, rel=1e-6)
    assert cells["headless"][f"{mine}.with_head"]["reason"].startswith("the model has no source head")
    reason = f"{mine}.refuses has no score for resnet18, headless: line 16: ValueError: too few."
    assert escape_markdown(reason) in (scored.folder / "report.md").read_text()


def test_variants_of_one_metric_stand_side_by_side(run: Callable[..., Any], tmp_path: Path) -> None:
    scored = run("--metrics=[gbc, {gbc: {variant: released}}, {n_leep: {components_per_class: 2}}]")
    names = ["gbc", "gbc(variant=released)", "n_leep(components_per_class=2)"]
    assert scored.document["metrics"] == names
    assert [row["metric"] for row in scored.rows] == names * 2
    cells = scored.document["scores"]["photos"]["resnet18"]
    assert cells["gbc"]["score"] != cells["gbc(variant=released)"]["score"]
    header = "| GBC (textbook) | GBC (released) | N-LEEP (components per class 2) |"
    assert header in (scored.folder / "report.md").read_text()
    assert list(scored.document["titles"].values())[:2] == ["GBC (textbook)", "GBC (released)"]
    config = tmp_path / "metrics.yaml"
    config.write_text("metrics:\n- gbc\n- gbc: {variant: released}\n- n_leep: {components_per_class: 2}\n")
    again = run(f"--config={config}")
    assert [row["score"] for row in again.rows] == [row["score"] for row in scored.rows]


def test_a_misspelt_option_is_one_line(run: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--metrics=[{gbc: {variants: released}}]")
    message = "error: metrics: gbc: there is no option 'variants'; it has covariance, pca, variant\n"
    assert capsys.readouterr().err == message


@pytest.mark.slow
def test_a_function_in_the_working_folder_is_found(registry: Path, photo_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "beside_me.py").write_text("def own(features, labels, scale=1):\n    return scale * 1.5\n")
    arguments = ["--targets.photos=ClassFolders", f"--targets.photos.root={photo_folder}", f"--registry={registry}"]
    arguments += ["--models=[resnet18]", f"--output={tmp_path / 'out'}", "--logger=false", "--extraction.device=cpu"]
    command = [
        sys.executable,
        str(Path(evaluate.__file__)),
        "transferability",
        *arguments,
        "--extraction.num_workers=0",
    ]
    options = "--metrics=[beside_me.own, {beside_me.own: {scale: 4}}]"
    subprocess.run([*command, options], cwd=tmp_path / "folder", check=True, capture_output=True)
    with (tmp_path / "out" / "scores.csv").open(newline="") as file:
        assert {row["metric"]: row["score"] for row in csv.DictReader(file)} == {
            "beside_me.own": "1.5",
            "beside_me.own(scale=4)": "6.0",
        }


def test_a_pool_of_targets_gives_the_rows_of_each(
    registry: Path, photo_folder: Path, tmp_path: Path, mine: str
) -> None:
    (tmp_path / f"{mine}_rows.py").write_text(
        "def check(features, labels, probabilities):\n"
        "    return 10**6 * len(set(labels)) + 1000 * len(features) + probabilities.sum()\n"
    )
    for name in ("grey", "white"):
        for split in ("train", "validation"):
            folder = photo_folder / split / name
            folder.mkdir()
            for index in range(1, 4):
                (folder / f"{index}.jpg").write_bytes((photo_folder / split / "dark" / f"{index}.jpg").read_bytes())
    options = ["--dataset=ClassFolders", f"--dataset.root={photo_folder}", f"--registry={registry}", "--logger=false"]
    options += ["--source=resnet18", "--targets=4", "--extraction.num_workers=0", "--extraction.device=cpu"]
    evaluate.main(["target-selection", *options, f"--metrics=[{mine}_rows.check]", f"--output={tmp_path / 'out'}"])
    with (tmp_path / "out" / "scores.csv").open(newline="") as file:
        scores = [float(row["score"]) for row in csv.DictReader(file)]
    targets = json.loads((tmp_path / "out" / "targets.json").read_text())["targets"]
    for value, target in zip(scores, targets.values(), strict=True):
        # The head's probabilities add up to the number of photos.
        assert value == pytest.approx(10**6 * len(target["classes"]) + 1001 * target["photos"])
