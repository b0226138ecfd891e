"""Scores of other photos, weights, metrics or options do not replace those that are there, unless that is asked for."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.slow
def test_results_of_another_configuration_are_not_replaced_unasked(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, photo_folder: Path
) -> None:
    first = run("--metrics=[h_score]", "--seed=0")
    known = tmp_path / "performances.csv"
    known.write_text("source,target,performance\nresnet18,photos,0.5\n")
    run("--metrics=[h_score]", "--extraction.num_workers=1", f"--performances={known}")
    (photo_folder / "train" / "dark" / "zz.jpg").write_bytes((photo_folder / "validation/dark/0.jpg").read_bytes())
    assert "(targets)" in refused(lambda: run("--metrics=[h_score]"))
    (photo_folder / "train" / "dark" / "zz.jpg").unlink()
    for options, key in (
        (["--metrics=[log_me]"], "metrics"),
        (["--metrics=[h_score]", "--split=validation"], "split, targets"),
        (["--metrics=[h_score]", "--models=[resnet18]"], "digests/networks"),
        (["--metrics=[h_score]", "--seed=1"], "seed"),
    ):
        message = refused(lambda options=options: run(*options))
        assert f"holds results of another configuration ({key}); choose another folder" in message
    assert [row["metric"] for row in first.rows] == ["h_score", "h_score"]
    assert {row["metric"] for row in run("--metrics=[log_me]", "--overwrite=true").rows} == {"log_me"}


def test_an_edited_metric_is_another_configuration(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"edited_{tmp_path.name.replace('-', '_')}"
    path = tmp_path / f"{name}.py"
    monkeypatch.syspath_prepend(tmp_path)
    path.write_text("def own(features, labels):\n    return 1.0\n")
    run(f"--metrics=[{name}.own]")
    # Another process imports the module again.
    monkeypatch.delitem(sys.modules, name)
    run(f"--metrics=[{name}.own]")
    path.write_text("def own(features, labels):\n    return 2.0\n")
    monkeypatch.delitem(sys.modules, name)
    assert "(digests/metrics)" in refused(lambda: run(f"--metrics=[{name}.own]"))
