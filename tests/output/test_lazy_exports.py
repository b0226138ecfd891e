"""Packages export what they import for type checkers, and import it when it is first used."""

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("headstart", "headstart.datamodules", "headstart.metrics", "headstart.modules")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_exported_from_the_module_that_defines_it(name: str) -> None:
    package = import_module(name)
    for export in package.__all__:
        value = getattr(package, export)
        assert getattr(value, "__module__", name) == package.EXPORTS.get(export, name) or not callable(value)
    with pytest.raises(AttributeError, match=rf"^module '{name}' has no attribute 'nothing'$"):
        _ = package.nothing


def test_a_package_alone_imports_no_torch() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
