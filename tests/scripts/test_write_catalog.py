"""The script that lists a folder's pictures as a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.contract.documents import read_catalog
from scripts.write_catalog import write_catalog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.png", "b/1.JPG", "a/3.webp", "a/notes.txt"):
        path = tmp_path / "birds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "birds"


def test_lists_pictures_alone(folder: Path, tmp_path: Path) -> None:
    write_catalog(str(folder), str(tmp_path / "all.jsonl"))
    stimuli = read_catalog(tmp_path / "all.jsonl").stimuli
    assert [s.image_identifier for s in stimuli] == ["a/3.webp", "b/1.JPG", "b/2.png"]
    assert {s.dataset_name for s in stimuli} == {"birds"}


def test_sample_is_seeded(folder: Path, tmp_path: Path) -> None:
    files = []
    for seed in (0, 0, 1, 2, 3, 4):
        write_catalog(str(folder), str(tmp_path / "some.jsonl"), dataset_name="cubs", count=2, seed=seed)
        files.append((tmp_path / "some.jsonl").read_text())
    assert files[0] == files[1]
    assert len(set(files)) > 1
    assert all(text.count("cubs") == 2 for text in files)


def test_too_few_pictures(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="3 pictures, 4 are wanted"):
        write_catalog(str(folder), str(tmp_path / "some.jsonl"), count=4)
    assert not (tmp_path / "some.jsonl").exists()
