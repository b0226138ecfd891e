"""Edits that can change a count, made in a user's project: each has another key, or one that is never stored."""

import datetime
import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headstart.modules import NearestClassMean, Replay, running_code
from headstart.modules.methods.catalogue import METHODS
from headstart.modules.provenance import code_of, describe_method, doubts_about, user_digests
from headstart.modules.run_key import RunKey
from headstart.tests.material.code_edits import CASES, MADE, RULE
from headstart.tests.material.own_project import describe, method, project
from headstart.tests.material.root import ROOT

CELL = """\
import numpy as np
from headstart.modules import NearestClassMean
F = np.minimum
class Mine(NearestClassMean):
    pass
"""


def test_edits_are_measured_again_and_the_same_code_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, unused = list[str](), {"unused.py": "S = 1\n", "unused.txt": "1"}
    for name, case in CASES.items():
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        monkeypatch.setenv("VOTE", "1.0")
        before = describe(folder, case.files, **case.options)
        again = describe(folder, unused, **case.options)

        edit = {}
        if case.edited == "VOTE":
            monkeypatch.setenv("VOTE", "3.0")
        else:
            assert case.files[case.edited].count("1.0") == 1, name
            edit = {case.edited: case.files[case.edited].replace("1.0", "3.0")}
        after = describe(folder, edit, **case.options)

        if before["doubts"] or before != again or before["key"] == after["key"]:
            wrong.append(f"{name}: {before['doubts']}")
    assert wrong == []
    assert len(CASES) >= 40


def test_the_key_has_all_that_determines_a_trace() -> None:
    key = RunKey({"seed": 0}, {"class": "Mine"}, {"headstart": "a", "mine": "b"}, "cpu")
    changes: list[dict[str, Any]] = [
        {"stream": {"seed": 1}},
        {"device": "cuda"},
        {"threads": key.threads + 1},
        {"versions": {**key.versions, "torch": "0"}},
        {"code": {**key.code, "headstart": "edited"}},
    ]
    others = [replace(key, **change) for change in changes]
    assert len({key.digest(), *(other.digest() for other in others)}) == 6
    # Methods are compared if all of this is the same.
    assert len({key.trace(0).stream, *(other.trace(0).stream for other in others)}) == 6
    for other in (replace(key, method={"class": "Other"}), replace(key, code={**key.code, "mine": "edited"})):
        assert other.trace(0).stream == key.trace(0).stream
        assert other.trace(0).method != key.trace(0).method
    assert key.trace(3) == replace(key.trace(0), ordering=3)
    assert {"torch", "torchvision", "timm", "lightning", "numpy"} <= key.describe()["stream"].keys()


def test_code_without_a_file_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, cell)
    with monkeypatch.context() as patch:
        patch.delattr(sys.modules["__main__"], "__file__")
        assert "__main__.Mine has no source file" in doubts_about(cell["Mine"](), {})
        digests = [user_digests([cell["Mine"]]) for _ in range(2)]
    assert digests[0] != digests[1]
    stored = [
        name for name, parts in MADE.items() if not describe(tmp_path, {"mine.py": method(**parts), **RULE})["doubts"]
    ]
    assert stored == []
    # A cell may patch whatever was imported.
    with project(tmp_path, {"mine.py": method()}):
        mine = importlib.import_module("mine").Mine()
        assert doubts_about(mine, {}) == []
        monkeypatch.delattr(sys.modules["__main__"], "__file__")
        assert "notebook" in doubts_about(mine, {})[0]
        assert doubts_about(NearestClassMean(), {}) == []


def test_code_that_packages_make_is_theirs(tmp_path: Path) -> None:
    imports = "from collections import namedtuple\nfrom dataclasses import make_dataclass\nP = namedtuple('P', 'x')\n"
    files = {"mine.py": method(imports=imports + "D = make_dataclass('D', ['s'])", factor="D(P(1.0)).s.x")}
    assert describe(tmp_path, files)["doubts"] == []


def test_methods_of_the_suite_are_not_touched(tmp_path: Path) -> None:
    described = []
    for factor in ("1.0", "3.0"):
        with project(tmp_path, {"mine.py": method(factor=factor)}):
            importlib.import_module("mine")
            given = {"init_args": {"steps": 4}}
            described.append([describe_method(Replay(), given, 9), code_of(Replay(), given)])
    assert described[0] == described[1]
    assert list(described[0][1]) == ["headstart"]


