"""The options of `headstart train` and their help, whatever its task."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from lightning.pytorch.cli import LightningArgumentParser

from headstart.output.parser import OneLineErrorParser

# Option that an agent of Weights & Biases adds when it continues a run of a sweep.
AGENT_OPTION = "--_wandb="


class TaskParser(OneLineErrorParser, LightningArgumentParser):
    """Lightning's parser with errors of one line, and a help that leaves the trainer's many options to a second one.

    The description is the first lines of the help, the epilog the last ones, both printed as they are.

    Attributes:
        shown: Groups of options in the help, in order; '' stands for options in no group.
    """

    shown: ClassVar[tuple[str, ...]] = ("data", "data.backbone", "model", "results", "")

    def parse_args(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - a namespace
        """Parse options as the base class does, without those that an agent adds."""
        options = [arg for arg in (sys.argv[1:] if args is None else args) if not arg.startswith(AGENT_OPTION)]
        return super().parse_args(options, *rest, **kwargs)

    def format_help(self, *_: Any) -> str:
        """Return the help, with the options of the data first."""
        if "trainer" not in (self.groups or {}):
            return super().format_help()  # of one class
        return "\n".join((str(self.description), self._describe(), str(self.epilog)))

    def _describe(self) -> str:
        return sections(self, *self.shown)


class TrainerHelp(argparse.Action):
    """Prints the options of Lightning's trainer."""

    def __init__(self, option_strings: list[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=kwargs["help"])

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print them and exit."""
        assert isinstance(parser, TaskParser)
        print(sections(parser, "trainer"))  # noqa: T201 - help of many lines
        parser.exit()


def sections(parser: OneLineErrorParser, *names: str) -> str:
    """Return the help on some groups of options; '' stands for options in no group."""
    assert parser.groups is not None
    saved = parser._action_groups, parser.usage, parser.description, parser.epilog
    parser._action_groups = [parser.groups[name] if name else parser._optionals for name in names]  # type: ignore[misc]
    parser.usage, parser.description, parser.epilog = argparse.SUPPRESS, None, None
    try:
        return OneLineErrorParser.format_help(parser)
    finally:
        parser._action_groups, parser.usage, parser.description, parser.epilog = saved
