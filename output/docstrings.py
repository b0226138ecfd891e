"""What a function or class says of itself, without importing what it needs."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path


def first_line(module: str, name: str) -> str:
    """Read the first line of a docstring from the source, of which only the packages above it are imported.

    Args:
        module: The module, such as `headstart.datamodules.photos.cats_and_dogs`.
        name: A function or class that it defines.
    """
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    defined = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
    nodes = [node for node in defined if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
    return (ast.get_docstring(nodes[0]) or "").partition("\n")[0]
