"""The digest of the suite covers the files that can change a count, and the edits that do."""

import ast
from pathlib import Path

import pytest

from headstart.callbacks.sample_efficiency import SampleEfficiency
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photo_stream import PhotoStream
from headstart.modules.comparison import Comparison
from headstart.modules.identity import reached_code
from headstart.modules.identity.origins import Origin
from headstart.modules.identity.reached_code import ReachedCode
from headstart.modules.identity.source_code import parse
from headstart.modules.methods.catalogue import METHODS

ROOT = Path(__file__).parents[3]
FILES = sorted(
    file for room in ROOT.iterdir() if room.name != "tests" for file in room.rglob("*.py") if "." not in room.name
)
STREAMS = (Comparison.__module__, SampleEfficiency.__module__, PhotoStream.__module__, FeatureStream.__module__)
# All files of these rooms count, except for these, packages that only export, and rooms within them.
COUNTED_ROOMS = {
    "modules": {
        "augmentation",
        "memory_errors",
        "method_contract",
        "provenance",
        "photo_training",
        "source_training",
        "target_accuracy",
    },
    "modules/methods": {"catalogue"},
    "modules/networks": {"classifier", "facts", "size_limits"},
    "datamodules": {"embedding", "feature_extraction", "photo_batches"},
}
OTHERS_THAT_COUNT = {
    "callbacks/checkpoints.py",
    "callbacks/grid.py",
    "callbacks/sample_efficiency.py",
    "callbacks/trace_checks.py",
    "callbacks/traces.py",
    "metrics/arrays.py",
    "metrics/sample_efficiency/class_counts.py",
    "metrics/sample_efficiency/curves.py",
    "metrics/sample_efficiency/lazy_evaluation.py",
}
NAMED = [
    ("samples_seen", "Replay"),
    ("seen_products", "KernelRidge"),
    ("networks.folding", "LoRA"),
    (".comparison", None),
]


def reach(*modules: str) -> ReachedCode:
    code = ReachedCode()
    for module in modules:
        code.add(module)
    return code


def counts(file: Path) -> bool:
    """Whether a file can change a count, by the list above."""
    path = file.relative_to(ROOT)
    room = path.parent.as_posix()
    listed = room in COUNTED_ROOMS and path.stem not in {"__init__", *COUNTED_ROOMS[room]}
    return listed or path.as_posix() in OTHERS_THAT_COUNT


def test_the_files_that_can_change_a_count_are_reached_and_no_others() -> None:
    reached = reach(*STREAMS, *(method.module for method in METHODS.values())).suite
    files = {name.partition(".")[2].replace(".", "/") + ".py" for name in reached}
    assert files == {file.relative_to(ROOT).as_posix() for file in FILES if counts(file)}


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["code", "comment", "docstring", "message"])
def test_edits_of_every_file_count_if_they_can_change_a_count(edit: str) -> None:
    for file in FILES:
        source = file.read_text()
        digests = [parse(text.encode(), "headstart", is_own=False).digest for text in (source, _edited(source, edit))]
        assert (digests[0] != digests[1]) == (edit == "code"), file


def _edited(source: str, edit: str) -> str:
    if edit == "comment":
        return f"# A comment.\n{source}\n# Another.\n"
    if edit == "code":
        return source + "\nADDED = 1\n"
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            edit == "docstring"
            and isinstance(node, ast.FunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body[0] = ast.Expr(ast.Constant("Another sentence."))
        if edit == "message" and isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = [_another_sentence() if _is_text(each) else each for each in node.exc.args]
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _another_sentence() -> ast.JoinedStr:
    return ast.JoinedStr([ast.Constant("another sentence of "), ast.FormattedValue(ast.Name("a"), -1)])


@pytest.mark.parametrize(("edited", "method"), NAMED)
def test_an_edit_of_a_reached_file_changes_the_digest(
    edited: str, method: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Comparison.__module__ if method is None else METHODS[method].module
    before, beside = reach(root).digests, reach(METHODS["NearestClassMean"].module).digests
    original = reached_code._source_of

    def source_of(origin: Origin) -> bytes:
        return original(origin) + b"\nADDED = 1\n" * origin.name.endswith(edited)

    monkeypatch.setattr(reached_code, "_source_of", source_of)
    assert list(before) == ["headstart"]
    assert reach(root).digests != before
    assert reach(METHODS["NearestClassMean"].module).digests == beside


def test_packages_that_code_imports_count_by_name_and_version() -> None:
    packages = reach(METHODS["ScikitLearnClassifier"].module).packages
    assert {"lightning", "numpy", "torch"} <= packages.keys()
    assert not {"filelock", "jsonargparse", "wandb"} & packages.keys()
