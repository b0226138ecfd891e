"""Where the package lies, and what a test asks for first that reads what only a checkout has around it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import headstart

ROOT = Path(headstart.__file__).parent


def require_checkout() -> None:
    """Skip the test, or the file that is being imported, if pages, Makefile and benchmarks are not there."""
    __tracebackhide__ = True
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs a checkout", allow_module_level=True)


def load_file(path: str) -> ModuleType:
    """Import a file of the checkout that is in no package."""
    spec = spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
