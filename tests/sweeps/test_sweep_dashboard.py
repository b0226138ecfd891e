"""What a sweep leaves in the dashboard: the same from every engine, in groups that can be averaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.offline_runs import OfflineRun
from headstart.tests.material.sweeps import run, write


def logged(folder: Path) -> dict[str, Any]:
    """Return what the dashboard shows of the runs, without times, by name."""
    shown = {}
    for path in sorted(folder.iterdir()):
        if not (path / "wandb").exists():
            continue
        mirror = OfflineRun(path)
        settings = {key: mirror.settings.get(key) for key in ("run_group", "tags", "project", "notes", "job_type")}
        config = mirror.whole["config"]
        config["trainer"].pop("default_root_dir", None)
        config["results"].pop("ledger", None)
        values = [row for row in mirror.history if any(key.startswith("val/") for key in row)]
        shown[mirror.settings["display_name"]] = settings, config, values, mirror.table("results")
    return shown


@pytest.mark.slow
def test_every_engine_logs_the_same(
    tmp_path: Path, small_comparison: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [each for each in small_comparison(tmp_path) if not each.startswith("--trainer.logger")]
    options += ["--trainer.logger.class_path=headstart.callbacks.DashboardLogger", "--trainer.logger.mode=offline"]
    file = write(tmp_path, options, seed_everything={"values": [0, 1]}, data__batch_size={"values": [1, 2]})
    run(file, tmp_path / "a")
    run(file, tmp_path / "b", "--workers=2")
    alone, workers = logged(tmp_path / "a"), logged(tmp_path / "b")
    assert alone == workers
    assert len(alone) == 4

    # A group holds the two seeds of one batch size; the sweep is a tag, and its parameters are in the configuration.
    groups = {(settings["run_group"], config["data.batch_size"]) for settings, config, *_ in alone.values()}
    assert len(groups) == 2
    assert len({group for group, _ in groups}) == 2
    for settings, config, *_ in alone.values():
        assert settings["tags"][-1] == config["sweep"] == file.stem
        assert config["seed_everything"] in (0, 1)
