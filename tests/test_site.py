"""The site: every public name and command has an entry, it asks no other host, and broken links fail the build."""

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from headstart.cli.command_line import run_command
from headstart.cli.commands import COMMAND_BY_NAME
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()
pytest.importorskip("mkdocs")

QUIET = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]*?src="?(?:https?:)?//|<link(?![^>]*canonical)[^>]*?href="?(?:https?:)?//'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={folder}"]
    process = subprocess.run(command, cwd=ROOT, env=QUIET, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return folder


def public_names() -> Iterator[str]:
    for path in ROOT.glob("*/__init__.py"):
        package = f"headstart.{path.parent.name}"
        if "__all__" in path.read_text():
            yield from (f"{package}.{name}" for name in importlib.import_module(package).__all__)
    yield from (f"headstart.{name}" for name in importlib.import_module("headstart").__all__)
    yield from ("headstart.estimators.HeadstartClassifier", "headstart.output.errors.UserError")


@pytest.mark.slow
def test_every_public_name_has_an_entry(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference" / "python").glob("*.html"))
    names = set(public_names())
    assert len(names) > 90
    assert {name for name in names if f'id="{name}"' not in pages} == set()


@pytest.mark.slow
def test_every_command_has_a_page_with_all_options_of_its_help(site: Path) -> None:
    missing = []
    for name in COMMAND_BY_NAME:
        page = site / "reference" / "commands" / f"{name.replace(' ', '-')}.html"
        assert page.is_file()
        text = unescape((page if name != "demo" else page.with_name("train.html")).read_text())
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
            run_command([*name.split(), "--help"], COMMAND_BY_NAME)
        options = re.findall(r"^  (?:-\w, )?(--\w[\w.]*\w)(?=[ ,.]|$)", printed.getvalue(), re.MULTILINE)
        missing += [(name, option) for option in options if option not in text]
    assert missing == []
    assert "headstart portal admin teams add</code>" in (page.with_name("portal-admin.html")).read_text()


@pytest.mark.slow
def test_pages_load_nothing_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = {")


def test_a_link_out_of_the_pages_leads_to_the_repository() -> None:
    links = importlib.import_module("headstart.docs.hooks.links")
    warnings: list[str] = []
    text = "[a](../Makefile) [b](../configs) [c](x.md#y) [d](n/b.ipynb) [e](https://x.org) [f](../none.md)\n"
    text += "```text\n[g](../x)\n```"
    shown = links.outward(text, "page.md", "https://host/us", warnings.append)
    assert shown.startswith(
        "[a](https://host/us/blob/main/Makefile) [b](https://host/us/tree/main/configs) [c](x.md#y) [d](n/b.md) "
        "[e](https://x.org)"
    )
    assert shown.endswith("[g](../x)\n```")
    assert warnings == ["page.md links to ../none.md, which does not exist"]
