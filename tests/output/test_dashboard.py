"""The dashboard's mirror of a score, read back with the dashboard's own reader; nothing is sent."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wandb

from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.output.dashboard import Dashboard, begin_run
from headstart.output.errors import UserError
from headstart.output.figures import save
from headstart.output.results_folder import DashboardResults
from headstart.tests.material.offline_runs import OfflineRun

ROOT = Path(__file__).parents[2]
KEY = "0" * 40
NAMES = ["resnet50", "vit_base.openai/b$_1", "vögel"]
BIASED = np.array([[1, 0.25, 1 / 3], [0.25, 1, 0.75], [1 / 3, 0.75, 1]])
MATRICES = {"biased": BIASED, "debiased": BIASED - 0.5}
DOCUMENT: dict[str, Any] = {
    "contract_version": "1.0",
    "team": "blue",
    "score": 4 / 9,
    "n_models": 3,
    "n_stimuli": 100,
    "mean_cka_biased": 4 / 9,
    "mean_cka_debiased": None,
    "pairwise": {"names": NAMES, "biased": BIASED.tolist()},
    "digests": {"registry": "12ab", "catalog": "34cd", "submission": "56ef", "weights": {NAMES[1]: "78"}},
    "timings": {"total_seconds": 1.5},
}
CONFIG = {"registry": "registry.json", "models": NAMES, "extraction": {"precision": "float32", "num_workers": 2}}


def mirror_score(folder: Path, options: Dashboard) -> list[Path]:
    folder.mkdir(exist_ok=True)
    files = [folder / "score.json", folder / "heatmap.png"]
    files[0].write_text(json.dumps(DOCUMENT))
    save(plot_heatmap(NAMES, BIASED, "CKA"), files[1])
    rows = {name: zip(NAMES, matrix.tolist(), strict=True) for name, matrix in MATRICES.items()}
    tables = {f"matrix/{name}": (["model", *NAMES], [[n, *row] for n, row in each]) for name, each in rows.items()}
    results = DashboardResults("", ["score.json"], output=str(folder / "mirror"), dashboard=options)
    results.written = files
    results.publish("score", "score, 3 models, 100 stimuli", CONFIG, DOCUMENT, tables)
    return files


def test_what_the_dashboard_shows_of_a_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = mirror_score(tmp_path, Dashboard(group="leaderboard", tags=["nightly"]))
    mirror = OfflineRun(tmp_path / "mirror")
    assert capsys.readouterr().out == f"Weights & Biases logs offline; to upload: wandb sync {mirror.run}\n"
    run = mirror.settings
    assert (run["project"], run["job_type"], run["run_group"]) == ("headstart", "score", "leaderboard")
    assert (run["tags"], run["display_name"]) == (["nightly"], "score, 3 models, 100 stimuli")
    assert (mirror.whole["config"], mirror.exit_code) == (CONFIG, 0)
    # What is at the top of the document, and the pictures and tables.
    media = {"matrix/biased", "matrix/debiased", "heatmap"}
    at_the_top = {key: value for key, value in DOCUMENT.items() if isinstance(value, str | int | float)}
    assert {key: value for key, value in mirror.summary.items() if key not in media} == at_the_top
    assert mirror.panels == media
    for name, matrix in MATRICES.items():
        rows = [list(row.values()) for row in mirror.table(f"matrix/{name}")]
        assert rows == [[model, *row] for model, row in zip(NAMES, matrix.tolist(), strict=True)]
    assert mirror.file("heatmap").read_bytes() == files[1].read_bytes()
    assert mirror.artifact("score") == {path.name: path.stat().st_size for path in files}


def test_a_repeated_command_continues_its_run(tmp_path: Path) -> None:
    ids = []
    for config in (CONFIG, CONFIG, {**CONFIG, "models": []}):
        results = DashboardResults("", ["score.json"], output=str(tmp_path), dashboard=Dashboard(mode="offline"))
        results.publish("score", "title", config, {}, {"scores": (["a"], [[1]])})
        run = OfflineRun(tmp_path, latest=True)
        ids.append(run.settings["run_id"])
        # Later files become the next version of the same artifact.
        (artifact,) = (each for each in run.of_type("artifact") if each["type"] == "score")
        assert artifact["name"] == "score"
    assert ids[0] == ids[1] != ids[2]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect the arguments with which runs are started, which then fail."""
    runs: list[dict[str, Any]] = []

    def begin(**options: Any) -> None:
        runs.append(options)
        raise wandb.Error("that is far enough")

    monkeypatch.setattr(wandb, "init", begin)
    return runs


