"""Files that are complete or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from output.files import replacing


def test_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with replacing(path) as partial:
        partial.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failure_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def write() -> None:
        with replacing(path) as partial:
            partial.write_text("new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the inner one ends first, so that the outer one has the last word
    assert list(tmp_path.iterdir()) == [path]


def test_folder_in_the_file_s_place(tmp_path: Path) -> None:
    (tmp_path / "result.json").mkdir()
    with pytest.raises(OSError, match=r"result\.json"), replacing(tmp_path / "result.json") as partial:
        partial.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
