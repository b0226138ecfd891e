"""The pages of the reference: one for each command, with its help, and the entries of the Python API.

mkdocstrings fills an entry from the docstring of its public name.
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from unittest.mock import patch

from headstart.cli.command_line import run_command
from headstart.cli.commands import COMMAND_BY_NAME, COMMANDS, EVALUATIONS, TASKS
from headstart.docs.hooks.links import ROOT

COMMAND_FOLDER = "reference/commands"
# Helps of `headstart train` beside those of its tasks.
FURTHER = (["--data.help=FeatureStream"], ["--data.help=PhotoStream"], ["--trainer.help"])
INDEX = """\
# Commands

Options are written `--name value` or `--name=value`. A switch can stand alone: `--overwrite` means
`--overwrite=true`. A list is written `'[a, b]'`. Most commands also read options from a YAML file: `--config FILE`.
`--print_config` prints the options as such a file.
"""
OUTSIDE = """\
In a checkout, `train.py`, `evaluate.py` and `sweep.py` are the same commands.
"""
PYTHON_FOLDER = "reference/python"
# The names of these packages are those of their `__all__`.
PACKAGES = {
    "headstart": "The functions of the package itself.",
    "headstart.modules": "Transfer methods, backbones and the comparison.",
    "headstart.datamodules": "Data sets and the streams that feed them.",
    "headstart.metrics": "Metrics over arrays. They need no file, no command and no torch.",
    "headstart.callbacks": "Callbacks of a comparison.",
}
MODULES = {
    "headstart.estimators": ("Classifiers with scikit-learn's interface.", ["HeadstartClassifier"]),
    "headstart.output.errors": ("Errors that a user can act on.", ["UserError", "UsageError"]),
}
EVALUATION = (
    "The functions of the evaluation commands. They take the same arguments and return what the JSON files hold."
)


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the command line, each as its path in docs/ and its text."""
    lines = [INDEX]
    for question, group in COMMANDS.items():
        links = [f"| [`{name}`]({_file(name)}) | {page.summary} |" for name, page in group.items()]
        lines += [f"## {question}", "", "| command | what it does |", "| --- | --- |", *links, ""]
    yield f"{COMMAND_FOLDER}/README.md", "\n".join([*lines, OUTSIDE])

    for name in COMMAND_BY_NAME:
        helps = {name: _help_of([*name.split(), "--help"])}
        if name == "train":
            options_of_tasks = [[f"--task={task}", "--help"] for task in TASKS] + list(FURTHER)
            helps = {" ".join([name, *options]): _help_of([name, *options]) for options in options_of_tasks}
        if name == "portal admin":
            # Its packages are optional for everything but the site.
            from headstart.portal.admin import COMMANDS as ORGANISERS

            helps |= {" ".join([name, *words]): _help_of([*name.split(), *words, "--help"]) for words in ORGANISERS}
        shown = [f"## `headstart {title}`\n\n```text\n{text}\n```\n" for title, text in helps.items()]
        yield f"{COMMAND_FOLDER}/{_file(name)}", "\n".join([f"# `headstart {name}`\n", *shown])


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.md"


def _help_of(words: Sequence[str]) -> str:
    """Return what a command prints as its help."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit), patch.dict(os.environ, COLUMNS="100"):
        run_command(words, COMMAND_BY_NAME)
    return printed.getvalue().strip().replace(f"{ROOT}/", "")


def python_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the Python API, each as its path in docs/ and its text."""
    contents = {name: (text, list(import_module(name).__all__)) for name, text in PACKAGES.items()} | MODULES
    rows = [f"- [`{name}`]({name}.md): {text}" for name, (text, _) in contents.items()]
    rows.append(f"- [`headstart.evaluation`](headstart.evaluation.md): {EVALUATION.partition('. ')[0]}.")
    yield f"{PYTHON_FOLDER}/README.md", "\n".join(["# Python API", "", *rows])

    for name, (text, names) in contents.items():
        yield f"{PYTHON_FOLDER}/{name}.md", _page(name, text, [f"{name}.{member}" for member in names])
    yield f"{PYTHON_FOLDER}/headstart.evaluation.md", _page("headstart.evaluation", EVALUATION, list(_functions()))


def _functions() -> Iterator[str]:
    for command in EVALUATIONS.values():
        module, _, name = command.function.partition(":")
        yield f"headstart.{module}.{name or module.rpartition('.')[2]}"


def _page(name: str, text: str, entries: list[str]) -> str:
    return "\n\n".join([f"# `{name}`", text, *(f"::: {entry}" for entry in entries)])