# The mode and the environment, why the server cannot be reached, and the mode that wandb is given.
MODES_CHOSEN: list[tuple[Any, dict[str, str], str | None, str | None]] = [
    ("auto", {}, None, "offline"),
    ("auto", {"WANDB_API_KEY": KEY}, None, "online"),
    ("auto", {"WANDB_API_KEY": KEY}, "no route", "offline"),
    ("offline", {"WANDB_API_KEY": KEY}, None, "offline"),
    ("online", {"WANDB_API_KEY": KEY}, "no route", "online"),
    ("auto", {"WANDB_MODE": "disabled", "WANDB_API_KEY": KEY}, None, None),
]


def test_mode(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    begun: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    for mode, environment, problem, chosen in MODES_CHOSEN:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            if "WANDB_API_KEY" in environment:
                # The real one asks the server for the account's name.
                patch.setattr(wandb, "login", lambda prompt, verify: not prompt and not verify)
            patch.setattr("headstart.output.dashboard.find_problem", lambda url, problem=problem: problem)
            mirror_score(tmp_path, Dashboard(mode=mode, entity="team", project="other"))
        assert (begun[-1]["mode"], begun[-1]["entity"], begun[-1]["project"]) == (chosen, "team", "other")
        assert begun[-1]["dir"] == tmp_path / "mirror"
        warned = re.findall(
            "^warning: Weights & Biases goes offline: .* cannot be reached: no route$", capsys.readouterr().err, re.M
        )
        assert len(warned) == (mode == "auto" and problem is not None)


# The mode, how the server fails, and the modes that are tried.
FAILURES: list[tuple[Any, Any, list[str]]] = [
    ("auto", wandb.errors.CommError, ["online", "offline"]),
    ("auto", wandb.errors.AuthenticationError, ["online"]),
    ("online", wandb.errors.CommError, ["online"]),
]


def test_a_server_that_stops_answering(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tried: list[str] = []
    real = wandb.init
    monkeypatch.setattr(wandb, "login", lambda prompt, verify: True)
    monkeypatch.setattr("headstart.output.dashboard.find_problem", lambda url: None)
    for mode, error, modes in FAILURES:
        tried.clear()

        def begin(error: Any = error, **options: Any) -> Any:
            tried.append(options["mode"])
            if options["mode"] == "online":
                raise error("gave up\nand more")
            return real(**options)

        monkeypatch.setattr(wandb, "init", begin)
        if modes[-1] == "online":
            with pytest.raises(error):
                begin_run(mode, {})
        else:
            with begin_run(mode, {"project": "x", "dir": os.environ["WANDB_DATA_DIR"]}) as run:
                assert run.offline
            assert capsys.readouterr().err.startswith("warning: Weights & Biases goes offline: gave up\n")
        assert tried == modes


def test_missing_wandb_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("headstart.output.dashboard.find_spec", lambda name: None)
    message = "logger: wandb is not installed; pip install wandb, or go without: --logger=false"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        mirror_score(tmp_path, Dashboard())


def test_refusal_is_a_warning_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**options: Any) -> None:
        raise wandb.errors.AuthenticationError("WANDB_API_KEY invalid\nand more")

    monkeypatch.setattr(wandb, "init", refuse)
    mirror_score(tmp_path, Dashboard())
    text = capsys.readouterr().err
    assert text.startswith("warning: logger: Weights & Biases refuses (WANDB_API_KEY invalid); ")
    assert text.count("\n") == 1
