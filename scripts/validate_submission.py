"""`headstart validate`: a submission under the evaluation contract, checked without loading a model or an image."""

from typing import Literal

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.problems import ContractError
from headstart.contract.stimulus_files import locate_stimuli
from headstart.contract.submissions import read_submission
from headstart.output.printable import say


def validate(
    submission: str,
    team: Literal["blue", "red"] | None = None,
    registry: str | None = None,
    catalog: str | None = None,
    challenge: str | None = None,
    check_files: bool = False,
) -> None:
    """Validate a submission: print one line if it is valid, else one line for each problem.

    Args:
        submission: JSON file of a submission.
        team: Team that the submission must belong to; either team by default.
        registry: Model registry. By default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog. By default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        challenge: Challenge whose rules the submission must also meet: a YAML file, or its name in configs/challenge.
        check_files: Whether to check that image files exist: of the stimuli of a Red Team submission, or of the whole
            catalog for a Blue Team submission.

    Raises:
        ContractError: The registry, the catalog or the challenge is invalid.
        SystemExit: With 1 for an invalid submission.
    """
    models, stimuli = read_registry(registry_path(registry)), read_catalog(catalog_path(catalog))
    rules = None if challenge is None else read_challenge(challenge_path(challenge))
    try:
        valid = read_submission(submission, models, stimuli, team, rules)
        if check_files:
            locate_stimuli(stimuli.stimuli if valid.team == "blue" else valid.stimuli)
    except ContractError as error:
        for problem in error.problems:
            say(f"{error.document}: {problem}")
        raise SystemExit(1) from None

    count = f"{len(valid.models)} models" if valid.team == "blue" else f"{len(valid.stimuli)} stimuli"
    say(f"valid: {valid.team.title()} Team submission of {count} under contract {valid.contract_version}")
