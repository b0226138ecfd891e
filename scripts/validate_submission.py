"""Validate a submission under the evaluation contract, without loading a model or an image.

    headstart validate SUBMISSION

prints one line and exits with 0 if the submission is valid. Otherwise it prints each problem on a line of its own
(document, JSON pointer, value, rule) and exits with 1. An invalid registry or catalog takes one line, and the
submission is then not checked. --check_files also requires the files of all stimuli: those of a Red Team's submission,
or of the whole catalog. --challenge adds the rules of a challenge.
"""

import argparse
import gc
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal, get_args

if not __package__ and "headstart" not in sys.modules:
    # When this file is run by its path, it imports the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parents[1] / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.contract.challenge import challenge_path, read_challenge, shipped_challenges
from headstart.contract.dataset_submissions import read_any_submission
from headstart.contract.documents import (
    CATALOG_MAX_BYTES,
    CATALOG_VARIABLE,
    REGISTRY_VARIABLE,
    catalog_path,
    read_catalog,
    read_registry,
    registry_path,
)
from headstart.contract.problems import ContractError
from headstart.contract.schema import CONTRACT_VERSION, Track
from headstart.contract.stimulus_files import ROOT_VARIABLE, locate_stimuli
from headstart.contract.submissions import DEFAULT_MAX_BYTES, Submission

Document = Literal["registry", "catalog", "challenge", "submission", "stimuli"]


def main(args: Sequence[str] | None = None) -> None:
    """Validate one submission, print the verdict and exit.

    Args:
        args: The submission and options; those of the process by default.

    Raises:
        SystemExit: With 0 for a valid submission, 1 for another, 2 for wrong options, 130 after Ctrl-C.
    """
    options = _parse(args)
    try:
        submission, errors = _validate(options)
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None
    if options.json:
        print(_as_json(options, submission, errors))
    elif submission is None:
        print("\n".join(line for kind, error in errors.items() for line in _lines(kind, error)))
    else:
        print(_verdict(submission))
    raise SystemExit(0 if submission else 1)


def _validate(options: argparse.Namespace) -> tuple[Submission | None, dict[Document, ContractError]]:
    """Return the submission if it is valid, otherwise the problems and their document."""
    errors: dict[Document, ContractError] = {}
    with _collecting("registry", errors):
        registry = read_registry(registry_path(options.registry))
    with _collecting("catalog", errors):
        catalog = read_catalog(catalog_path(options.catalog), options.max_catalog_bytes)
    challenge = None
    with _collecting("challenge", errors):
        if options.challenge is not None:
            challenge = read_challenge(challenge_path(options.challenge))
    if not errors:
        with _collecting("submission", errors):
            submission = read_any_submission(
                options.submission, registry, catalog, options.team, options.max_bytes, challenge
            )
    if not errors and options.check_files:
        with _collecting("stimuli", errors):
            locate_stimuli(catalog.stimuli if submission.team == "blue" else submission.stimuli)
    return None if errors else submission, errors


@contextmanager
def _collecting(kind: Document, errors: dict[Document, ContractError]) -> Iterator[None]:
    try:
        yield
    except ContractError as error:
        errors[kind] = error


def _lines(kind: Document, error: ContractError) -> list[str]:
    # The operator's documents do not concern the participant, so that their problems are shortened.
    if kind not in {"submission", "stimuli"}:
        return [str(error)]
    return [f"{error.document}: {problem}" for problem in error.problems]


def _parse(args: Sequence[str] | None) -> argparse.Namespace:
    # argparse, because the imports of anything more would take longer than the validation.
    source = "JSON file of a submission, or a data set: a folder, or hf:// and a name on the Hugging Face Hub."
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0], allow_abbrev=False)
    parser.add_argument("submission", help=source)
    parser.add_argument("--team", choices=get_args(Track), help="Team that it must be of; either by default.")
    parser.add_argument("--registry", help=f"Model registry; by default {REGISTRY_VARIABLE} or the project's own.")
    parser.add_argument("--catalog", help=f"Stimuli catalog; by default {CATALOG_VARIABLE} or the project's own.")
    shipped = f"Challenge whose rules hold: a YAML file, or one of {', '.join(shipped_challenges())}."
    parser.add_argument("--challenge", help=shipped)
    size = "Largest size of a submission in bytes (default: %(default)s)."
    parser.add_argument("--max_bytes", type=_positive, default=DEFAULT_MAX_BYTES, help=size)
    size = "Largest size of a catalog in bytes (default: %(default)s)."
    parser.add_argument("--max_catalog_bytes", type=_positive, default=CATALOG_MAX_BYTES, help=size)
    files = f"Look for the files of the stimuli, too, below the roots that {ROOT_VARIABLE} and its like name."
    parser.add_argument("--check_files", action="store_true", help=files)
    parser.add_argument("--json", action="store_true", help="Print the verdict and all problems as JSON.")
    return parser.parse_args(args)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def _verdict(submission: Submission) -> str:
    blue = submission.team == "blue"
    count = f"{len(submission.models)} models" if blue else f"{len(submission.stimuli)} stimuli"
    return f"valid: {submission.team.title()} Team submission of {count} under contract {submission.contract_version}"


def _as_json(options: argparse.Namespace, submission: Submission | None, errors: dict[Document, ContractError]) -> str:
    problems = [(kind, problem) for kind, error in errors.items() for problem in error.problems]
    document = {
        "valid": submission is not None,
        "contract_version": CONTRACT_VERSION if submission is None else submission.contract_version,
        "team": options.team if submission is None else submission.team,
        "submission": options.submission,
        "problems": [{"document": kind, **asdict(problem)} for kind, problem in problems],
    }
    return json.dumps(document, indent=1)


if __name__ == "__main__":
    # The process ends soon; with a large catalog, garbage collection would take a third of the time.
    gc.disable()
    main()
