"""The help of headstart train, the configuration that it prints, and options that are set to null."""

import inspect
import types
import typing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart import datamodules, train
from headstart.datamodules import PhotoSource

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


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--help", ["LightningModule]; headstart list methods", "PhotoSource; headstart list datasets"]),
        ("--data.help=PhotoStream", ["PhotoSource; headstart list datasets"]),
        ("--data.photos.help=PhotoSource", ["has no options; headstart list methods, or datasets, says which there"]),
        ("--model.baseline.help=NearestClassMean", ["has no options; headstart list methods"]),
        ("--model.baseline.help=LoRA", ["one of Adafactor, Muon, Adadelta, Adagrad, Adam, AdamW,"]),
        ("--trainer.help", ["(type: Union[str, Accelerator], default: auto, one of CPUAccelerator, CUDAAccelerator"]),
    ],
)
def test_help_points_to_the_lists_of_classes(option: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(printed(capsys, option).split())
    assert all(each in text for each in words)
    assert not any(
        each in text for each in ("known subclasses", "<class", "SplitSource", "modules.FineTuning", "DrawnObjects")
    )


@pytest.mark.parametrize("change", [[], ["--data.batch_size=3"]])
def test_configuration_is_printed_in_any_order(change: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    first, last = (
        yaml.safe_load(printed(capsys, *options))
        for options in (["--print_config", DEMO, *change], [DEMO, *change, "--print_config"])
    )
    assert first == last
    assert first["criterion"]["threshold"] == 0.8
    assert first["data"]["init_args"]["batch_size"] == (3 if change else 1)


def options(kind: type) -> dict[str, Any]:
    """Return the types of the constructor's arguments, those that it passes on included."""
    results: dict[str, Any] = {}
    for each in kind.__mro__:
        if "__init__" in vars(each):
            hints = typing.get_type_hints(each.__init__)  # type: ignore[misc]
            parameters = inspect.signature(each.__init__).parameters.values()  # type: ignore[misc]
            results |= {
                one.name: hints[one.name] for one in parameters if one.name in hints and one.kind != one.VAR_KEYWORD
            }
            if not any(one.kind == one.VAR_KEYWORD for one in parameters):
                break
    return results


def nullable(kind: type) -> list[str]:
    """Return the constructor's arguments that may be None."""
    return [name for name, hint in options(kind).items() if types.NoneType in typing.get_args(hint)]


SOURCES = [
    each
    for name in datamodules.__all__
    if isinstance(each := getattr(datamodules, name), type)
    and issubclass(each, PhotoSource)
    and each is not PhotoSource
]
OF_STREAMS = [name for name in nullable(datamodules.SampleStream) if name != "seed"]


def test_null_for_every_option_that_may_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    for name in OF_STREAMS:
        given = (f"--data.{name}=3", f"--data.{name}=null", f"--data.init_args.{name}=3")
        config = configuration(capsys, *given, f"--data.init_args.{name}=null")
        assert config["data"]["init_args"][name] is None, name

    names = nullable(options(datamodules.SampleStream)["backbone"])
    data = configuration(capsys, *(f"--data.backbone.{name}=null" for name in names))["data"]["init_args"]
    assert [data["backbone"][name] for name in names] == [None] * len(names)

    spelt = cycle(("null", "~", "None"))
    for source in SOURCES:
        nulls = [f"--data.photos.{name}={next(spelt)}" for name in nullable(source)]
        photos = configuration(capsys, f"--data.photos={source.__name__}", *nulls)["data"]["init_args"]["photos"]
        assert all(photos.get("init_args", {}).get(name) is None for name in nullable(source)), source


def configuration(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return the whole configuration that results from the options and the demo's."""
    config: dict[str, Any] = yaml.safe_load(printed(capsys, DEMO, *options, "--print_config"))
    return config
