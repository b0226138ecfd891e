"""Configurations are found by the names that they have in a checkout; other values stay as they are."""

from pathlib import Path

import pytest

from headstart.output.shipped_files import CONFIGS, find_configurations


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--config=demo.yaml"], [f"--config={CONFIGS / 'demo.yaml'}"]),
        (["--config", "configs/demo.yaml"], ["--config", str(CONFIGS / "demo.yaml")]),
        (["--model=configs/model/demo.yaml"], [f"--model={CONFIGS / 'model/demo.yaml'}"]),
        (["--config={data: {url: 'http://x//y'}}"], ["--config={data: {url: 'http://x//y'}}"]),
        (["--config=~/mine.yaml"], [f"--config={Path.home() / 'mine.yaml'}"]),
    ],
)
def test_find(args: list[str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_configurations(args) == expected
