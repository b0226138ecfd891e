"""`headstart challenge-bundle`: a challenge as a bundle that Codabench or EvalAI takes."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import catalog_path, read_catalog, read_registry, registry_path
from headstart.evaluation.challenge_bundle import codabench, evalai
from headstart.evaluation.challenge_bundle.material import Material, write_zip
from headstart.evaluation.challenge_bundle.wheel import WHEEL, describe_container, pack_wheel
from headstart.output.errors import UserError, explain_write_errors
from headstart.output.files import output_folder, write_together
from headstart.output.printable import print_written

Platform = Literal["codabench", "evalai"]


def challenge_bundle(
    platform: Platform,
    rules: str,
    output: str,
    registry: str | None = None,
    catalog: str | None = None,
    image: str = "headstart-scoring",
) -> list[Path]:
    """Write a challenge as a bundle for a platform that exists, which brings accounts, mail and a forum.

    Submissions are scored by `headstart cka`, whose wheel is in the bundle, with the rules, registry, catalog, weights
    and stimuli. Data sets are found as for `cka`, by HACKATHON_DATASET_ROOT.

    Args:
        platform: Platform that the bundle is for.
        rules: Challenge: a YAML file, or the name of one in configs/challenge.
        output: Folder for the bundles, the wheel, and the Containerfile of the image.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        image: Container in which submissions are scored, by the name that its workers pull it under.

    Returns:
        The files.

    Raises:
        UserError: The challenge is over, a document or a file is missing or invalid, or the folder has a bundle.
    """
    path = challenge_path(rules)
    challenge = read_challenge(path)
    if challenge.is_over(datetime.now(UTC)):
        raise UserError(f"rules: the deadline of {str(path)!r}, {challenge.deadline}, is over; set a later one")
    folder = output_folder("output", output)
    material = Material(
        challenge,
        path,
        read_registry(registry_path(registry)),
        read_catalog(catalog_path(catalog)),
        {WHEEL: pack_wheel()},
        image,
    )

    archives = codabench.competitions(material) if platform == "codabench" else evalai.configuration(material)
    writers: dict[str, Callable[[Path], object]]
    writers = {name: partial(write_zip, files=files) for name, files in archives.items()}
    extra = {**material.wheel, "Containerfile": describe_container(*material.wheel)}
    writers |= {name: partial(Path.write_bytes, data=content) for name, content in extra.items()}
    for name in writers:
        if (folder / name).exists():
            raise UserError(f"output: {str(folder / name)!r} exists; choose another folder")

    with explain_write_errors(f"output: {str(folder)!r}", "choose another folder"):
        written = write_together(folder, writers)
    print_written(written)
    return written
