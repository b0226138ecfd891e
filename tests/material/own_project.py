"""Projects of a user's own in a folder, each imported again as by another process."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headstart.modules.provenance import code_of, describe_method, doubts_about
from headstart.modules.run_key import RunKey
from headstart.output.executed_code import executed

METHOD = """\
from headstart.modules import NearestClassMean
{imports}
class Mine(NearestClassMean):
    {attribute}
    def __init__(self, scale=None):
        super().__init__()
        {init}
    def forward(self, inputs):
        return super().forward(inputs) * ({factor})
"""
EMPTY = {"imports": "", "attribute": "pass", "init": "pass", "factor": "1.0"}


def method(**parts: str) -> str:
    """Return the source code of a method with some parts of its own."""
    return METHOD.format(**{**EMPTY, **parts})


@contextmanager
def project(folder: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Write files into a folder, where a new process seems to begin; its modules are forgotten at the end.

    Args:
        folder: The folder, which is the present one.
        files: Contents by path; some are added, as by a process that wrote them before.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()
    executed.clear()
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.chdir(folder)
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                file = str(getattr(sys.modules[name], "__file__", "") or "")
                if str(folder) in file or name in ("parts", "parts.b", "x"):
                    del sys.modules[name]


def describe(folder: Path, files: Mapping[str, str], **options: Any) -> dict[str, Any]:
    """Return the key of `mine.Mine` of a project, and why its code is not known.

    Args:
        folder: As for `project`.
        files: As for `project`; `other.py` is imported as well.
        options: Arguments of the method.
    """
    with project(folder, files):
        for text in options.values():
            if isinstance(text, str) and "." in text and not Path(text).is_file():
                pkgutil.resolve_name(text)
        if (folder / "other.py").exists():
            importlib.import_module("other")
        one = importlib.import_module("mine").Mine(**options)
        given = {"class_path": "mine.Mine", "init_args": options}
        key = RunKey({}, describe_method(one, given, 9), code_of(one, given), "cpu")
        return {"key": key.describe()["method"], "digest": key.digest(), "doubts": doubts_about(one, given)}
