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


def require_shared(path: str) -> Path:
    """Return what lies beside the checkout; skip the test, or the file that is being imported, where it does not."""
    __tracebackhide__ = True
    # Each test runs without HEADSTART_SHARED, which names the folder.
    if not (SHARED / path).exists():
        pytest.skip(f"needs {path} of HEADSTART_SHARED, by default ../shared", allow_module_level=True)
    return SHARED / path


def load_file(path: str) -> ModuleType:
    """Import a file of the checkout that is in no package."""
    spec = spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
