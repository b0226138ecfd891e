"""Hooks of MkDocs: make the pages of the reference and of the notebooks, and fill in what is defined elsewhere."""

import logging
import shutil
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from headstart.docs.hooks.links import ROOT, outward
from headstart.docs.hooks.notebook_pages import notebook_page
from headstart.docs.hooks.reference_pages import COMMAND_FOLDER, PYTHON_FOLDER, command_pages, python_pages

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
URLS = PROJECT["project"]["urls"]
# The package without the environment and the other folders of the checkout, which mkdocstrings would search, too.
PACKAGE = ROOT / "build" / ".api" / "headstart"
# MkDocs counts these warnings, and `--strict` makes them errors.
_log = logging.getLogger("mkdocs.hooks.headstart")


def on_startup(command: str, dirty: bool) -> None:
    """Link the package to a folder of its own, which mkdocstrings looks for when the configuration is read."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    folders = {name.split(".")[1] for name in PROJECT["tool"]["setuptools"]["packages"] if "." in name}
    for path in (*ROOT.glob("*.py*"), *(ROOT / folder for folder in folders)):
        (PACKAGE / path.name).symlink_to(path)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the addresses, and the navigation's folders."""
    config.site_url = URLS["Documentation"]
    # `repo_url` would have each page ask the repository's host for its stars.
    config.extra["social"] = [{"icon": "fontawesome/brands/github", "link": URLS["Repository"], "name": "Repository"}]
    made = [path for path, _ in _reference()]
    folders = {
        f"{folder}/": [path for path in made if path.startswith(folder)] for folder in (COMMAND_FOLDER, PYTHON_FOLDER)
    }
    config.nav = _fill(config.nav, Path(config.docs_dir), folders)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = list(_reference())
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        made.append((notebook.src_uri.replace(".ipynb", ".md"), notebook_page(Path(str(notebook.abs_src_path)))))
        files.remove(notebook)
    for path, text in made:
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links that leave docs/."""
    return outward(markdown, page.file.src_uri, URLS["Repository"], _log.warning)


@cache
def _reference() -> tuple[tuple[str, str], ...]:
    """Return the pages of the reference, each as its path in docs/ and its text."""
    return (*command_pages(), *python_pages())


def _fill(item: Any, docs: Path, folders: dict[str, list[str]]) -> Any:  # noqa: ANN401 - a part of the navigation
    """Return the navigation with the pages of a folder in place of its name, which ends in a slash."""
    if isinstance(item, list):
        return [_fill(entry, docs, folders) for entry in item]
    if isinstance(item, dict):
        return {title: _fill(entry, docs, folders) for title, entry in item.items()}
    if not item.endswith("/"):
        return item
    files = (path.relative_to(docs) for path in sorted(docs.glob(f"{item}*")) if path.suffix in {".md", ".ipynb"})
    return folders.get(item) or [path.with_suffix(".md").as_posix() for path in files]
