import datetime
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headstart.modules import NearestClassMean, Replay
from headstart.modules.method import Method
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.provenance import provenance, source_digests

ROOT = Path(__file__).parents[2]
MINE = '''\
"""A method of my own."""
from headstart.modules import NearestClassMean
from my_parts import Parent

SCALE = 2

def helper(x):
    return x * SCALE

class Mine(NearestClassMean, Parent):
    """It scales."""

    def forward(self, inputs):
        """Score."""
        return helper(super().forward(inputs))
'''
Write = Callable[..., ModuleType]
MAKERS = ("make", "make_other")
PARENT = "class Parent:\n    temperature = 1\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    monkeypatch.syspath_prepend(str(tmp_path))
    # Python takes byte code for that of another text of the same size and second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(mine: str = MINE, parent: str = PARENT) -> ModuleType:
        for name, text in (("my_parts", parent), ("my_method", mine)):
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("my_method")

    yield write
    for name in ("my_parts", "my_method"):
        sys.modules.pop(name, None)


def source_of(module: ModuleType, **hyperparameters: object) -> dict[str, str]:
    digests: dict[str, str] = provenance(module.Mine(), {"init_args": hyperparameters}, 100)["digests"]
    return digests


def test_all_files_of_ones_own_that_define_a_method_count(write: Write) -> None:
    assert list(source_of(write())) == ["headstart", "my_method", "my_parts"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2", "SCALE = 3"),
        ("x * SCALE", "x - SCALE"),
        ("helper(super", "abs(super"),
        ("(self, inputs)", "(self, inputs, k=1)"),
    ],
)
def test_an_edit_of_the_file_changes_its_digest_alone(write: Write, old: str, new: str) -> None:
    before, after = source_of(write()), source_of(write(MINE.replace(old, new)))
    assert {name for name in before if before[name] != after[name]} == {"my_method"}


def test_an_edit_of_an_inherited_file_changes_its_digest_alone(write: Write) -> None:
    before, after = source_of(write()), source_of(write(parent=PARENT.replace("1", "2")))
    assert {name for name in before if before[name] != after[name]} == {"my_parts"}


def test_comments_docstrings_and_layout_do_not_count(write: Write) -> None:
    changed = MINE.replace("It scales.", "It multiplies.").replace("SCALE = 2", "\n# Twice.\nSCALE = (2)")
    assert source_of(write()) == source_of(write(changed))


def test_code_is_that_which_was_imported(write: Write, tmp_path: Path) -> None:
    module, file = write(), tmp_path / "my_method.py"
    before = source_of(module)
    file.write_text(MINE.replace("SCALE = 2", "SCALE = 3"))
    assert source_of(module) == before
    assert before == source_of(write()) != source_of(write(MINE.replace("SCALE = 2", "SCALE = 3")))
    # A digest is computed once.
    first = source_of(module := write(parent=PARENT.replace("1", "2")))
    (tmp_path / "my_parts.py").write_text(PARENT)
    assert source_of(module) == first


def test_objects_that_hyperparameters_name_count(write: Write) -> None:
    module = write()
    parts = {"optimizer": {"class_path": "my_parts.Parent", "init_args": {}}}
    assert "my_parts" in provenance(NearestClassMean(), {"init_args": parts}, 9)["digests"]
    losses = {"losses": [f"{module.__name__}.helper"]}
    assert "my_method" in provenance(NearestClassMean(), {"dict_kwargs": losses}, 9)["digests"]
    ours = {"class_path": "torch.optim.SGD", "note": "no.such.thing", "text": "a sentence. Another"}
    assert list(provenance(NearestClassMean(), {"init_args": ours}, 9)["digests"]) == ["headstart"]


def test_arguments_that_the_signature_does_not_name_count() -> None:
    config = {"class_path": "headstart.modules.NearestClassMean", "init_args": {"a": 1}, "dict_kwargs": {"sign": -1}}
    described = provenance(NearestClassMean(), config, 9)
    assert described["hyperparameters"] == {"a": 1, "sign": -1}
    assert "function" not in described


def test_the_function_that_made_a_method_counts(write: Write) -> None:
    module = write(
        MINE + "\ndef make():\n    return NearestClassMean()\n\ndef make_other():\n    return NearestClassMean()\n"
    )
    described = [provenance(getattr(module, name)(), {"class_path": f"my_method.{name}"}, 9) for name in MAKERS]
    assert [one["function"] for one in described] == ["my_method.make", "my_method.make_other"]
    assert all(one["class"] == "headstart.modules.methods.nearest_class_mean.NearestClassMean" for one in described)
    assert all("my_method" in one["digests"] for one in described)


def test_hyperparameters_are_values_of_json() -> None:
    values = {"clip": float("inf"), "decay": (float("nan"), 0.5), "day": datetime.date(2020, 1, 2), "by": {1: None}}
    described = provenance(NearestClassMean(), {"init_args": values}, 9)["hyperparameters"]
    assert described == {"clip": "inf", "decay": ["nan", 0.5], "day": "2020-01-02", "by": {"1": None}}
    assert json.loads(json.dumps(described, allow_nan=False)) == described


def test_a_class_without_a_file_is_known_by_its_code_and_what_that_uses() -> None:
    """Classes of a notebook have no file."""
    lines = "def double(x):\n    return FACTOR * x\nclass Made:\n    def forward(self, x):\n        return double(x)\n"
    digests = []
    for text in ("FACTOR = 2\n" + lines, "\n\nFACTOR = 2\n" + lines, "FACTOR = 3\n" + lines):
        cell: dict[str, Any] = {"__name__": "nowhere"}
        exec(text, cell)
        digests.append(source_digests([cell["Made"]]))
    assert list(digests[0]) == ["nowhere.Made"]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.slow
def test_digests_are_the_same_in_every_process() -> None:
    code = (
        "import json; from headstart.modules import Replay; from headstart.modules.provenance import provenance;"
        "print(json.dumps(provenance(Replay(), {'init_args': {'steps': 4}}, 9)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == provenance(Replay(), {"init_args": {"steps": 4}}, 9)


def test_a_subclass_says_anew_that_the_limit_does_not_matter() -> None:
    class Scheduled(NearestClassMean):
        pass

    assert provenance(Scheduled(), {}, 70)["max_samples"] == 70
    # Whose module may look at the limit.
    for name in METHODS.keys() - {"OwnLightningModule"}:
        kind = getattr(importlib.import_module("headstart.modules"), name)
        assert issubclass(kind, Method)
        assert vars(kind)["independent_of_limit"] is True


def test_a_module_is_what_was_imported_until_it_is_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "a_module_to_reload.py"

    def digest(module: ModuleType) -> str:
        return source_digests([module.Kind])["a_module_to_reload"]

    file.write_text("class Kind:\n    value = 1\n")
    module = importlib.import_module("a_module_to_reload")
    first = digest(module)
    file.write_text("class Kind:\n    value = 22\n")
    assert digest(module) == first
    assert digest(importlib.reload(module)) != first
