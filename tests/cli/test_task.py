"""The task of a run is that of `--task`, else of the last configuration that names one."""

from pathlib import Path

import pytest
import yaml

from headstart import train
from headstart.cli.commands import TASKS
from headstart.cli.task import find_task
from headstart.sweeps.sweep_file import RUN_OPTIONS

ROOT = Path(train.__file__).parent


def test_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"none": "data: {}", "source": "task: source_training", "target": "task: target_accuracy", "broken": "[1"}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    tasks = {
        "": "comparison",
        "--config=none.yaml": "comparison",
        "--config source.yaml --data.batch_size=3": "source_training",
        "--config source.yaml --config=target.yaml": "target_accuracy",
        "--config=target.yaml --config source.yaml": "source_training",
        "--task=target_accuracy --config=source.yaml": "target_accuracy",
        "--config=source.yaml --task comparison": "comparison",
        "--config=broken.yaml --config=missing.yaml": "comparison",
    }
    assert {options: find_task(options.split()) for options in tasks} == tasks


@pytest.mark.parametrize("task", TASKS)
def test_help_and_configuration_of_each(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--help", "--print_config"):
        with pytest.raises(SystemExit) as ended:
            train.main([f"--task={task}", option, *_required(task)])
        assert not ended.value.code
    text = capsys.readouterr().out
    assert "usage: headstart train" in text
    printed = yaml.safe_load(text[text.rindex("# lightning.pytorch") :])
    assert printed["task"] == task
    # Sweeps pass these options on to their runs.
    assert set(printed) <= set(RUN_OPTIONS)


def _required(task: str) -> list[str]:
    config = ROOT / "configs" / f"{'demo' if task == 'comparison' else task}.yaml"
    return [f"--config={config}"]
