"""The pages of the command line: one for each command, with its options, and a list of all."""

import argparse
import sys
from collections.abc import Iterator
from inspect import cleandoc
from unittest.mock import patch

from jsonargparse import ArgumentParser

from headstart.benchmarks import __main__ as benchmarks
from headstart.cli.commands import COMMANDS, NAMED
from headstart.datamodules import FeatureStream, PhotoStream
from headstart.docs.hooks.option_tables import subcommands, table, tables
from headstart.docs.hooks.parsers import command_parsers, parser_of, task_parsers

FOLDER = "reference/commands"
STREAMS = (FeatureStream, PhotoStream)
TRAIN = """\
# `headstart train`

Compare transfer methods, or train one model.

```text
headstart train --config FILE [--OPTION=VALUE ...]
```

`configs/base.yaml` is read first, then every `--config` and option in turn. Later values win. Every option is also a
key of the configuration file: `--data.batch_size=8` is `batch_size: 8` below `data:`. The task says what is done.
"""
INDEX = """\
# Commands

Each command has a page with all of its options, their types and their defaults.

```text
headstart COMMAND [OPTIONS]
headstart COMMAND --help
headstart --version
```

Options are written `--name value` or `--name=value`. A switch can stand alone: `--overwrite` means
`--overwrite=true`. A list is written `'[a, b]'`. Most commands also read options from a YAML file: `--config FILE`.
`--print_config` prints the options as such a file.
"""
OUTSIDE = """\
In a checkout, `train.py`, `evaluate.py`, `sweep.py` and `scripts/validate_submission.py` are the same commands.
`python -m headstart.benchmarks NAME` runs a [benchmark](benchmarks.md).
"""


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the command line, each as its path in docs/ and its text."""
    yield f"{FOLDER}/README.md", _index()
    yield _path("demo"), _demo()
    yield _path("train"), _train()
    for name, parser in command_parsers():
        yield _path(name), "\n".join(_command(name, parser))
    yield f"{FOLDER}/benchmarks.md", "\n".join(_benchmarks())


def _path(name: str) -> str:
    return f"{FOLDER}/{name.replace(' ', '-')}.md"


def _index() -> str:
    parts = [INDEX]
    for question, group in COMMANDS.items():
        links = ([f"[`{name}`]({name.replace(' ', '-')}.md)", each.summary] for name, each in group.items())
        parts += [f"## {question}", "", *table(("command", "what it does"), links)]
    return "\n".join([*parts, OUTSIDE])


def _demo() -> str:
    summary, preset = NAMED["demo"].summary.capitalize(), " ".join(NAMED["demo"].preset)
    return (
        f"# `headstart demo`\n\n{summary}.\n\n```text\nheadstart demo [--OPTION=VALUE ...]\n```\n\n"
        f"It is `headstart train {preset}`, and has the [options of `headstart train`](train.md).\n"
    )


def _train() -> str:
    parts = [TRAIN]
    for task, parser in task_parsers():
        trainer = [group for group in parser._action_groups if _is_of_trainer(group)]
        parser._action_groups = [group for group in parser._action_groups if group not in trainer]
        parts += [f"## `--task={task}`", "", *tables(parser, level=3)]
        if task == "comparison":
            for stream in STREAMS:
                options = ArgumentParser()
                options.add_class_arguments(stream, "data", fail_untyped=False)
                parts += [f"### `--data={stream.__name__}`", "", *tables(options, level=4)]
            last, last._action_groups = parser, trainer
            shown = list(tables(last, level=3))[2:]
    return "\n".join([*parts, "## Options of Lightning's trainer", "", *shown])


def _is_of_trainer(group: argparse._ArgumentGroup) -> bool:
    return any(str(action.dest).startswith("trainer.") for action in group._group_actions) and group.title != "options"


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from (f"# `headstart {name}`", "")
    yield from (cleandoc(str(parser.description or NAMED[name].summary)), "")
    yield from ("```text", f"headstart {name}{_arguments(parser)} [OPTIONS]", "```", "")
    yield from tables(parser)
    for words, each in subcommands(parser).items():
        yield from (f"## `headstart {name} {words}`", "", str(each.description), "")
        yield from ("```text", f"headstart {name} {words}{_arguments(each)}", "```", "")
        yield from tables(each, level=3)


def _arguments(parser: argparse.ArgumentParser) -> str:
    """Return the arguments without a name, as they stand in a command."""
    actions = [action for action in parser._actions if not action.option_strings]
    return "".join(f" {str(action.dest).upper()}" for action in actions)


def _benchmarks() -> Iterator[str]:
    yield from ("# `python -m headstart.benchmarks`", "", "Measure speed, memory, or the coverage of intervals.", "")
    yield from ("```text", "python -m headstart.benchmarks NAME [OPTIONS]", "```", "")
    for name in benchmarks.find_benchmarks():
        with patch.object(sys, "argv", ["benchmarks", name]):
            parser = parser_of(benchmarks.main)
        yield from (f"## `{name}`", "", cleandoc(str(parser.description or "")), "")
        yield from tables(parser, level=3)