def test_a_module_is_what_was_imported_until_it_is_reloaded(tmp_path: Path) -> None:
    with project(tmp_path, {"mine.py": method()}):
        module = importlib.import_module("mine")
        first = user_digests([module.Mine])
        (tmp_path / "mine.py").write_text(method(factor="3.00"))
        assert user_digests([module.Mine]) == first
        assert user_digests([importlib.reload(module).Mine]) != first


CHANGED = """\
import sys, time
import mine
from pathlib import Path
if len(sys.argv) > 1:
    time.sleep(0.1)
    file = Path("mine.py")
    text, times = file.read_text(), file.stat().st_mtime_ns
    file.write_text(text.replace("1.0", "3.0"))
    import os
    os.utime(file, ns=(times, times))
from headstart.modules.provenance import doubts_about
print(doubts_about(mine.Mine(), {}))
"""


@pytest.mark.slow
def test_a_file_that_changed_after_its_import_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(method())
    (tmp_path / "script.py").write_text(CHANGED)
    for options in ([], ["edit"]):
        command = [sys.executable, "script.py", *options]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
        assert ("mine.py was changed after Python started" in printed) == bool(options) == (printed != "[]")


def test_byte_code_of_another_version_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", None)
    found = []
    for factor in ("1.0", "3.0"):
        with project(tmp_path, {"mine.py": method(factor=factor)}):
            # Python runs the old code: size and time of the file are those of its byte code.
            os.utime(tmp_path / "mine.py", (10**9, 10**9))
            monkeypatch.setattr(sys, "dont_write_bytecode", False)
            found.append(doubts_about(importlib.import_module("mine").Mine(), {}))
    assert found[0] == []
    assert "Python runs the byte code of another version of" in found[1][0]


def test_a_file_that_was_removed_is_not_known(tmp_path: Path) -> None:
    with project(tmp_path, {"mine.py": method()}):
        module = importlib.import_module("mine")
        (tmp_path / "mine.py").unlink()
        assert f"{tmp_path / 'mine.py'} cannot be read" in running_code.doubts([module.Mine])


def test_hyperparameters_are_values_of_json() -> None:
    values = {"clip": float("inf"), "decay": (float("nan"), 0.5), "day": datetime.date(2020, 1, 2), "by": {1: None}}
    described = describe_method(NearestClassMean(), {"init_args": values}, 9)["hyperparameters"]
    assert described == {"clip": "inf", "decay": ["nan", 0.5], "day": "2020-01-02", "by": {"1": None}}
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    # Arguments that the signature does not name count, too.
    given = {"class_path": "headstart.modules.NearestClassMean", "init_args": {"a": 1}, "dict_kwargs": {"sign": -1}}
    described = describe_method(NearestClassMean(), given, 9)
    assert described["hyperparameters"] == {"a": 1, "sign": -1}
    assert "function" not in described


def test_the_function_that_made_a_method_counts(tmp_path: Path) -> None:
    source = "from headstart.modules import NearestClassMean as N\ndef make() -> N:\n    return N()\n"
    with project(tmp_path, {"makers.py": source}):
        made = importlib.import_module("makers").make()
        described = describe_method(made, {"class_path": "makers.make"}, 9)
        code = code_of(made, {"class_path": "makers.make"})
    assert described["function"] == "makers.make"
    assert "makers" in code


def test_a_subclass_says_anew_that_the_limit_does_not_matter() -> None:
    class Scheduled(NearestClassMean):
        pass

    assert describe_method(Scheduled(), {}, 70)["max_samples"] == 70
    for name in METHODS:
        shipped = getattr(importlib.import_module("headstart.modules"), name)
        assert describe_method(shipped, {}, 70)["max_samples"] is None


def test_tables_beside_the_code_count() -> None:
    files = {path for folder in running_code.FOLDERS for path in (ROOT / folder).rglob("*.*") if path.is_file()}
    counted = set(running_code._suite_files())
    assert {path.suffix for path in files - counted} <= {".pyc", ".safetensors"}
    assert ROOT / "modules" / "methods" / "catalogue.csv" in counted


@pytest.mark.slow
def test_digests_are_the_same_in_every_process() -> None:
    code = (
        "import json; from headstart.modules import Replay; from headstart.modules.provenance import describe_method;"
        "print(json.dumps(describe_method(Replay(), {'init_args': {'steps': 4}}, 9)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == describe_method(Replay(), {"init_args": {"steps": 4}}, 9)
