"""Mutations are changes of one line each, and the file is restored."""

from importlib import import_module
from pathlib import Path

import pytest

from headstart.tests.material.root import require_checkout

require_checkout()
mutations = import_module("headstart.benchmarks.mutations")

CODE = '''"""Add 1 < 2."""
LIMIT = 3


def run(values: dict[int, 4]) -> float:
    values.sort()
    if len(values) < LIMIT and True:
        raise ValueError(f"{len(values) + 5} values")
    return next(zip(values, strict=True))[0] * 2
'''


def test_each_line_is_changed_and_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    path = tmp_path / "code.py"
    path.write_text(CODE)
    changes = list(mutations.mutations(path))
    assert sorted((change.line, change.after.strip()) for change in changes) == [
        (2, "LIMIT = 4"),
        (6, "pass"),
        (7, "if len(values) < LIMIT and False:"),
        (7, "if len(values) <= LIMIT and True:"),
        (9, "return next(zip(values, strict=True))[0] * 3"),
        (9, "return next(zip(values, strict=True))[0] / 2"),
        (9, "return next(zip(values, strict=True))[1] * 2"),
    ]

    def interrupt() -> None:
        with mutations.mutated(changes[0]):
            assert path.read_text() == CODE.replace("LIMIT = 3", "LIMIT = 4")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert path.read_text() == CODE
