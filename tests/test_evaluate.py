"""The entry of the evaluation: what it imports, lists and finds in the working folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.cli.commands import EVALUATIONS
from headstart.tests.material.mistakes import error_line

ROOT = Path(evaluate.__file__).parent
TORCH = ("lightning", "torch", "torchmetrics", "torchvision", "timm")


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the entry by its path from a folder, and let it say at its end what it has imported of torch."""
    script = (
        "import atexit, runpy, sys\n"
        f"atexit.register(lambda: print('imported', *({set(TORCH)!r} & {{*sys.modules}})))\n"
        f"sys.argv, sys.path[0] = {['evaluate.py', *args]!r}, {str(ROOT)!r}\n"
        f"runpy.run_path({str(ROOT / 'evaluate.py')!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("--version", 0),
        ("ckaa", 2),
        ("transferability --help", 0),
        ("transferability --metrics=[logmee]", 2),
        ("transferability --targets.x=headstart.datamodules.CatsAndDogs --targets.x.roto=y", 2),
        ("list methods", 0),
        ("list datasets", 0),
    ],
)
def test_mistakes_and_help_import_no_torch(typed: str, code: int, tmp_path: Path) -> None:
    process = run(tmp_path, *typed.split())
    assert process.returncode == code, process.stderr
    assert process.stdout.splitlines()[-1] == "imported"
    assert len(process.stderr.splitlines()) == (1 if code else 0)


def test_classes_of_the_working_folder_are_found_after_the_suites(tmp_path: Path) -> None:
    (tmp_path / "my_photos.py").write_text(
        "from headstart.datamodules import PhotoSource\n"
        "from headstart.output.errors import UserError\n\n\n"
        "class Mine(PhotoSource):\n"
        "    name = 'mine'\n\n"
        "    def prepare(self, cache):\n"
        "        raise UserError('root: it was found')\n\n"
        "    train = validation = prepare\n"
    )
    for name in ("metrics.py", "store.py", "contract.py"):
        (tmp_path / name).write_text("raise RuntimeError('of the working folder')\n")
    process = run(tmp_path, "transferability", "--targets.x=my_photos.Mine")
    assert process.returncode == 1
    assert process.stderr == "error: targets.x.root: it was found\n"


# Inputs that are not there, and a file of results of another origin where the command writes.
ABSENT = {
    "sample-efficiency": (["nowhere", "--output=old.json"], "old.json"),
    "leaderboard": (["nowhere"], "runs/leaderboard/leaderboard.json"),
    "fit": (["nowhere"], "runs/fit/results.json"),
    "predict": (["nowhere", "photos"], "predictions.csv"),
    "forecast": (["nowhere"], "runs/forecast/forecast.json"),
    "report": (["nowhere"], "runs/leaderboard.json"),
    "cka": (["--submission=nowhere.json"], "runs/cka/score.json"),
    "cka-search": (["--team=red", "--size=2", "--registry=nowhere.json"], "runs/cka-search/search.json"),
    "cka-registry": (["--check", "--registry=nowhere.json"], "old.json"),
    "challenge-bundle": (
        ["--platform=evalai", "--rules=realign_2026", "--output=out", "--registry=nowhere.json"],
        "out/realign_2026.zip",
    ),
    "transferability": (["--targets.a=DrawnPets", "--registry=nowhere.json"], "runs/transferability/scores.csv"),
    "target-selection": (
        ["--source=a", "--dataset=DrawnPets", "--registry=nowhere.json"],
        "runs/target_selection/scores.csv",
    ),
    "performances": (["nowhere"], "runs/performances.csv"),
    "stability": (["--table=nowhere.csv"], "runs/stability/stability.json"),
    "audit": (["--table=nowhere.csv"], "runs/audit/audit.json"),
    "published": (["parc_all", "--file=nowhere.csv"], "runs/published/parc_all/audit.json"),
}


def test_missing_inputs_are_reported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {*ABSENT, "list"} == set(EVALUATIONS)
    lines = {}
    for name, (options, old) in ABSENT.items():
        (tmp_path / old).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / old).write_text("{}")
        lines[name] = error_line(capsys, lambda: evaluate.main([name, *options, "--logger=false"]), code=1)  # noqa: B023
    assert not {name: line for name, line in lines.items() if "nowhere" not in line or "overwrite" in line}
