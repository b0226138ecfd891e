"""Mutations are changes of one line each, the file is restored, and the table says which ones a test notices."""

from importlib import import_module
from pathlib import Path

import pytest

from headstart.tests.material.root import require_checkout

require_checkout()
mutations = import_module("headstart.benchmarks.mutations")

CODE = '''"""Add 1 < 2."""
LIMIT = 3


def run(values: dict[int, 4], *others: int) -> float:
    values.sort()
    if len(values) < LIMIT and True:
        raise ValueError(f"{len(values) + 5} values")
    return next(zip(values, strict=True))[0]
'''


def test_each_line_is_changed_and_restored(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    changes = list(mutations.mutations(path))
    assert [(change.line, change.after.strip()) for change in changes] == [
        (2, "LIMIT = 3 + 1"),
        (6, "pass"),
        (7, "if len(values) <= LIMIT and True:"),
        (7, "if len(values) < LIMIT and False:"),
    ]
    with mutations.mutated(changes[0]):
        assert path.read_text() == CODE.replace("LIMIT = 3", "LIMIT = 3 + 1")
    assert path.read_text() == CODE


def test_the_table_says_which_changes_a_test_notices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "code.py").write_text("SIZE = 3\nOTHER = 4\n")
    (tmp_path / "check.sh").write_text("grep -q 'SIZE = 3$' room/code.py || { echo FAILED check.sh::size; false; }\n")
    mutations.main(count=9, rooms=["room"], tests="sh check.sh")
    printed = capsys.readouterr().out
    assert "| room/code.py:1 | `SIZE = 3` | `SIZE = 3 + 1` | check.sh::size |\n" in printed
    assert "| room/code.py:2 | `OTHER = 4` | `OTHER = 4 + 1` | nothing |\n" in printed
    assert printed.endswith("\n1 changes were not noticed.\n")
