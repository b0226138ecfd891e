"""The help of headstart train, its task, the configuration that it prints, and options that are set to null."""

from pathlib import Path

import pytest
import yaml

from headstart import train
from headstart.cli.commands import TASKS
from headstart.cli.task import find_task

ROOT = Path(train.__file__).parent
DEMO = f"--config={ROOT / 'configs' / 'demo.yaml'}"


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return what headstart train prints before it exits without an error."""
    with pytest.raises(SystemExit) as caught:
        train.main(list(options))
    assert not caught.value.code
    return capsys.readouterr().out


def test_help_begins_with_what_is_fed_and_leaves_the_trainer_to_a_second_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "--help")
    positions = [text.index(f"--{name}") for name in ("data.batch_size", "model.baseline", "criterion.threshold")]
    assert positions == sorted(positions)
    assert "--trainer.accelerator" not in text
    assert "optimizer" not in text
    assert "lr_scheduler" not in text
    assert "headstart list datasets" in " ".join(text.split())
    lines = text.splitlines()
    assert any("--trainer.help" in line for line in lines[-6:])
    assert max(map(len, lines)) <= 100
    assert "--trainer.accelerator" in printed(capsys, "--trainer.help")


def test_help_points_to_the_lists_of_classes(capsys: pytest.CaptureFixture[str]) -> None:
    words = {
        "--help": "LightningModule]; headstart list methods",
        "--data.help=PhotoStream": "PhotoSource; headstart list datasets",
        "--model.baseline.help=LoRA": "one of Adafactor, Muon, Adadelta, Adagrad, Adam, AdamW,",
    }
    for option, expected in words.items():
        text = " ".join(printed(capsys, option).split())
        assert expected in text
        assert not any(each in text for each in ("known subclasses", "<class", "modules.FineTuning", "DrawnObjects"))


def test_configuration_is_printed_in_any_order(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--print_config", DEMO, "--data.batch_size=3"], [DEMO, "--data.batch_size=3", "--print_config"]):
        document = yaml.safe_load(printed(capsys, *options))
        assert document["criterion"]["threshold"] == 0.8
        assert document["data"]["init_args"]["batch_size"] == 3


def test_null_for_options_that_may_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    nulls = ["--data.validation_size=3", "--data.validation_size=null", "--data.backbone.registry=~"]
    photos = ["--data.photos=CatsAndDogs", "--data.photos.root=None"]
    data = yaml.safe_load(printed(capsys, DEMO, *nulls, *photos, "--print_config"))["data"]["init_args"]
    assert data["validation_size"] is data["backbone"]["registry"] is data["photos"]["init_args"]["root"] is None


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


def test_help_and_configuration_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    for task in TASKS:
        config = ROOT / "configs" / f"{'demo' if task == 'comparison' else task}.yaml"
        assert "usage: headstart train" in printed(capsys, f"--task={task}", "--help", f"--config={config}")
        configuration = yaml.safe_load(printed(capsys, f"--task={task}", "--print_config", f"--config={config}"))
        assert configuration["task"] == task
