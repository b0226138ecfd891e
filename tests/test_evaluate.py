"""The entry of the evaluation: what it imports, lists and finds in the working folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.output.version import describe_version

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
    ("args", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["ckaa"], 2),
        (["transferability", "--help"], 0),
        (["transferability", "--metrics=[logmee]"], 2),
        (["transferability", "--targets.x=headstart.datamodules.CatsAndDogs", "--targets.x.roto=y"], 2),
        (["target-selection", "--help"], 0),
        (["list", "methods"], 0),
        (["list", "datasets"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_and_help_import_no_torch(args: list[str], code: int, tmp_path: Path) -> None:
    process = run(tmp_path, *args)
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


@pytest.mark.parametrize("args", [["--version"], ["cka", "--version"], ["list", "methods", "--version"]])
def test_version(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.main(args)
    assert capsys.readouterr().out == f"{describe_version()}\n"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("--class-share=a-b", "--class_share=a-b"),
        ("--save-embeddings", "--save_embeddings"),
        ("--targets.my-pets=DrawnPets", "--targets.my-pets=DrawnPets"),
        ("--log-dir.a-b.c", "--log_dir.a-b.c"),
        ("runs/a-b", "runs/a-b"),
    ],
)
def test_dashes_of_an_option_alone_are_underscores(given: str, taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("jsonargparse.auto_cli", lambda *_, args, **__: seen.extend(args))
    evaluate.main(["cka", given])
    assert seen == ["cka", taken]


def test_a_shipped_configuration_is_given_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--models=[random]", "--metrics=[log_me]", "--targets={my-pets: DrawnPets}", "--logger=false"]
    options += ["--targets.my-pets.train_size=20", "--extraction.num_workers=0", "--output=out"]
    evaluate.main(["transferability", f"--config={ROOT}/configs/evaluation/demo_sources.yaml", *options])
    printed = capsys.readouterr().out
    assert "my-pets: 20 training photos" in printed
    assert " ".join(printed.split()).count("Higher scores are better. In brackets") == 1
