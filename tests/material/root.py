"""Where the package lies, and what a test asks for first that reads what only a checkout has around it."""

from pathlib import Path

import pytest

import headstart

ROOT = Path(headstart.__file__).parent


def require_checkout() -> None:
    """Skip the test, or the file that is being imported, if pages, Makefile and benchmarks are not there."""
    __tracebackhide__ = True
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs a checkout", allow_module_level=True)
