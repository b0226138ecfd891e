"""The rooms of docs/design.md: imports run one way, in no circle, and no room outgrows the house."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# From the ground up; a folder imports from those of lower floors, and itself, alone.
FLOORS = (
    ("output",),
    ("metrics",),
    ("store", "engines"),
    ("modules",),
    ("contract",),
    ("datamodules",),
    ("callbacks", "evaluation"),
    ("cli",),
    ("sweeps", "portal"),
    ("train", "evaluate", "sweep", "estimators"),
    ("scripts", "benchmarks"),
    ("__main__",),
)
FLOOR = {each: floor for floor, rooms in enumerate(FLOORS) for each in rooms}
LARGEST_SHARE = 0.25


def source_files() -> list[Path]:
    folders = chain.from_iterable((ROOT / folder).rglob("*.py") for folder in FLOOR)
    return sorted({*folders, *ROOT.glob("*.py")})


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("headstart", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def room(module: str) -> str:
    """Give the folder of a module, or the file at the top; empty for the package itself."""
    return f"{module}.".split(".")[1]


@cache
def imports() -> dict[str, set[str]]:
    """Give the modules of ours that each of ours imports, also within functions, but for types alone."""
    known = {module_name(path) for path in source_files()}
    found: dict[str, set[str]] = {}
    for path in source_files():
        tree = ast.parse(path.read_text())
        typing = {node for test in ast.walk(tree) if _is_for_types(test) for node in ast.walk(test)}
        names: set[str] = set()
        for node in ast.walk(tree):
            if node in typing:
                continue
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (whole & known) or {node.module}
        found[module_name(path)] = (names & known) - {module_name(path)}
    return found


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_every_folder_of_code_has_a_floor() -> None:
    ignored = {"tests", "build", "dist"}
    folders = {path.parent.name for path in ROOT.glob("*/*.py")} - ignored
    assert {name for name in folders if not name.startswith(".")} <= set(FLOOR)


def test_imports_run_downwards() -> None:
    assert len(imports()) > 100
    upward = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if room(other) and room(name) and room(name) != room(other) and FLOOR[room(other)] >= FLOOR[room(name)]
    ]
    assert upward == []


def test_imports_run_in_no_circle() -> None:
    try:
        TopologicalSorter({name: others - {"headstart"} for name, others in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_room_outgrows_the_house() -> None:
    lines: dict[str, int] = {}
    for path in source_files():
        top = path.relative_to(ROOT).parts[0]
        lines[top] = lines.get(top, 0) + len(path.read_text().splitlines())
    largest = max(lines, key=lambda top: lines[top])
    assert lines[largest] < LARGEST_SHARE * sum(lines.values()), f"{largest}: {lines[largest]} of {sum(lines.values())}"
