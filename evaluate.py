"""Evaluate what was run: `python evaluate.py sample-efficiency runs/demo` scores a run of train.py again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import jsonargparse

from output.parser import OneLineErrorParser, import_from_working_folder, one_line_errors
from output.sub_commands import load, placeholder, plain_arguments
from output.version import describe_version

COMMANDS = {
    "sample-efficiency": "evaluation.sample_efficiency:sample_efficiency",
    "leaderboard": "evaluation.leaderboard.leaderboard:leaderboard",
    "report": "evaluation.report.report:report",
    "performances": "evaluation.performances:performances",
    "cka": "evaluation.alignment.cka:cka",
    "cka-search": "evaluation.alignment.cka_search:cka_search",
    "cka-registry": "evaluation.alignment.cka_registry:cka_registry",
    "submissions-report": "evaluation.alignment.submissions_report:submissions_report",
    "stability": "evaluation.stability.stability:stability",
    "sources-report": "evaluation.sources_report.sources_report:sources_report",
    "audit": "evaluation.audit.audit:audit",
    "transferability": "evaluation.sources.transferability:transferability",
    "target-selection": "evaluation.target_selection.target_selection:target_selection",
    "list": "evaluation.listing:list_choices",
}
# What these are about comes without a name; what others cannot do without is named like any option.
POSITIONAL = {"sample-efficiency", "leaderboard", "report", "performances", "submissions-report", "list"}
# Options that several values may follow.
LISTS = {"--make"}
# What may come several times without a name.
SEVERAL = {"leaderboard", "submissions-report"}
SWITCHES = {"--overwrite", "--check", "--complete"}


def main(args: Sequence[str] | None = None) -> None:
    """Run one sub-command.

    Args:
        args: The sub-command and its options; those of the process by default.
    """
    given = plain_arguments(sys.argv[1:] if args is None else args, SEVERAL, SWITCHES, LISTS)
    with one_line_errors():
        if "--version" in given:
            print(describe_version())
            return
        import_from_working_folder()
        # Importing what is not asked for would cost seconds, and a list of the sub-commands needs none of them.
        jsonargparse.auto_cli(
            {name: load(place) if name in given else placeholder(place) for name, place in COMMANDS.items()},
            args=given,
            as_positional=bool(POSITIONAL.intersection(given)),
            description="Evaluate runs, the alignment of representations, and transferability metrics.",
            parser_class=OneLineErrorParser,
        )


if __name__ == "__main__":
    main()
