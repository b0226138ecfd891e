"""Evaluate what was run: `python evaluate.py sample-efficiency runs/demo` scores a run of train.py again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import jsonargparse

from output.parser import OneLineErrorParser, one_line_errors

COMMANDS = {
    "sample-efficiency": "evaluation.sample_efficiency:sample_efficiency",
    "performances": "evaluation.performances:performances",
    "cka": "evaluation.alignment.cka:cka",
    "cka-search": "evaluation.alignment.cka_search:cka_search",
    "stability": "evaluation.stability.stability:stability",
    "transferability": "evaluation.sources.transferability:transferability",
    "target-selection": "evaluation.target_selection.target_selection:target_selection",
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one sub-command.

    Args:
        args: The sub-command and its options; those of the process by default.
    """
    with one_line_errors():
        given = [_underscored(arg) for arg in (sys.argv[1:] if args is None else args)]
        # Importing all sub-commands would cost seconds; their help and a mistake in the name take all.
        asked = given[:1] if given and given[0] in COMMANDS else list(COMMANDS)
        jsonargparse.auto_cli(
            {name: _load(COMMANDS[name]) for name in asked},
            args=given,
            # What is evaluated comes without a name; what a command cannot do without is named like any option.
            as_positional=bool(given) and given[0] in ("sample-efficiency", "performances"),
            description="Evaluate runs, the alignment of representations, and transferability metrics.",
            parser_class=OneLineErrorParser,
        )


def _underscored(arg: str) -> str:
    """Let options be written with dashes, too."""
    name, equals, value = arg.partition("=")
    return f"--{name[2:].replace('-', '_')}{equals}{value}" if name.startswith("--") else arg


def _load(place: str) -> Callable[..., None]:
    module, name = place.split(":")
    function: Callable[..., None] = getattr(import_module(module), name)
    return function


if __name__ == "__main__":
    main()
