"""The dashboard's mirror of a score, read back with the dashboard's own reader; nothing is sent."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import wandb

from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.output.dashboard import (
    MODES,
    Dashboard,
    begin_run,
    check_dashboard,
)
from headstart.output.errors import UserError
from headstart.output.figures import save
from headstart.output.results_folder import DashboardResults
from headstart.tests.material.offline_runs import OfflineRun, inspect

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


def publish_score(folder: Path, options: Dashboard, document: dict[str, Any], files: list[Path]) -> None:
    rows = {name: zip(NAMES, matrix.tolist(), strict=True) for name, matrix in MATRICES.items()}
    tables = {f"matrix/{name}": (["model", *NAMES], [[n, *row] for n, row in each]) for name, each in rows.items()}
    results = DashboardResults("", ["score.json"], output=str(folder), dashboard=options)
    results.written = files
    results.publish("score", "score, 3 models, 100 stimuli", CONFIG, document, tables)


def mirror_score(folder: Path, options: Dashboard, document: dict[str, Any] = DOCUMENT) -> list[Path]:
    folder.mkdir(exist_ok=True)
    files = [folder / "score.json", folder / "heatmap.png"]
    files[0].write_text(json.dumps(document))
    save(plot_heatmap(NAMES, BIASED, "CKA"), files[1])
    publish_score(folder / "mirror", options, document, files)
    return files


class Mirror(OfflineRun):
    """A finished run and what the dashboard's files say of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(folder / "mirror")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """Publish a score without an account."""
    folder = tmp_path_factory.mktemp("mirror")
    with pytest.MonkeyPatch.context() as patch:
        (folder / "netrc").touch()
        patch.setenv("NETRC", str(folder / "netrc"))
        for name in ("CACHE", "CONFIG", "DATA"):
            patch.setenv(f"WANDB_{name}_DIR", str(folder / "dashboard"))
        for name in ("WANDB_API_KEY", "WANDB_MODE"):
            patch.delenv(name, raising=False)
        mirror_score(folder / "run", Dashboard(group="leaderboard", tags=["nightly"]))
        yield Mirror(folder / "run")


def test_run_says_what_was_done(mirror: Mirror) -> None:
    run = mirror.settings
    assert (run["project"], run["job_type"], run["run_group"]) == ("headstart", "score", "leaderboard")
    assert run["tags"] == ["nightly"]
    assert run["display_name"] == "score, 3 models, 100 stimuli"
    assert mirror.whole["config"] == CONFIG
    assert mirror.exit_code == 0


def test_summary_holds_what_is_at_the_top_of_the_document(mirror: Mirror) -> None:
    media = {"matrix/biased", "matrix/debiased", "heatmap"}
    assert mirror.panels == media
    assert {key: value for key, value in mirror.summary.items() if key not in media} == {
        "contract_version": "1.0",
        "team": "blue",
        "score": 4 / 9,
        "n_models": 3,
        "n_stimuli": 100,
        "mean_cka_biased": 4 / 9,
    }


@pytest.mark.parametrize("name", MATRICES)
def test_matrix_is_a_table(mirror: Mirror, name: str) -> None:
    rows = [list(row.values()) for row in mirror.table(f"matrix/{name}")]
    assert rows == [[model, *row] for model, row in zip(NAMES, MATRICES[name].tolist(), strict=True)]


def test_pictures_and_files_are_those_of_the_score(mirror: Mirror) -> None:
    assert mirror.file("heatmap").read_bytes() == (mirror.folder / "heatmap.png").read_bytes()
    assert mirror.artifact("score") == {
        path.name: path.stat().st_size for path in mirror.folder.iterdir() if path.is_file()
    }


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


def test_run_that_is_logged_offline_says_how_to_upload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mirror_score(tmp_path, Dashboard(name="mine"))
    (run,) = (tmp_path / "mirror" / "wandb").glob("offline-run-*")
    assert capsys.readouterr().out == f"Weights & Biases logs offline; to upload: wandb sync {run}\n"
    assert json.loads(inspect(run, "--summary"))["name"] == "mine"


SWITCHED_OFF = """
import os, sys
from pathlib import Path
os.environ["WANDB_MODE"] = "disabled"
from headstart.output.dashboard import Dashboard
from headstart.output.results_folder import DashboardResults
results = DashboardResults("", ["score.json"], output=sys.argv[1], dashboard=Dashboard(mode="online"))
results.publish("score", "title", {}, {"n_models": 2}, {"matrix": (["a"], [[1.0]])})
"""


