"""The rooms of docs/design.md: imports run one way, in no circle, and no room outgrows the house."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"\| `(\w+)` \| .* \|(.*)\|")
# Functions on these ways that Lightning or Python calls, or the portal's worker, which looks for work.
BY_OTHERS = ("validation_step", "on_validation_end", "claim", "check_submission", "score", "finish", "__init__")
MOST_FILES = 20
# Catalogues: one file for each method, metric, source of photos or benchmark.
CATALOGUES = (
    "metrics/similarity",
    "metrics/transferability",
    "modules/methods",
    "datamodules/photos",
)


def read_table() -> dict[str, set[str]]:
    """Return the rooms of docs/design.md, from the ground up, and the rooms that each imports."""
    if not (page := ROOT / "docs" / "design.md").exists():
        pytest.skip("the wheel has no docs")
    text = page.read_text().partition("| room | question | imports |")[2].partition("\n\n")[0]
    rows = [ROW.fullmatch(line) for line in text.splitlines()[2:]]
    return {row[1]: set(re.findall(r"`(\w+)`", row[2])) for row in rows if row}


def source_files() -> list[Path]:
    folders = chain.from_iterable((ROOT / folder).rglob("*.py") for folder in read_table())
    return sorted({*folders, *ROOT.glob("*.py")})


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("headstart", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def room(module: str) -> str:
    """Return the folder of a module, or the file at the top; empty for the package itself."""
    return f"{module}.".split(".")[1]


@cache
def imports() -> dict[str, set[str]]:
    """Return the modules of ours that each of ours imports, also within functions, but for types alone."""
    known = {module_name(path) for path in source_files()}
    result: dict[str, set[str]] = {}
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
        result[module_name(path)] = (names & known) - {module_name(path)}
    return result


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_every_room_of_code_is_in_the_table() -> None:
    ignored = {"tests", "build", "dist"}
    rooms = {path.parent.name for path in ROOT.glob("*/*.py")} | {path.stem for path in ROOT.glob("*.py")}
    assert {name for name in rooms - ignored if not name.startswith(".")} - {"__init__"} == set(read_table())


@pytest.mark.slow
def test_imports_are_those_of_the_table() -> None:
    assert len(imports()) > 100
    used: dict[str, set[str]] = {name: set() for name in read_table()}
    for name, others in imports().items():
        if room(name):
            used[room(name)] |= {room(other) for other in others} - {room(name), ""}
    assert used == read_table()


def test_imports_run_upwards_in_the_table() -> None:
    order = list(read_table())
    wrong = [
        f"{name} imports {other}"
        for name, others in read_table().items()
        for other in others
        if order.index(other) >= order.index(name)
    ]
    assert wrong == []


def test_imports_run_in_no_circle() -> None:
    try:
        TopologicalSorter({name: others - {"headstart"} for name, others in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_ways_through_the_rooms_are_those_of_the_page() -> None:
    if not (page := ROOT / "docs" / "design.md").exists():
        pytest.skip("the page is in a checkout alone")
    ways = page.read_text().split("## The way of ")[1:]
    assert len(ways) == 4
    for steps in (re.findall(r"^\d\. `([\w/.]+)`, `(\w+)`: ", way, re.MULTILINE) for way in ways):
        assert 4 < len(steps) <= 8
        for index, (file, function) in enumerate(steps):
            text = (ROOT / file).read_text()
            assert re.search(rf"^ *(async )?def {function}\(", text, re.MULTILINE), (file, function)
            # A step is called from a file before it on the way, from the one that follows, or by Lightning.
            callers = [(ROOT / each).read_text() for each, _ in steps[:index]]
            is_called = any(re.search(rf"\b{function}\b(?<!def {function})", each) for each in callers)
            assert index == 0 or is_called or function in BY_OTHERS, (file, function)


def test_no_folder_has_too_many_files() -> None:
    files: dict[str, int] = {}
    for path in source_files():
        folder = path.parent.relative_to(ROOT).as_posix()
        files[folder] = files.get(folder, 0) + (path.name != "__init__.py")
    assert {name: count for name, count in files.items() if count > MOST_FILES and name not in CATALOGUES} == {}
