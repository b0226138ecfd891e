"""The pages of the command line: one for each command, with its help, and a list of all."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from unittest.mock import patch

from headstart.cli.command_line import run_command
from headstart.cli.commands import COMMAND_BY_NAME, COMMANDS, TASKS
from headstart.docs.hooks.links import ROOT

FOLDER = "reference/commands"
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


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the command line, each as its path in docs/ and its text."""
    lines = [INDEX]
    for question, group in COMMANDS.items():
        links = [f"| [`{name}`]({_file(name)}) | {each.summary} |" for name, each in group.items()]
        lines += [f"## {question}", "", "| command | what it does |", "| --- | --- |", *links, ""]
    yield f"{FOLDER}/README.md", "\n".join([*lines, OUTSIDE])

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
        yield f"{FOLDER}/{_file(name)}", "\n".join([f"# `headstart {name}`\n", *shown])


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.md"


def _help_of(words: Sequence[str]) -> str:
    """Return what a command prints as its help."""
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit), patch.dict(os.environ, COLUMNS="100"):
        run_command(words, COMMAND_BY_NAME)
    return printed.getvalue().strip().replace(f"{ROOT}/", "")