@pytest.mark.slow
def test_switched_off_dashboard_says_nothing(tmp_path: Path) -> None:
    # wandb reads the environment once per process.
    command = [sys.executable, "-c", SWITCHED_OFF, str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout + result.stderr == ""
    assert not list(tmp_path.rglob("*run-*"))


def test_modes_are_those_of_wandb() -> None:
    assert set(MODES) == set(get_args(wandb.Settings.model_fields["mode"].annotation))


@pytest.mark.parametrize("variable", ["bogus", "", "OFFLINE"])
def test_unknown_variable(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("WANDB_MODE", variable)
    message = f"WANDB_MODE: '{variable}' is no mode of Weights & Biases; allowed are online, "
    with pytest.raises(UserError, match=f"^{message}"):
        begin_run("auto", {})
    with pytest.raises(UserError, match=f"^{message}"):
        check_dashboard(Dashboard())


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect the arguments with which runs are started, which then fail."""
    runs: list[dict[str, Any]] = []

    def begin(**options: Any) -> None:
        runs.append(options)
        raise wandb.Error("that is far enough")

    monkeypatch.setattr(wandb, "init", begin)
    return runs


@pytest.mark.parametrize(
    ("mode", "environment", "problem", "chosen"),
    [
        ("auto", {}, None, "offline"),
        ("auto", {"WANDB_API_KEY": KEY}, None, "online"),
        ("auto", {"WANDB_API_KEY": KEY}, "no route", "offline"),
        ("offline", {"WANDB_API_KEY": KEY}, None, "offline"),
        ("online", {"WANDB_API_KEY": KEY}, "no route", "online"),
        ("offline", {"WANDB_MODE": "online"}, None, None),
        ("auto", {"WANDB_MODE": "disabled", "WANDB_API_KEY": KEY}, None, None),
    ],
)
def test_mode(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    begun: list[dict[str, Any]],
    tmp_path: Path,
    mode: Any,
    environment: dict[str, str],
    problem: str | None,
    chosen: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if "WANDB_API_KEY" in environment:
        # The real one asks the server for the account's name.
        monkeypatch.setattr(wandb, "login", lambda prompt, verify: not prompt and not verify)
    monkeypatch.setattr("headstart.output.dashboard.find_problem", lambda url: problem)
    mirror_score(tmp_path, Dashboard(mode=mode, entity="team", project="other"))
    assert (begun[0]["mode"], begun[0]["entity"], begun[0]["project"]) == (chosen, "team", "other")
    assert begun[0]["dir"] == tmp_path / "mirror"
    warned = re.findall(
        "^warning: Weights & Biases goes offline: .* cannot be reached: no route$", capsys.readouterr().err, re.M
    )
    assert len(warned) == (mode == "auto" and problem is not None)


@pytest.mark.parametrize(
    ("mode", "error", "modes"),
    [
        ("auto", wandb.errors.CommError, ["online", "offline"]),
        ("auto", wandb.errors.AuthenticationError, ["online"]),
        ("online", wandb.errors.CommError, ["online"]),
    ],
)
def test_a_server_that_stops_answering(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: Any, error: Any, modes: list[str]
) -> None:
    tried: list[str] = []
    real = wandb.init

    def begin(**options: Any) -> Any:
        tried.append(options["mode"])
        if options["mode"] == "online":
            raise error("gave up\nand more")
        return real(**options)

    monkeypatch.setattr(wandb, "login", lambda prompt, verify: True)
    monkeypatch.setattr("headstart.output.dashboard.find_problem", lambda url: None)
    monkeypatch.setattr(wandb, "init", begin)
    if modes[-1] == "online":
        with pytest.raises(error):
            begin_run(mode, {})
    else:
        with begin_run(mode, {"project": "x", "dir": os.environ["WANDB_DATA_DIR"]}) as run:
            assert run.offline
        assert capsys.readouterr().err.startswith("warning: Weights & Biases goes offline: gave up\n")
    assert tried == modes


HANGING = """
import sys
from pathlib import Path
from headstart.output.results_folder import DashboardResults
results = DashboardResults("", ["score.json"], output=sys.argv[1])
results.publish("score", "title", {}, {"n_models": 2}, {"matrix": (["a"], [[1.0]])})
"""


@pytest.mark.slow
def test_with_a_key_but_no_network_the_run_is_offline(tmp_path: Path) -> None:
    # wandb reads the environment once per process. The port is one that nothing listens on.
    command = [sys.executable, "-c", HANGING, str(tmp_path / "mirror")]
    environment = {**os.environ, "WANDB_API_KEY": KEY, "WANDB_BASE_URL": "http://127.0.0.1:1", "no_proxy": "*"}
    result = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert "warning: Weights & Biases goes offline: http://127.0.0.1:1 cannot be reached: " in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout.startswith("Weights & Biases logs offline; to upload: wandb sync ")
    assert len(list((tmp_path / "mirror" / "wandb").glob("offline-run-*"))) == 1


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


def test_failure_while_logging_ends_the_run_as_failed(tmp_path: Path) -> None:
    missing = [tmp_path / "missing.json"]
    with pytest.raises(ValueError, match="missing"):
        publish_score(tmp_path / "mirror", Dashboard(), DOCUMENT, missing)
    assert Mirror(tmp_path).of_type("exit")[0]["exit_code"] == 1
    assert wandb.run is None


def test_nothing_heavy_is_imported_with_the_modules() -> None:
    alignment = ["headstart.evaluation.alignment.score_log", "headstart.evaluation.alignment.heatmap"]
    modules = ["headstart.output.dashboard", *alignment]
    heavy = {"torch", "lightning", "torchmetrics", "torchvision", "timm", "wandb", "modal", "open_clip"}
    code = f"import sys, {', '.join(modules)}; assert not {heavy!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


MIRRORED = """
import sys
from pathlib import Path
from matplotlib.figure import Figure
from headstart.output.dashboard import begin_run, log_files
from headstart.output.figures import writers
folder = Path(sys.argv[1])
for name, write in writers("figure", Figure(), ["png", "pdf", "svg"]).items():
    write(folder / name)
run = begin_run("offline", {"project": "pets", "dir": folder})
log_files(run, "score", "score", {"table": (["name", "value"], [["a", 1.0], ["b", None]])}, [*folder.glob("figure.*")])
run.finish()
print(*(name for name in sys.argv[2:] if name in sys.modules))
import wandb.sdk.launch.inputs.internal as launch
print(launch.StagedLaunchInputs().apply.__qualname__)
"""


@pytest.mark.slow
def test_figures_and_a_run_import_nothing_that_they_do_not_use(tmp_path: Path) -> None:
    unused = ("wandb.sdk.launch", "matplotlib.pyplot", "torch", "torchmetrics", "lightning")
    command = [sys.executable, "-c", MIRRORED, str(tmp_path), *unused]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    # Code that wants wandb's launch gets it afterwards.
    assert done.stdout.splitlines()[1:] == ["", "StagedLaunchInputs.apply"]
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 1
