"""Scores of another metric do not replace those that are there, unless that is asked for."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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
