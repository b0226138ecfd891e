"""Whatever a user's files and packages are called, they are the user's, and the suite's own are `headstart.…` alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import headstart
from headstart.output.import_paths import SUITE_NAMES

ROOT = Path(headstart.__file__).parent
MINE = """mine = True
from headstart.modules import NearestClassMean

class Mine(NearestClassMean):
    pass
"""
# It takes all that has a name of the suite's; the stand-in for Hugging Face's package is installed.
USES_HF = """
import evaluate, metrics, modules.net, output, store, train
from headstart.modules import NearestClassMean

assert evaluate.load("accuracy") == "of Hugging Face"
assert all(each.mine for each in (metrics, modules.net, output, store, train))

class UsesHuggingFace(NearestClassMean):
    pass
"""
METHODS = {"mine": "metrics.Mine", "net": "modules.net.Mine", "hf": "uses_hf.UsesHuggingFace"}
COMMANDS = {
    "door": [sys.executable, str(ROOT / "train.py")],
    "command": [str(Path(sys.executable).parent / "headstart"), "train"],
    "module": [sys.executable, "-m", "headstart", "train"],
}


@pytest.fixture
def colliding(tmp_path: Path) -> Path:
    """Write a folder of files that have the suite's names, and one with an installed package of such a name."""
    folder = tmp_path / "mine"
    (folder / "modules").mkdir(parents=True)
    for name in SUITE_NAMES - {"__init__", "__main__", "evaluate", "modules", "tests"}:
        (folder / f"{name}.py").write_text(MINE)
    (folder / "modules" / "__init__.py").touch()
    (folder / "modules" / "net.py").write_text(MINE)
    (folder / "uses_hf.py").write_text(USES_HF)
    package = tmp_path / "installed" / "evaluate"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def load(name): return 'of Hugging Face'\n")
    return folder


@pytest.fixture
def options(small_comparison: Callable[[Path], list[str]], tmp_path: Path) -> list[str]:
    """Return the options of a small comparison of methods out of these files."""
    shared = [each for each in small_comparison(tmp_path) if not each.startswith("--model.methods")]
    return [*shared, *(f"--model.methods.{name}={path}" for name, path in METHODS.items())]


def environment(*folders: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}


def require_own(results: Path) -> None:
    """Check that a run has compared the user's classes."""
    document = json.loads(results.read_text())["methods"]
    classes = {name: its["key"]["class"] for name, its in document.items() if name != "baseline"}
    assert classes == METHODS


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS, "door in the suite's folder"])
def test_in_the_working_folder_or_on_the_path(
    command: str, colliding: Path, options: list[str], tmp_path: Path
) -> None:
    here, path = (colliding, []) if command in COMMANDS else (ROOT, [colliding])
    arguments = [*COMMANDS.get(command, [sys.executable, "train.py"]), *options]
    arguments.append(f"--trainer.default_root_dir={tmp_path / 'run'}")
    subprocess.run(arguments, cwd=here, env=environment(*path, tmp_path / "installed"), check=True)
    require_own(tmp_path / "run" / "results.json")


@pytest.mark.slow
@pytest.mark.parametrize(("door", "engine"), [(True, "ray"), (False, "workers")])
def test_in_the_processes_of_a_sweep(
    door: bool, engine: str, colliding: Path, options: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    sweep = [sys.executable, str(ROOT / "sweep.py")] if door else [*COMMANDS["command"][:1], "sweep"]
    seeds = {"seed_everything": {"values": [0, 1]}}
    content = {"program": "train.py", "method": "grid", "command": ["${program}", *options, "${args}"]}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump({**content, "parameters": seeds}))
    where = f"--ray={request.getfixturevalue('cluster').address}" if engine == "ray" else "--workers=2"
    command = [*sweep, str(tmp_path / "sweep.yaml"), f"--output={tmp_path / 'out'}", where]
    # The package is installed on every machine; `ray job submit` describes its runtime environment like this.
    job = {"runtime_env": {"env_vars": {"PYTHONPATH": str(tmp_path / "installed")}}}
    variables = {**environment(tmp_path / "installed"), "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(job)}
    subprocess.run(command, cwd=colliding, env=variables, check=True)
    paths = sorted((tmp_path / "out").glob("*/results.json"))
    assert len(paths) == 2
    for results in paths:
        require_own(results)


def run_python(code: str, folder: Path, *path: Path) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment(*path), capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_files_of_the_suite_have_one_name_each(tmp_path: Path) -> None:
    code = (
        "import headstart, importlib\n"
        "for name in ('modules', 'modules.method', 'metrics', 'evaluate', 'train', 'store.ledger', 'output'):\n"
        "    try:\n        importlib.import_module(name)\n        print('found', name)\n"
        "    except ModuleNotFoundError as error:\n        assert name.startswith(error.name), error\n"
    )
    assert run_python(code, ROOT, ROOT) == ""
    # The folder may be searched before the suite is imported, too.
    assert run_python(f"import importlib.util as u; u.find_spec('nothing')\n{code}", ROOT, ROOT, ROOT / "modules") == ""

    # A process that has the suite may run a door by its path.
    code = f"import headstart, runpy, sys; sys.argv[1:] = ['--version']; runpy.run_path({str(ROOT / 'sweep.py')!r}, "
    assert run_python(f"{code}run_name='__main__')", tmp_path).startswith("headstart ")


def test_other_files_beside_the_suite_are_found(tmp_path: Path) -> None:
    parts = ("__init__", "executed_code", "import_paths")
    for name in ("__init__.py", "__init__.pyi", *(f"output/{part}.py" for part in parts)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "my_method.py").write_text("print('found')")
    (tmp_path / "evaluate.py").write_text("print('taken for an installed package')")
    code = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('headstart', '__init__.py')\n"
        "sys.modules['headstart'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(sys.modules['headstart'])\n"
        "import my_method, evaluate"
    )
    output = run_python(code, tmp_path, tmp_path)
    assert output.startswith("found\n")
    assert output.splitlines()[-1] == "ModuleNotFoundError: No module named 'evaluate'"
