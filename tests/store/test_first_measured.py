"""Numbers that later measurements are held to, and what else may stand in their place."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headstart.store.feature_table import StoreError
from headstart.store.first_measured import first_measured

KEY = {"layer": "fc"}


def put_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_the_first_number_stays(tmp_path: Path) -> None:
    folder = tmp_path / "numbers"
    assert [first_measured(folder, KEY, number) for number in (5, 7)] == [5, 5]
    assert first_measured(folder, {"layer": "head"}, 7) == 7


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text('{"number"'),
        lambda path: path.write_text('{"number": Infinity}'),
        lambda path: path.write_bytes(b"\xff"),
        put_a_pipe,
    ],
    ids=["torn", "infinite", "no text", "a pipe"],
)
def test_damaged_numbers_are_measured_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    first_measured(tmp_path, KEY, 5)
    (path,) = tmp_path.iterdir()
    damage(path)
    assert [first_measured(tmp_path, KEY, number) for number in (6, 7)] == [6, 6]


def test_a_path_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("")
    with pytest.raises(StoreError, match=r"^'\S+numbers' cannot be written \(File exists\); choose another folder$"):
        first_measured(tmp_path / "numbers", KEY, 5)
