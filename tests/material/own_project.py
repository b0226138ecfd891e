"""Projects of a user's own in a folder, each imported again as by another process."""

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headstart.modules.provenance import provenance

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


def describe(folder: Path, files: Mapping[str, str], **options: Any) -> dict[str, Any]:
    """Write files into a folder and describe `mine.Mine` as a new process would.

    Args:
        folder: The folder, which is the present one.
        files: Contents by path; some are added, as by a process that wrote them before.
        options: Arguments of the method.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.chdir(folder)
        try:
            for text in options.values():
                if isinstance(text, str) and "." in text and not Path(text).is_file():
                    pkgutil.resolve_name(text)
            if (folder / "other.py").exists():
                importlib.import_module("other")
            one = importlib.import_module("mine").Mine(**options)
            return provenance(one, {"class_path": "mine.Mine", "init_args": options}, 9)
        finally:
            for name in set(sys.modules) - before:
                if str(folder) in str(getattr(sys.modules[name], "__file__", "") or "") or name in ("parts", "parts.b"):
                    del sys.modules[name]
