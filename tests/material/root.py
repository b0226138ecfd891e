"""Where the package lies, and what a test asks for first that reads what only a checkout has around it."""

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import headstart

ROOT = Path(headstart.__file__).parent
SHARED = Path(os.environ.get("HEADSTART_SHARED") or ROOT.parent / "shared")


def require_checkout() -> None:
    """Skip the test, or the file that is being imported, if pages, Makefile and benchmarks are not there."""
    __tracebackhide__ = True
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs a checkout", allow_module_level=True)


def shared_data(name: str) -> Path:
    """Return a folder of the data that lie beside the checkout; skip the test where they do not."""
    # Each test runs without HEADSTART_SHARED, which names their folder.
    folder = SHARED / "data" / name
    if not folder.is_dir():
        pytest.skip("the photos are not there; HEADSTART_SHARED names their folder")
    return folder


def load_file(path: str) -> ModuleType:
    """Import a file of the checkout that is in no package."""
    spec = spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
