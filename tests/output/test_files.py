"""Files that are complete or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from output.errors import UserError
from output.files import refuse_other_results, replacing


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


def test_other_results_are_told_from_the_same(tmp_path: Path) -> None:
    result, picture = tmp_path / "result.json", tmp_path / "picture.png"
    made_from = {"team": "red", "digests/catalog": "abc", "measure": None}
    refuse_other_results([result, picture], made_from, overwrite=False)
    result.write_text(json.dumps({"team": "red", "digests": {"catalog": "abc"}, "seconds": 3}))
    refuse_other_results([result, picture], made_from, overwrite=False)
    for other, differing in (
        ({"team": "blue"}, "team"),
        ({"measure": "rbf"}, "measure"),
        ({"team": 1, "digests/catalog": "x"}, "team, digests/catalog"),
        ({"team/name": "red"}, "team/name"),
    ):
        with pytest.raises(UserError, match=rf"^output: '.*result\.json' holds .* \({differing}\); choose another"):
            refuse_other_results([result, picture], {**made_from, **other}, overwrite=False)
        refuse_other_results([result, picture], {**made_from, **other}, overwrite=True)


@pytest.mark.parametrize("content", [None, "{", "[1]"])
def test_results_of_unknown_origin_are_refused(tmp_path: Path, content: str | None) -> None:
    result, picture = tmp_path / "result.json", tmp_path / "picture.png"
    picture.touch()
    if content is not None:
        result.write_text(content)
    with pytest.raises(UserError, match="holds results of another configuration"):
        refuse_other_results([result, picture], {"team": "red"}, overwrite=False)
