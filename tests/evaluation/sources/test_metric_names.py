"""Metrics by name and by import path, and the mistakes in both."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.sources.metric_names import digest_metrics, find_metrics
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.inputs import Inputs
from headstart.metrics.transferability.pactran import pactran
from headstart.output.errors import UserError
from headstart.output.markup import escape_markdown
from headstart.tests.evaluation.sources.conftest import Scored

FEATURES, LABELS = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 2, 2])
HEAD = np.zeros((6, 4))
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


def test_a_function_is_given_what_its_arguments_name(mine: str) -> None:
    assert compute(f"{mine}.spread") == pytest.approx(np.var([[2, 3], [4, 5], [9, 10]]))
    assert compute(f"{mine}.with_head") == 2 * 6 + 6 + 1000 * 3
    assert "probabilities" in find_metrics([f"{mine}.with_head"])[f"{mine}.with_head"].data
    assert compute(f"{mine}.many") == 0
    with pytest.raises(ValueError, match="the model has no source head"):
        compute(f"{mine}.with_head", head=False)


def test_an_error_is_a_reason_in_one_line(mine: str) -> None:
    for name, reason in {
        "refuses": "ValueError: too few",
        "no_number": "ValueError: could not convert string to float: 'high'",
    }.items():
        with pytest.raises(ValueError, match=reason) as error:
            compute(f"{mine}.{name}")
        assert not isinstance(error.value, UserError)
        assert "\n" not in str(error.value)
    assert compute(f"{mine}.writes") == 0
    assert FEATURES[0, 0] == 0, "it changed a copy"


# What is given, and the metric's name and title.
OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"gbc": {"pca": None, "covariance": "diagonal"}},
        "gbc(covariance=diagonal, pca=null)",
        "GBC (covariance=diagonal, pca=null)",
    ),
    ({"gbc": {}}, "gbc", "GBC"),
    ({"pactran": {"penalty_share": 1}}, "pactran", "PACTran"),
]


def test_options_are_those_of_the_function_and_defaults_make_no_other_metric(mine: str) -> None:
    generator, labels = np.random.default_rng(0), np.arange(60) % 3
    inputs = Inputs(generator.standard_normal((60, 5)) + labels[:, None], labels)
    functions: dict[str, Callable[..., float]] = {"gbc": gbc, "pactran": pactran}
    for given, name, title in OPTIONS:
        [(key, metric)] = find_metrics([given]).items()
        [(plain, options)] = given.items()
        assert (key, metric.title) == (name, title)
        assert metric.compute(inputs) == functions[plain](inputs.features, labels, **options), name
        assert (metric.compute(inputs) == METRICS[plain].compute(inputs)) == (name == plain), name
        # Readers of a table give them the same titles.
        assert metric_titles([name, "leep"])[0] == title
    with pytest.raises(UserError, match="none of them twice"):
        find_metrics(["gbc", {"gbc": {"pca": 64}}])

    path = f"{mine}.with_head"
    [(name, metric)] = find_metrics([{path: {"scale": 5}}]).items()
    assert (name, metric.title) == (f"{path}(scale=5)", f"{path} (scale=5)")
    assert metric.compute(Inputs(FEATURES, LABELS, HEAD, seed=3)) == 5 * 6 + 6 + 1000 * 3
    assert digest_metrics([name]) == digest_metrics([path])
    # Further arguments of a function can be options.
    [other] = find_metrics([{f"{mine}.other": {"classes": 2}}]).values()
    assert other.compute(Inputs(FEATURES, LABELS)) == 1


TAKES = "a metric takes some of features, labels, probabilities, seed"
REFUSED: list[tuple[Any, str]] = [
    ("{}.none", "{}.none cannot be imported (AttributeError: "),
    ("{}_broken.f", "{}_broken.f cannot be imported (SystemExit: no)"),
    ("{}.value", "{}.value cannot be imported (TypeError: "),
    ("{}.other", "{}.other takes features, classes; " + TAKES),
    ({"{}.with_head": {"bias": 5}}, "{}.with_head: there is no option 'bias'; it has scale"),
    ({"gbc": {"variants": "released"}}, "gbc: there is no option 'variants'; it has covariance, pca, variant"),
    ({"gbc": {"variant": "other"}}, "gbc: variant is 'other': Input should be 'textbook' or 'released'"),
    ({"gbcs": {"variant": "released"}}, "'gbcs' is no metric (closest: gbc); there are "),
    ("my_metrics.", "'my_metrics.' is no metric; there are gbc, "),
    ({"gbc": "released"}, "{'gbc': 'released'} is no metric; give a name, or {name: {option: value}}"),
]


def test_names_and_options_that_are_refused(mine: str) -> None:
    def own(text: str) -> str:
        return text.replace("{}.", f"{mine}.").replace("{}_", f"{mine}_")

    wrong = []
    for given, message in REFUSED:
        named = own(given) if isinstance(given, str) else given
        if isinstance(given, dict):
            named = {own(name): options for name, options in given.items()}
        with pytest.raises(UserError) as error:
            find_metrics([named])
        if not str(error.value).startswith(f"metrics: {own(message)}") or "\n" in str(error.value):
            wrong.append((given, str(error.value)))
    assert wrong == []


def test_tables_have_metrics_by_path_and_variants_side_by_side(
    run: Callable[..., Scored], mine: str, tmp_path: Path
) -> None:
    names = ["gbc", "gbc(variant=released)", *(f"{mine}.{name}" for name in ("with_head", "refuses"))]
    config = tmp_path / "metrics.yaml"
    config.write_text(json.dumps({"metrics": ["gbc", {"gbc": {"variant": "released"}}, *names[2:]]}))
    scored = run(f"--config={config}", models="[resnet18, headless]")
    assert scored.document["metrics"] == names
    assert [row["metric"] for row in scored.rows] == names * 2
    cells = scored.cells
    assert cells["resnet18"]["gbc"]["score"] != cells["resnet18"]["gbc(variant=released)"]["score"]
    assert "| GBC | GBC (variant=released) |" in scored.report
    assert cells["resnet18"][f"{mine}.with_head"]["score"] == pytest.approx(2 * 24 + 24, rel=1e-6)
    assert cells["headless"][f"{mine}.with_head"]["reason"].startswith("the model has no source head")
    reason = f"{mine}.refuses has no score for resnet18, headless: ValueError: too few."
    assert escape_markdown(reason) in scored.report


def test_an_edited_metric_is_another_configuration(
    run: Callable[..., Scored], refused: Callable[..., str], mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score_again(text: str) -> None:
        # Another process imports the module again.
        monkeypatch.delitem(sys.modules, mine, raising=False)
        (tmp_path / f"{mine}.py").write_text(text)
        run(f"--metrics=[{mine}.spread]")

    score_again(SOURCE)
    assert "(digests/metrics)" in refused(lambda: score_again(SOURCE.replace("return 0.0", "return 1.0")))
