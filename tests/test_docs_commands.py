"""Every block of commands in docs/ runs, page by page and in order, or says why not."""

import shutil
from pathlib import Path

import pytest

from headstart.tests.material.checkout import Shell, open_shell, serve
from headstart.tests.material.code_blocks import Block, blocks
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

PAGES = [*sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/tutorials/*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LANGUAGES = {"bash", "python", "text", "yaml", "json", "toml", "csv", "html", "math", "mermaid"}
RUN = {page: [block for block in blocks(page) if not block.reason] for page in PAGES}
COMMANDS = [page for page in PAGES if any(b.language in ("bash", "python") and not b.file for b in RUN[page])]
TOOLS = all(map(shutil.which, ("bash", "make", "git"))) and (ROOT / ".git").exists()
# Tests are collected only.
ENVIRONMENT = {"PYTEST_ADDOPTS": "--collect-only --quiet", "MAKEFLAGS": "", "ARGS": "", "no_proxy": "127.0.0.1"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_has_a_language_that_says_whether_it_runs(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.slow
@pytest.mark.skipif(not TOOLS, reason="needs bash, make, and a checkout by git")
@pytest.mark.parametrize("page", COMMANDS, ids=[str(page.relative_to(ROOT)) for page in COMMANDS])
def test_the_commands_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTART_LEDGER")
    checkout = tmp_path / "checkout"
    environment = {**ENVIRONMENT, "TORCH_HOME": str(tmp_path / "torch")}
    with serve(tmp_path / "server") as server, open_shell(checkout, server.url, environment) as shell:
        shell.run("source .venv/bin/activate")
        for block in RUN[page]:
            run_block(shell, checkout, block)


def run_block(shell: Shell, checkout: Path, block: Block) -> None:
    if block.file:
        (checkout / block.file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / block.file).write_text(block.text)
        return

    commands = block.commands() if block.language == "bash" else []
    if block.language == "python":
        (checkout / "example.py").write_text(block.text)
        commands = ["python example.py"]
    for command in commands:
        code, printed = shell.run(command)
        assert code == 0, f"{command}\n{printed[-3000:]}"


def test_a_comment_before_a_block_says_whether_it_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```bash\none \\\n  two\n\nthree\n```\n<!-- not run: needs a GPU -->\n```bash\nfour\n```\n\n"
        "<!-- file: a/b.py -->\n```python\nimport os\n```\n"
    )
    first, second, third = blocks(page)
    assert first == Block("bash", "one \\\n  two\n\nthree\n", None, None)
    assert first.commands() == ["one    two", "three"]
    assert (second.reason, second.file) == ("needs a GPU", None)
    assert (third.language, third.reason, third.file) == ("python", None, "a/b.py")
