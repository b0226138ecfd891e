"""Every block of commands in the README and in docs/ runs, page by page and in order, or says why not.

They run in a copy of the checkout, and downloads come from a local server.
"""

import re
import shutil
from pathlib import Path

import pytest

from headstart.tests.material.checkout import Server, Shell, open_shell, serve
from headstart.tests.material.code_blocks import Block, blocks
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

README = ROOT / "README.md"
PAGES = [README, *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/tutorials/*.md"))]
LANGUAGES = {"bash", "python", "text", "yaml", "json", "toml", "csv", "html", "math", "mermaid", "bibtex"}
RUN = {page: [block for block in blocks(page) if not block.reason] for page in PAGES}
COMMANDS = [page for page in PAGES if any(b.language in ("bash", "python") and not b.file for b in RUN[page])]
TOOLS = all(map(shutil.which, ("bash", "make", "git"))) and (ROOT / ".git").exists()
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
# Steps from `wandb` on need an account; those before have none.
ACCOUNT = "export WANDB_API_KEY=0123456789012345678901234567890123456789 WANDB_BASE_URL="


def test_every_block_has_a_language_that_says_whether_it_runs() -> None:
    assert {block.language for page in PAGES for block in blocks(page)} <= LANGUAGES
    # The README is all run, and its table has the columns that a screen of 80 characters shows.
    assert [block for block in blocks(README) if block.reason or block.file] == []
    table = next(block.text for block in blocks(README) if block.language == "text")
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.skipif(not TOOLS, reason="needs bash, make, and a checkout by git")
@pytest.mark.parametrize("page", COMMANDS, ids=[str(page.relative_to(ROOT)) for page in COMMANDS])
def test_the_commands_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_LEDGER")
    checkout = tmp_path / "checkout"
    folders = {"TORCH_HOME": str(tmp_path / "torch"), "PIP_TARGET": str(tmp_path / "installed")}
    with serve(tmp_path / "server") as server, open_shell(checkout, server.url, {**ENVIRONMENT, **folders}) as shell:
        run(shell, "source .venv/bin/activate")
        for block in RUN[page]:
            run_block(shell, server, checkout, block)
    if page == README:
        named = re.findall(r"`(runs/[^`\n]+)`", README.read_text())
        assert [name for name in named if not (checkout / name).exists()] == []


def run_block(shell: Shell, server: Server, checkout: Path, block: Block) -> None:
    if block.file:
        (checkout / block.file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / block.file).write_text(block.text)
        return

    commands = block.commands() if block.language == "bash" else []
    if block.language == "python":
        (checkout / "example.py").write_text(block.text)
        commands = ["python example.py"]
    for command in commands:
        if command.startswith("wandb"):
            run(shell, f"{ACCOUNT}{server.url}")
        run(shell, command)


def run(shell: Shell, command: str) -> None:
    code, printed = shell.run(command)
    assert code == 0, f"{command}\n{printed[-3000:]}"
