"""Evaluate what was run: `python evaluate.py sample-efficiency runs/demo` scores a run of train.py again."""

from __future__ import annotations

from collections.abc import Sequence

import jsonargparse

from cli.parser import OneLineErrorParser, one_line_errors
from evaluation.sample_efficiency import sample_efficiency


def main(args: Sequence[str] | None = None) -> None:
    """Run one sub-command.

    Args:
        args: The sub-command and its options; those of the process by default.
    """
    with one_line_errors():
        jsonargparse.auto_cli(
            {"sample-efficiency": sample_efficiency},
            args=None if args is None else list(args),
            parser_class=OneLineErrorParser,
        )


if __name__ == "__main__":
    main()
