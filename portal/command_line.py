"""The options of the portal's commands, which are its settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from jsonargparse import Namespace

from headstart.output.parser import OneLineErrorParser
from headstart.portal.settings import CONFIG, Settings


def settings_parser(description: str) -> OneLineErrorParser:
    """Make a parser whose options are settings, over those of `--config`, over those of configs/portal/default.yaml.

    Args:
        description: What the command is for.
    """
    parser = OneLineErrorParser(description=description, default_config_files=[str(CONFIG)])
    parser.add_argument("--config", action="config", help="File of settings, in YAML.")
    parser.add_class_arguments(Settings)
    return parser


def make_settings(parsed: Namespace) -> Settings:
    """Make settings of what a parser found, and check them."""
    options: dict[str, Any] = {name: parsed[name] for name in Settings.__dataclass_fields__}
    return Settings(**options)


def parse_settings(description: str, args: Sequence[str] | None = None) -> Settings:
    """Read settings.

    Args:
        description: What the command is for.
        args: Options; those of the process by default.

    Raises:
        UserError: One is wrong.
    """
    parser = settings_parser(description)
    given = underscored(sys.argv[1:] if args is None else args)
    return make_settings(parser.instantiate(parser.parse_args(given)))


def underscored(args: Sequence[str]) -> list[str]:
    """Let options be written with dashes, too."""
    split = [arg.partition("=") for arg in args]
    return [
        f"--{name[2:].replace('-', '_')}{equals}{value}" if name.startswith("--") else name + equals + value
        for name, equals, value in split
    ]
