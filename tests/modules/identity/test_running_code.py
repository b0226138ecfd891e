"""Code that runs although its file says something else."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from headstart.modules.identity.reached_code import ReachedCode
from headstart.output.errors import UserError

NAME = "a_module_that_runs"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    yield tmp_path / f"{NAME}.py"
    sys.modules.pop(NAME, None)


def load() -> ModuleType:
    sys.modules.pop(NAME, None)
    importlib.invalidate_caches()
    return importlib.import_module(NAME)


def digest() -> str:
    code = ReachedCode()
    code.add(NAME)
    return code.own[NAME]


def write(file: Path, value: str) -> None:
    """Write a version of the same size and time as all others."""
    file.write_text(f"S = {value}\ndef scale(x):\n    return x * {value}\n")
    os.utime(file, (10**9, 10**9))


@pytest.mark.parametrize("is_imported", [True, False])
def test_byte_code_of_another_version_is_an_error(file: Path, is_imported: bool) -> None:
    write(file, "1.0")
    assert load().scale(2) == 2
    before = digest()
    write(file, "3.0")
    # Python runs the old code: size and time of the file are those of its byte code.
    assert load().scale(2) == 2
    if not is_imported:
        del sys.modules[NAME]
    with pytest.raises(UserError, match=rf"{NAME}\.py: Python runs the byte code of another version .* remove .*\.pyc"):
        digest()

    for cached in (file.parent / "__pycache__").iterdir():
        cached.unlink()
    assert load().scale(2) == 6
    assert digest() != before


def test_a_file_that_was_changed_after_its_import_is_an_error(file: Path) -> None:
    file.write_text("def scale(x):\n    return x\n")
    load()
    file.write_text("def scale(x):\n    return x * 30\n")
    with pytest.raises(UserError, match=r"the file was changed after its import; reload it, or start Python again"):
        digest()
    load()
    digest()


def test_functions_wrapped_by_decorators_and_classes_are_no_change(file: Path) -> None:
    file.write_text(
        "from dataclasses import dataclass\nfrom functools import cache, partial, wraps\n"
        "def twice(f):\n    @wraps(f)\n    def g(x):\n        return f(f(x))\n    return g\n"
        "@twice\ndef scale(x):\n    return x in {'a', 'b', 1, 1.0}\n"
        "@cache\ndef other(x):\n    return [lambda y: y + each for each in (x, -0.0)]\n"
        "@dataclass\nclass Point:\n    x: int = 1\n    @property\n    def y(self):\n        return self.x\n"
        "    @staticmethod\n    def z():\n        class Inner:\n            pass\n        return Inner\n"
        "first = partial(scale, 1)\nsmall = lambda x: x\n"
    )
    load()
    digest()


def test_code_that_cannot_be_parsed_counts_by_its_bytes(file: Path) -> None:
    digests = []
    for text in ("print 1\n", "print 2\n"):
        file.write_text(text)
        digests.append(digest())
    assert digests[0] != digests[1]
