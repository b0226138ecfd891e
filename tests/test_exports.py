"""Packages export what their `__init__.pyi` imports, and import it when it is first used."""

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("headstart", "headstart.datamodules", "headstart.metrics", "headstart.modules")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_exported_name_is_what_its_module_defines(name: str) -> None:
    package = import_module(name)
    for export in package.__all__:
        value = getattr(package, export)
        assert not callable(value) or getattr(import_module(value.__module__), export) is value
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_a_package_alone_imports_no_torch() -> None:
    code = f"import sys, {', '.join(PACKAGES)}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
