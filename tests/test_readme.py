"""Every command of the README, in order and word for word, in a copy of the checkout; downloads from a local server."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from headstart.tests.material.checkout import ARCHIVES, WEIGHTS, Shell, open_shell, serve
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

TOOLS = all(map(shutil.which, ("bash", "make", "git"))) and (ROOT / ".git").exists()
pytestmark = pytest.mark.skipif(not TOOLS, reason="needs bash, make, and a checkout by git")

README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Code spans of the text, and values that replace the reader's own.
NAMED = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", BLOCK.sub("", README))]
OWN = {"CHECKOUT": ".", "FOLDER": "photos", "FILE": "weights.pth", " ...": ""}
# The README mentions that `make demo-sources` ran before.
AGAIN = ("demo_sources.yaml", "demo_targets.yaml")
# The tests are collected only, lest they run themselves; what the make above this test was told is not for these.
ENVIRONMENT = {"PYTEST_ADDOPTS": "--collect-only --quiet", "MAKEFLAGS": "", "ARGS": "", "no_proxy": "127.0.0.1"}
# The steps from here on need an account; those before have none.
ACCOUNT = "export WANDB_API_KEY=0123456789012345678901234567890123456789 WANDB_BASE_URL="


def digests(folder: Path) -> dict[Path, str]:
    # The ledger grows with every run.
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "ledger"]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(shell: Shell, command: str) -> str:
    code, printed = shell.run(command)
    assert code == 0, f"{command}\n{printed[-3000:]}"
    return printed


@pytest.mark.slow
def test_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_LEDGER")
    checkout, server_folder = tmp_path / "checkout", tmp_path / "server"
    environment = {**ENVIRONMENT, "TORCH_HOME": str(tmp_path / "torch")}
    with serve(server_folder) as server, open_shell(checkout, server.url, environment) as shell:
        clean = {path.name for path in checkout.iterdir()}
        for kind, block in BLOCK.findall(README):
            if kind == "python":
                (checkout / "my_method.py").write_text(block)
                continue
            for command in block.splitlines():
                if command.startswith("wandb"):
                    run(shell, f"{ACCOUNT}{server.url}")
                before = digests(checkout / "runs")
                run(shell, command)
                after = digests(checkout / "runs")
                replaced = [path for path in before if after.get(path) != before[path]]
                assert replaced == [] or command.endswith(AGAIN), f"{command} replaces {replaced}"
        check_what_is_named(checkout, shell)
    assert {path.name for path in checkout.iterdir()} == clean | {"runs", "my_method.py"}
    assert set(server.fetched) == {*ARCHIVES, *(f"{name}.pth" for name in WEIGHTS)}
    # torchvision looks where its archives are before it fetches them.
    once = [name for name in server.fetched if not name.endswith(".tar.gz")]
    assert len(once) == len(set(once))
    assert "seed_everything" in next(request for request in server.asked if "upsertSweep" in request)


def check_what_is_named(checkout: Path, shell: Shell) -> None:
    """Check that the folders and files of the text are there, and that its options and commands are taken."""
    written = [name for name in NAMED if name.startswith("runs/")]
    assert len(written) > 10
    assert [name for name in written if not (checkout / name).exists()] == []
    for results in checkout.glob("runs/*/results.json"):
        document = json.loads(results.read_text())
        # A fitted classifier has no traces.
        if "expected_accuracy" in document:
            continue
        assert document["complete"]
        if "task" in document:
            continue
        lazy = document["criterion"]["evaluation"] == "lazy"
        drawn = ("criterion_reached",) if lazy else ("learning_curves", "criterion_reached")
        figures = {f"{name}.png" for name in drawn}
        assert {"curves.npz", "config.yaml", *figures} <= {path.name for path in results.parent.iterdir()}
    for kind in re.findall(r"`(\w+)`", README.partition("`headstart list` knows")[2].partition(".")[0]):
        assert run(shell, f"headstart list {kind}").count("\n") > 1
    options = run(shell, "headstart cka --help")
    ours = ("--data", "--model", "--criterion", "--trainer", "--results")
    for name in NAMED:
        for placeholder, value in OWN.items():
            name = name.replace(placeholder, value)
        if name.startswith(ours):
            run(shell, f"headstart train --config configs/cats_and_dogs.yaml {name} --print_config")
        elif name.startswith("--"):
            assert re.search(rf"{name.partition('=')[0]}\b", options)
            run(shell, f"headstart cka {name if '=' in name else ''} --print_config")
        elif name.startswith("python "):
            run(shell, f"{name} --print_config")
        elif name.startswith("configs/"):
            assert (checkout / name).exists()
