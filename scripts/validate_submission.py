"""`headstart validate`: a submission under the evaluation contract, without loading a model or an image."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import module_from_spec, spec_from_file_location
from json import dumps
from pathlib import Path
from typing import Literal

from jsonargparse import auto_cli
from jsonargparse.typing import PositiveInt

if not __package__ and "headstart" not in sys.modules:
    # When this file is run by its path, it imports the suite around it, whether that is installed or not.
    _spec = spec_from_file_location("headstart", Path(__file__).resolve().parents[1] / "__init__.py")
    sys.modules["headstart"] = module_from_spec(_spec)  # type: ignore[arg-type]
    sys.modules["headstart"].__spec__.loader.exec_module(sys.modules["headstart"])  # type: ignore[union-attr]

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import (
    CATALOG_MAX_BYTES,
    catalog_path,
    read_catalog,
    read_registry,
    registry_path,
)
from headstart.contract.problems import ContractError
from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.stimulus_files import locate_stimuli
from headstart.contract.submissions import DEFAULT_MAX_BYTES, read_submission
from headstart.output.home import expand_home
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.output.printable import say

Document = Literal["registry", "catalog", "challenge", "submission", "stimuli"]


def validate(
    submission: str,
    team: Literal["blue", "red"] | None = None,
    registry: str | None = None,
    catalog: str | None = None,
    challenge: str | None = None,
    max_bytes: PositiveInt = DEFAULT_MAX_BYTES,
    max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
    check_files: bool = False,
    json: bool = False,
) -> None:
    """Validate a submission, and print one line if it is valid, else each problem on a line of its own.

    An invalid registry, catalog or challenge takes one line, and the submission is then not checked.

    Args:
        submission: JSON file of the submission.
        team: Team that it must be of; either by default.
        registry: Model registry. By default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog. By default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        challenge: Challenge whose rules hold: a YAML file, or the name of one in configs/challenge.
        max_bytes: Largest size of a submission, in bytes.
        max_catalog_bytes: Largest size of a catalog, in bytes.
        check_files: Whether to require the files of all stimuli: those of a Red Team's submission, or of the whole
            catalog.
        json: Whether to print the verdict and all problems as JSON.

    Raises:
        SystemExit: With 1 for a submission that is not valid.
    """
    errors: dict[Document, ContractError] = {}
    with _collecting("registry", errors):
        models = read_registry(registry_path(registry))
    with _collecting("catalog", errors):
        stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    rules = None
    with _collecting("challenge", errors):
        if challenge is not None:
            rules = read_challenge(challenge_path(challenge))
    if not errors:
        with _collecting("submission", errors):
            checked = read_submission(expand_home(submission), models, stimuli, team, int(max_bytes), rules)
    if not errors and check_files:
        with _collecting("stimuli", errors):
            locate_stimuli(stimuli.stimuli if checked.team == "blue" else checked.stimuli)

    if json:
        document = {
            "valid": not errors,
            "contract_version": CONTRACT_VERSION if errors else checked.contract_version,
            "team": team if errors else checked.team,
            "submission": submission,
            "problems": [
                {"document": kind, **asdict(problem)} for kind, error in errors.items() for problem in error.problems
            ],
        }
        for line in dumps(document, indent=1).splitlines():
            say(line)
    elif errors:
        for line in (line for kind, error in errors.items() for line in _lines(kind, error)):
            say(line)
    else:
        count = f"{len(checked.models)} models" if checked.models else f"{len(checked.stimuli)} stimuli"
        version = checked.contract_version
        say(f"valid: {checked.team.title()} Team submission of {count} under contract {version}")
    if errors:
        raise SystemExit(1)


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


if __name__ == "__main__":
    with one_line_errors():
        auto_cli(validate, parser_class=OneLineErrorParser)
