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
from datetime import UTC, date, datetime, time
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
    """Check an unpacked bundle; what is listed is refused, or not what it seems, and a missing field is a KeyError."""
    document = yaml.safe_load((folder / "competition.yaml").read_text())
    texts = [page["file"] for page in document["pages"]] + [document["terms"]]
    (task,), (phase,), (board,) = document["tasks"], document["phases"], document["leaderboards"]
    data = [task["scoring_program"], task["reference_data"], phase["public_data"]]
    start, end = read_time(phase["start"]), read_time(phase.get("end"))
    numbers = [phase.get(name) for name in ("max_submissions", "max_submissions_per_day", "execution_time_limit")]
    columns = board["columns"]
    Image.open(folder / document["image"]).verify()
    checks = {
        "version": str(document["version"]) == "2",
        "title": 0 < len(document["title"]) <= 256,
        "docker_image": 0 < len(document["docker_image"]) <= 128,
        "texts": all((folder / name).read_text() for name in texts),
        "data": all((folder / name).is_file() for name in data),
        "tasks": bool(task["name"] and phase["name"]) and phase["tasks"] == [task["index"]],
        "times": start is not None and (end is None or start < end),
        "numbers": all(number is None or (type(number) is int and number > 0) for number in numbers),
        "leaderboard": 0 < len(board["title"]) <= 64 and 0 < len(board["key"]) <= 36,
        "submission_rule": board["submission_rule"] in RULES,
        "columns": all(0 < len(column[name]) <= 36 for column in columns for name in ("title", "key")),
        "keys": all(len({column[name] for column in columns}) == len(columns) for name in ("index", "key")),
        "sorting": {column["sorting"] for column in columns} <= {"asc", "desc"},
        "precision": all(type(column.get("precision", 2)) is int for column in columns),
    }
    return [name for name, is_kept in checks.items() if not is_kept]


def run_worker(bundle: Path, submission: bytes, root: Path, strips: bool) -> tuple[dict[str, Any] | None, str]:
    """Score as a worker does: folders, working folder and command are its own, the container is this machine.

    Returns the content of scores.json, if there is one, and what the participant is told.

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
    options: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": SECONDS}
    done = subprocess.run(command.split(" "), cwd=root / "program", env=environment, **options)
    file = root / "output" / "scores.json"
    # The worker writes a file of this name there itself, and fails if it exists.
    assert not (root / "output" / "metadata").exists()
    assert (done.returncode != 0, "Traceback" in done.stderr) == (not file.exists(), False), done.stderr
    return json.loads(file.read_text()) if file.exists() else None, done.stderr


def shown_scores(bundle: Path, scores: dict[str, Any]) -> dict[str, float]:
    """Return what the leaderboard stores: the numbers of its columns; any other value is an error of the server's."""
    (board,) = yaml.safe_load((bundle / "competition.yaml").read_text())["leaderboards"]
    keys = {column["key"] for column in board["columns"]}
    assert all(isinstance(value, float) for value in scores.values())
    return {key: value for key, value in scores.items() if key in keys}
