"""What EvalAI does with a bundle, written from its sources: github.com/Cloud-CV/EvalAI and Cloud-CV/EvalAI-Starters.

apps/challenges/challenge_config_utils.py (what is refused), serializers.py and models.py (fields, lengths, choices);
apps/jobs/utils.py (leaderboard);
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
    """Check an unpacked bundle; what is listed is refused, or not what it seems, and a missing field is a KeyError."""
    document = yaml.safe_load((folder / "challenge_config.yaml").read_text())
    boards, phases, splits, joins = (
        document[name] for name in ("leaderboard", "challenge_phases", "dataset_splits", "challenge_phase_splits")
    )
    pages = [document[name] for name in ("description", "evaluation_details", "terms_and_conditions")]
    pages += [document["submission_guidelines"], *(phase["description"] for phase in phases)]
    files = [document["image"], document["evaluation_script"], *(phase["test_annotation_file"] for phase in phases)]
    times = [
        [datetime.fromisoformat(item[name]) for name in ("start_date", "end_date")] for item in (document, *phases)
    ]
    # Where these are missing, the validator sets the month's to null, which no number may be.
    numbers = [phase[f"max_submissions{name}"] for phase in phases for name in ("", "_per_month", "_per_day")]
    ids = {"leaderboard_id": boards, "challenge_phase_id": phases, "dataset_split_id": splits}
    checks = {
        "title": 0 < len(document["title"]) <= 100,
        "pages": all(name.endswith(".html") and (folder / name).is_file() for name in pages),
        "files": all((folder / name).is_file() for name in files),
        "endings": document["image"].endswith((".png", ".jpg")) and document["evaluation_script"].endswith(".zip"),
        "dates": all(start < end and start.tzinfo is None and end.tzinfo is None for start, end in times),
        "tags": len(document.get("tags", [])) <= 4,
        # A name of an image that is not EvalAI's own is refused.
        "images": not document.get("is_docker_based") and not document.get("worker_image_url"),
        "schemas": all(board["schema"]["default_order_by"] in board["schema"]["labels"] for board in boards),
        "names": all(0 < len(item["name"]) <= 100 for item in (*phases, *splits)),
        "numbers": all(type(number) is int and number > 0 for number in numbers),
        "public": not any(
            phase["is_submission_public"] and phase.get("is_restricted_to_select_one_submission") for phase in phases
        ),
        "codenames": all(len({item["codename"] for item in items}) == len(items) for items in (phases, splits)),
        "joins": all(set(join) >= SPLIT_KEYS and join["visibility"] in {1, 2, 3} for join in joins),
        "ids": all(join[key] in [item["id"] for item in items] for join in joins for key, items in ids.items()),
    }
    return [name for name, is_kept in checks.items() if not is_kept]


def run_remotely(bundle: Path, submission: Path, codename: str, root: Path) -> dict[str, Any]:
    """Score as the worker of a host does; return `output`, what the script returns, and `stderr`, what is shown."""
    folder = unpack(bundle / "evaluation_script.zip", root)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HACKATHON_", "PYTHON"))}
    command = [sys.executable, "-c", REMOTE, str(submission), codename]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shown_scores(bundle: Path, codename: str, output: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that the leaderboard of a phase shows, by label."""
    document = yaml.safe_load((bundle / "challenge_config.yaml").read_text())
    ids = {item["codename"]: item["id"] for item in document["challenge_phases"]}
    names = {item["id"]: item["codename"] for item in document["dataset_splits"]}
    boards = {item["id"]: item["schema"]["labels"] for item in document["leaderboard"]}
    (join,) = [item for item in document["challenge_phase_splits"] if item["challenge_phase_id"] == ids[codename]]
    (result,) = output["result"]
    assert list(result) == [names[join["dataset_split_id"]]]
    (values,) = result.values()
    json.dumps(output["submission_result"])
    return {label: values[label] for label in boards[join["leaderboard_id"]]}
