"""What Codabench does with a bundle, written from its sources: github.com/codalab/codabench.

src/apps/competitions/tasks.py (unpack_competition), unpackers/base_unpacker.py, v2.py and utils.py (how a bundle is
read, and what is refused); src/apps/api/serializers/competitions.py, leaderboards.py and tasks.py,
src/apps/competitions/models.py and leaderboards/models.py (fields, lengths, choices); compute_worker/compute_worker.py
(folders, command, scores.json); src/apps/api/views/submissions.py (upload_submission_scores).
"""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import yaml
from PIL import Image

RULES = {"Add", "Add_And_Delete", "Add_And_Delete_Multiple", "Force_Last", "Force_Latest_Multiple", "Force_Best"}
SECONDS = 300


def unpack(content: Path | bytes, folder: Path) -> Path:
    with ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as archive:
        assert archive.testzip() is None
        archive.extractall(folder)
    return folder


def read_time(value: Any) -> datetime | None:
    """Read a time as get_datetime: times that YAML knows lose the hour, and a time zone is replaced by UTC."""
    if not value:
        return None
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


def find_problems(folder: Path) -> list[str]:
    """Check an unpacked bundle field by field; what is listed is refused, or not what it seems."""
    if not (folder / "competition.yaml").is_file():
        return ["competition.yaml is missing"]
    document = yaml.safe_load((folder / "competition.yaml").read_text())
    problems = [] if str(document.get("version", "1")) == "2" else ["version"]
    problems += [] if 0 < len(document.get("title") or "") <= 256 else ["title"]
    problems += [] if 0 < len(document.get("docker_image") or "") <= 128 else ["docker_image"]
    texts = [page.get("file") for page in document.get("pages") or [{}]] + [document.get("terms")]
    problems += [f"text {name}" for name in texts if not name or not (folder / name).read_text()]
    try:
        Image.open(folder / document["image"]).verify()
    except (OSError, KeyError):
        problems.append("image")

    tasks = document.get("tasks") or []
    indices = [task.get("index") for task in tasks]
    problems += ["tasks"] if not indices or None in indices or len(set(indices)) < len(indices) else []
    for task in tasks:
        problems += [] if task.get("name") and "scoring_program" in task else ["task"]
        names = ("scoring_program", "reference_data", "input_data", "ingestion_program")
        problems += [f"data {task[name]}" for name in names if name in task and not (folder / task[name]).exists()]
    problems += _phase_problems(document.get("phases") or [], indices, folder)
    return problems + _leaderboard_problems(document.get("leaderboards") or [])


def _phase_problems(phases: list[dict[str, Any]], indices: list[Any], folder: Path) -> list[str]:
    problems = [] if phases else ["phases"]
    ordered = sorted(phases, key=lambda phase: phase.get("index", 0))
    for phase in ordered:
        start, end = read_time(phase.get("start")), read_time(phase.get("end"))
        problems += (
            [] if phase.get("name") and phase.get("tasks") and set(phase["tasks"]) <= set(indices) else ["phase"]
        )
        problems += [] if start and (end is None or start < end) else ["start"]
        for name in ("max_submissions", "max_submissions_per_day", "execution_time_limit"):
            problems += [] if phase.get(name) is None or (type(phase[name]) is int and phase[name] > 0) else [name]
        data = phase.get("public_data")
        problems += [] if data is None or (folder / data).is_file() else ["public_data"]
        problems += ["auto_migrate"] if phase.get("auto_migrate_to_this_phase") and phase is ordered[0] else []
    for one, next_one in pairwise(ordered):
        ends, starts = read_time(one.get("end")), read_time(next_one.get("start"))
        problems += [] if ends and starts and ends < starts else ["phases are not one after the other"]
    return problems


def _leaderboard_problems(leaderboards: list[dict[str, Any]]) -> list[str]:
    # Every phase gets the first one; a second one would never be shown.
    problems = [] if len(leaderboards) == 1 else ["leaderboards"]
    for board in leaderboards:
        problems += [] if 0 < len(board["title"]) <= 64 and 0 < len(board["key"]) <= 36 else ["leaderboard"]
        problems += [] if board.get("submission_rule") in RULES else ["submission_rule"]
        columns = board.get("columns") or []
        for field in ("index", "key"):
            values = [column[field] for column in columns]
            problems += [] if values and len(set(values)) == len(values) else [f"columns: {field}"]
        for column in columns:
            problems += [] if 0 < len(column["title"]) <= 36 and 0 < len(column["key"]) <= 36 else ["column"]
            problems += [] if column.get("sorting") in {"asc", "desc"} else ["sorting"]
            problems += [] if type(column.get("precision", 2)) is int else ["precision"]
    return problems


@dataclass(frozen=True)
class Scoring:
    """What a worker has of a scoring."""

    code: int
    stdout: str
    stderr: str
    scores: dict[str, Any] | None


def run_worker(bundle: Path, submission: bytes, root: Path, strips: bool = False) -> Scoring:
    """Score as a worker does: folders, working folder and command are its own, the container is this machine.

    Args:
        bundle: The unpacked bundle.
        submission: The zip file of a participant.
        root: An empty folder, for what is `/app` in the container.
        strips: Whether it is a worker of early 2025, which takes data out of the folder that is around them.
    """
    (task,) = yaml.safe_load((bundle / "competition.yaml").read_text())["tasks"]
    unpack(bundle / task["scoring_program"], root / "program")
    for content, place in ((bundle / task["reference_data"], "ref"), (submission, "res")):
        folder = unpack(content, root / "input" / place)
        around = next((path for path in folder.iterdir() if path.is_dir()), None)
        if strips and around:
            for path in around.iterdir():
                path.rename(folder / path.name)
            around.rmdir()
    # The result of the step before has this file of the worker's, too.
    (root / "input" / "res" / "metadata").write_text("exitCode: null\n")
    (root / "output").mkdir()

    command = yaml.safe_load((root / "program" / "metadata.yaml").read_text())["command"].replace("/app/", f"{root}/")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HACKATHON_", "PYTHON"))}
    environment = {**kept, "PATH": programs, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        command.split(" "),
        cwd=root / "program",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    file = root / "output" / "scores.json"
    # The worker writes a file of this name there itself, and fails if it exists.
    assert not (root / "output" / "metadata").exists()
    return Scoring(done.returncode, done.stdout, done.stderr, json.loads(file.read_text()) if file.exists() else None)


def shown_scores(bundle: Path, scores: dict[str, Any]) -> dict[str, float]:
    """Return what the leaderboard stores: the numbers of its columns; any other value is an error of the server's."""
    (board,) = yaml.safe_load((bundle / "competition.yaml").read_text())["leaderboards"]
    keys = {column["key"] for column in board["columns"]}
    assert all(isinstance(value, float) for value in scores.values())
    return {key: value for key, value in scores.items() if key in keys}
