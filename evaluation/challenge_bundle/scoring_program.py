"""The scoring program of a bundle: `headstart cka` on one submission, called as Codabench and as EvalAI call it.

It is copied into the bundle, beside the wheel of the suite, and imports nothing but the standard library.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

HERE = Path(__file__).resolve().parent


class RefusedError(Exception):
    """The submission has no score; the message says why."""


def score(submission: Path, team: str, reference: Path) -> dict[str, float | None]:
    """Score a submission.

    Args:
        submission: Its JSON document.
        team: The team that it must be of.
        reference: Folder of the challenge's rules, registry, catalog, weights and data sets.

    Returns:
        The numbers of the leaderboard, higher is better; None for an undefined one.

    Raises:
        RefusedError: The document breaks a rule, or it cannot be scored.
    """
    with TemporaryDirectory() as folder:
        # A wheel without compiled parts is installed by unpacking it, which needs no network.
        (wheel,) = HERE.glob("*.whl")
        with ZipFile(wheel) as archive:
            archive.extractall(folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HACKATHON_")}
        environment |= {"PYTHONPATH": folder, "HACKATHON_DATASET_ROOT": str(reference / "datasets")}
        documents = {"challenge": "rules.yaml", "registry": "registry.json", "catalog": "catalog.jsonl"}
        options = [f"--{option}={reference / name}" for option, name in documents.items()]
        options += [f"--submission={submission.resolve()}", f"--team={team}", f"--output={folder}/scores"]
        command = [sys.executable, "-P", "-m", "headstart", "cka", *options, "--logger=false", "--figure_formats=[]"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RefusedError(done.stderr.strip())
        scores: dict[str, float | None] = json.loads(Path(folder, "scores", "score.json").read_text())["scores"]
        return scores


def evaluate(user_submission_file: str, phase_codename: str, **_: Any) -> dict[str, Any]:
    """Score as EvalAI's worker for remote evaluation asks for it; the phase is the team."""
    scores = score(Path(user_submission_file), phase_codename, HERE / "reference")
    return {"result": [{phase_codename: scores}], "submission_result": scores}


def main(team: str, inputs: str, output: str) -> None:
    """Score as a worker of Codabench asks for it; errors go to the error stream.

    Args:
        team: The team.
        inputs: Folder with the unpacked submission in `res` and the unpacked reference data in `ref`.
        output: Folder for scores.json.
    """
    paths = [path for path in Path(inputs, "res").rglob("*.json") if not path.name.startswith(".")]
    if len(paths) != 1:
        sys.exit(f"error: the zip file has {len(paths)} files that end in .json; one is needed")
    # Some workers leave out the folder that is around all files of a zip file, others keep it.
    (rules,) = Path(inputs, "ref").rglob("rules.yaml")
    try:
        scores = score(paths[0], team, rules.parent)
    except RefusedError as error:
        sys.exit(str(error))
    defined = json.dumps({name: value for name, value in scores.items() if value is not None})
    Path(output, "scores.json").write_text(defined)


if __name__ == "__main__":
    main(*sys.argv[1:])
