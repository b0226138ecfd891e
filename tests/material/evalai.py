"""What EvalAI does with a bundle, written from its sources: github.com/Cloud-CV/EvalAI and Cloud-CV/EvalAI-Starters.

apps/challenges/challenge_config_utils.py (what is refused), serializers.py and models.py (fields, lengths, choices);
scripts/workers/submission_worker.py (folders, import, call, result); apps/jobs/utils.py (leaderboard);
EvalAI-Starters/remote_challenge_evaluation/main.py (the worker of a host).
"""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from headstart.tests.material.codabench import SECONDS, unpack

SPLIT_KEYS = {
    "is_leaderboard_order_descending",
    "leaderboard_decimal_precision",
    "visibility",
    "dataset_split_id",
    "leaderboard_id",
    "challenge_phase_id",
}
# The script is a package of the worker's; what it prints and its traceback are the participant's.
HOSTED = """
import contextlib, importlib, io, json, sys, traceback
root, annotation, submission, codename = sys.argv[1:]
sys.path.append(root)
importlib.invalidate_caches()
module = importlib.import_module("challenge_data.challenge_7")
error = io.StringIO()
output = None
try:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(error):
        output = module.evaluate(annotation, submission, codename, submission_metadata={"id": 1})
except Exception:
    error.write(traceback.format_exc())
print(json.dumps({"output": output, "stderr": error.getvalue()}))
"""
REMOTE = """
import json, sys
from evaluate import evaluate
output, error = None, ""
try:
    output = evaluate(*sys.argv[1:])
except Exception as failure:
    error = str(failure)
print(json.dumps({"output": output, "stderr": error}))
"""


def find_problems(folder: Path) -> list[str]:
    """Check an unpacked bundle field by field; what is listed is refused, or not what it seems."""
    if not (folder / "challenge_config.yaml").is_file():
        return ["challenge_config.yaml is missing"]
    document = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    problems = [] if 0 < len(document.get("title") or "") <= 100 else ["title"]
    for name in ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines"):
        problems += [] if _is_page(folder, document.get(name)) else [name]
    problems += [] if str(document.get("image")).endswith((".png", ".jpg", ".jpeg")) else ["image"]
    problems += [] if (folder / str(document.get("image"))).is_file() else ["image"]
    script = str(document.get("evaluation_script"))
    problems += [] if script.endswith(".zip") and (folder / script).is_file() else ["evaluation_script"]
    problems += _time_problems(document) + (["tags"] if len(document.get("tags", [])) > 4 else [])
    problems += ["is_docker_based"] if document.get("is_docker_based") else []
    # A name of an image that is not EvalAI's own is refused.
    problems += ["worker_image_url"] if document.get("worker_image_url") else []

    boards, phases = document.get("leaderboard") or [], document.get("challenge_phases") or []
    splits, joins = document.get("dataset_splits") or [], document.get("challenge_phase_splits") or []
    problems += [] if boards and phases and splits and joins else ["lists"]
    for board in boards:
        schema = board.get("schema") or {}
        problems += [] if schema.get("default_order_by") in schema.get("labels", []) and "id" in board else ["schema"]
    problems += _phase_problems(phases, folder)
    for split in splits:
        problems += [] if split.get("name") and split.get("codename") and "id" in split else ["dataset_splits"]
    for items in (phases, splits):
        codenames = [item.get("codename") for item in items]
        problems += [] if len(set(codenames)) == len(codenames) else ["codename"]
    for join in joins:
        problems += [] if set(join) >= SPLIT_KEYS and join["visibility"] in {1, 2, 3} else ["challenge_phase_splits"]
        lists = {"leaderboard_id": boards, "challenge_phase_id": phases, "dataset_split_id": splits}
        for key, items in lists.items():
            problems += [] if join.get(key) in [item.get("id") for item in items] else [key]
    return problems


def _phase_problems(phases: list[dict[str, Any]], folder: Path) -> list[str]:
    problems = []
    for phase in phases:
        problems += [] if 0 < len(phase.get("name") or "") <= 100 and "id" in phase else ["phase"]
        problems += [] if _is_page(folder, phase.get("description")) else ["phase description"]
        problems += [] if (folder / str(phase.get("test_annotation_file"))).is_file() else ["test_annotation_file"]
        problems += _time_problems(phase)
        # Where these are missing, the validator sets the month's to null, which no number may be.
        for name in ("max_submissions", "max_submissions_per_month", "max_submissions_per_day"):
            problems += [] if type(phase.get(name)) is int and phase[name] > 0 else [name]
        restricted = phase.get("is_submission_public") and phase.get("is_restricted_to_select_one_submission")
        problems += ["is_submission_public"] if restricted else []
    return problems


def _time_problems(item: dict[str, Any]) -> list[str]:
    try:
        start, end = (datetime.fromisoformat(str(item[name])) for name in ("start_date", "end_date"))
    except (KeyError, ValueError):
        return ["dates"]
    return [] if start < end and start.tzinfo is None and end.tzinfo is None else ["dates"]


def _is_page(folder: Path, name: Any) -> bool:
    return str(name).endswith(".html") and (folder / str(name)).is_file()


def run_worker(bundle: Path, submission: Path, codename: str, root: Path) -> dict[str, Any]:
    """Score as EvalAI's worker does; return `output`, what the script returns, and `stderr`, what is shown."""
    (phase,) = [each for each in _read(bundle)["challenge_phases"] if each["codename"] == codename]
    package = root / "challenge_data" / "challenge_7"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    unpack(bundle / "evaluation_script.zip", package)
    arguments = [str(root), str(bundle / phase["test_annotation_file"]), str(submission), codename]
    return _run(HOSTED, arguments, root)


def run_remotely(bundle: Path, submission: Path, codename: str, root: Path) -> dict[str, Any]:
    """Score as the worker of a host does, in whose folder the evaluation script was unpacked."""
    return _run(REMOTE, [str(submission), codename], unpack(bundle / "evaluation_script.zip", root))


def _run(script: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HACKATHON_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shown_scores(bundle: Path, codename: str, output: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that the leaderboard of a phase shows, by label."""
    document = _read(bundle)
    ids = {item["codename"]: item["id"] for item in document["challenge_phases"]}
    names = {item["id"]: item["codename"] for item in document["dataset_splits"]}
    boards = {item["id"]: item["schema"]["labels"] for item in document["leaderboard"]}
    (join,) = [each for each in document["challenge_phase_splits"] if each["challenge_phase_id"] == ids[codename]]
    (result,) = output["result"]
    assert list(result) == [names[join["dataset_split_id"]]]
    (values,) = result.values()
    json.dumps(output["submission_result"])
    return {label: values[label] for label in boards[join["leaderboard_id"]]}


def _read(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((bundle / "challenge_config.yaml").read_text())
    return document
