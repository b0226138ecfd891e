"""Every command of the README, in order and word for word, in a copy of the checkout; downloads from a local server."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from headstart.tests.material.checkout import ARCHIVES, WEIGHTS, Shell, open_shell, serve
from headstart.tests.material.code_blocks import blocks
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

TOOLS = all(map(shutil.which, ("bash", "make", "git"))) and (ROOT / ".git").exists()

README = ROOT / "README.md"
# Code spans of the text.
NAMED = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", README.read_text(), flags=re.DOTALL | re.MULTILINE))
# The tests are collected only, lest they run themselves; what the make above this test was told is not for these.
# pip takes the requirements and the tools to build with from this environment, which stays as it is.
ENVIRONMENT = {
    "PYTEST_ADDOPTS": "--collect-only --quiet",
    "MAKEFLAGS": "",
    "ARGS": "",
    "no_proxy": "127.0.0.1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
}
# What `pip install` leaves in the checkout.
BUILT = {"build", "headstart.egg-info"}
# The steps from here on need an account; those before have none.
ACCOUNT = "export WANDB_API_KEY=0123456789012345678901234567890123456789 WANDB_BASE_URL="


def digests(folder: Path) -> dict[Path, str]:
    # The ledger grows with every run, and wandb's process may write its logs after a command has ended.
    kept = [path for path in folder.rglob("*") if not {"ledger", "wandb"} & {*path.relative_to(folder).parts[:-1]}]
    files = [path for path in kept if path.is_file()]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(shell: Shell, command: str) -> str:
    code, printed = shell.run(command)
    assert code == 0, f"{command}\n{printed[-3000:]}"
    return printed


@pytest.mark.slow
@pytest.mark.skipif(not TOOLS, reason="needs bash, make, and a checkout by git")
def test_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_LEDGER")
    checkout = tmp_path / "checkout"
    installed = tmp_path / "installed"
    environment = {**ENVIRONMENT, "TORCH_HOME": str(tmp_path / "torch"), "PIP_TARGET": str(installed)}
    with serve(tmp_path / "server") as server, open_shell(checkout, server.url, environment) as shell:
        clean = {path.name for path in checkout.iterdir()}
        run(shell, "source .venv/bin/activate")
        for block in blocks(README):
            assert (block.reason, block.file) == (None, None)
            if block.language == "python":
                (checkout / "example.py").write_text(block.text)
                accuracy = float(run(shell, "python example.py").split()[-1])
                assert accuracy > 0.75
            for command in block.commands() if block.language == "bash" else []:
                if command.startswith("wandb"):
                    run(shell, f"{ACCOUNT}{server.url}")
                before = digests(checkout / "runs")
                run(shell, command)
                after = digests(checkout / "runs")
                replaced = [path for path in before if after.get(path) != before[path]]
                # `make demo` ran it before, which a reader without a checkout has not.
                assert replaced == [] or command == "headstart demo", f"{command} replaces {replaced}"
        check_what_is_named(checkout, shell)
    assert (installed / "headstart" / "configs" / "demo.yaml").exists()
    assert {path.name for path in checkout.iterdir()} - BUILT == clean | {"runs", "photos", "example.py"}
    check_downloads(server.fetched)
    assert "seed_everything" in next(request for request in server.asked if "upsertSweep" in request)


def check_what_is_named(checkout: Path, shell: Shell) -> None:
    """Check that files of the text are there, that runs are complete, and that commands of the text exist."""
    written = [name for name in NAMED if name.startswith("runs/")]
    assert [name for name in written if not (checkout / name).exists()] == []
    complete = [json.loads(path.read_text()).get("complete", True) for path in checkout.glob("runs/*/results.json")]
    assert len(complete) > 3
    assert all(complete)
    for name in NAMED:
        if name.startswith("headstart "):
            assert name.split()[1] in run(shell, "headstart --help") or name == "headstart --help"
        if name.startswith("--"):
            run(shell, f"headstart train --config configs/cats_and_dogs.yaml {name} --print_config")


def check_downloads(fetched: list[str]) -> None:
    """Check that files are fetched, and fetched once."""
    assert set(fetched) <= {*ARCHIVES, *(f"{name}.pth" for name in WEIGHTS)}
    assert "cats_and_dogs_filtered.zip" in fetched
    # torchvision looks where its archives are before it fetches them.
    once = [name for name in fetched if not name.endswith(".tar.gz")]
    assert len(once) == len(set(once))


def test_the_output_of_the_demo_is_its_table() -> None:
    """The table has the columns that a screen of 80 characters shows."""
    table = next(block.text for block in blocks(README) if block.language == "text")
    assert max(map(len, table.splitlines())) <= 80
