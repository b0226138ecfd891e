"""What a user may type wrongly for each command, and the one line that answers: it names the option and the way out."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart import datamodules, evaluate
from headstart.cli.command_line import run_command
from headstart.cli.commands import COMMAND_BY_NAME
from headstart.datamodules import PhotoSource
from headstart.tests.conftest import write_photos
from headstart.tests.material.mistakes import error_line

Fit = Callable[..., Path]
# Files in the folder where commands are typed.
FILES: dict[str, str | bytes] = {
    "two.yaml": "dataa: 1\nmodell: 2\n",
    "empty.yaml": "trainerr: {}\ndataa: {x: 1}\ntrainer: {}\n",
    "inside.yaml": "data: {init_args: {orderngs: 3, batchsize: 2}}\n",
    "no_file.yaml": "data: data/drawn_pets.yaml\n",
    "init_arg.yaml": "data: {class_path: headstart.datamodules.FeatureStream, init_arg: {batch_size: 3}}",
    "methods.yaml": (
        "model: {methods: {steps: {class_path: headstart.modules.GradientDescent, init_args: {optimizer: {class_path: "
        "torch.optim.SGD, init_args: {lr: often, momentum: 0.5}}}}, mean: headstart.modules.NearestClassMean}}"
    ),
    "whole.yaml": "seed_everything: 1",
    "broken.yaml": "data: [1, 2",
    "latin.yaml": "# Zürich\n".encode("latin-1"),
    "table.csv": "a,b\n1,2\n",
    "broken.py": "class Mine:\n    def (self):\n        pass\n",
}
# What is typed, and a pattern of the line that answers.
TYPED = {
    "cache --remove=nothing": r"remove: 'nothing' does not exist; headstart cache lists all names",
    "lis": r"'lis' is not a command \(closest: list\); headstart --help lists them",
    "list": r"kind: it is required; give one of methods, metrics, measures, models, datasets, configs",
    "demo --model.methods.x=NearestClasMean": r"model\.methods\.x: there is no Method .*closest: .*NearestClassMean\)",
    "demo --model.baseline.lr=-1": r"model\.baseline\.lr: .*no such option of .*GradientDescent; it has optimizer",
    "demo --model.baseline.optimizer.lr=-1": r"model\.baseline\.optimizer: Invalid learning rate: -1.0",
    "demo --model.methods.x=modules.LoRAA": (
        r"model\.methods\.x: modules\.LoRAA cannot be imported: No module named 'modules' \(closest: .*\.LoRA\)"
    ),
    "demo --model.methods.x=broken.Mine": r"model\.methods\.x: .*: invalid syntax \(broken\.py, line 2\)",
    "demo --seed_everything=4294967296": r"seed_everything: .* from 0 to 4294967295, not 4294967296",
    "demo --data.orderings=100000000": r"data\.orderings: 100,000,000 orderings .* GB of memory.*; give fewer",
    "demo --data.max_samples=100000000": r"data\.max_samples: 20 orderings of 100,000,000 evaluations .*; give fewer",
    "demo --model.methods.x=NearestClassMean --model.methods.x.lr=1": r"model\.methods\.x\.lr: .*; it has no options",
    "train --task=nonsense": r"task: 'nonsense' is not a task; give one of comparison",
    "train --data.photos=photos": r"data\.photos: photos is a folder; name its kind, ClassFolders",
    "train --data.photos.root=photos": r"data\.photos: .*PhotoSource is abstract; name its kind, ClassFolders",
    "train --data.photos.help": r"data\.photos\.help: expected a value",
    "train --model.baseline.help=Metod": r"model\.baseline\.help: .*\(closest: headstart\.modules\.Method\)",
    "train --config=empty.yaml": r"trainerr, dataa: there are no such options \(closest: trainer, data\)",
    "train --config=two.yaml": r"dataa, modell: there are no such options \(closest: data, model\)",
    "train --config=inside.yaml": r"data\.orderngs, data\.batchsize: there are no such options of .*data\.batch_size\)",
    "train --config=no_file.yaml": r"data: there is no file data/drawn_pets\.yaml",
    "demo --data.backbone=resnet18": r"data\.backbone: expected its options, written --data\.backbone\.name=VALUE, not",
    "demo --model.baseline.optimizer=Adm": r"model\.baseline\.optimizer: .*\(closest: torch\.optim\..*Adam\)",
    "demo --results.accuracy_at=[0]": r"results\.accuracy_at: expected a whole number from 1, not 0",
    "train --config=init_arg.yaml": r"data\.init_arg\.batch_size: there is no such option",
    "train --config=whole.yaml --config broken.yaml": r"config: broken\.yaml cannot be read \(while parsing",
    "train --config=latin.yaml": r"config: latin\.yaml is not UTF-8: byte 3 is 0xfc",
    "train --config=nowhere.yaml": r"config: File does not exist",
    "demo --config=methods.yaml": r"model\.methods\.steps\.optimizer\.lr: expected a number",
    "fit photos/train --output=photos/train/cats": r"output: 'photos/train/cats' has photos in it, or lies in their",
    "fit photos/train --output=photos": r"output: 'photos' has photos in it",
    "fit photos/train --backbones=[1]": r"backbones: '\[1\]' is no network; give a name",
    "fit photos/train --backbones=[resnet51]": r"backbones: torchvision has no model .resnet51.; it has resnet50",
    "fit photos/train --orderings=10000000000": r"orderings: 10,000,000,000 orderings of .* GB of memory.*; give fewer",
    "audit table.csv": r"table: no column 'source'",
    "stability table.csv": r"table: no column 'source'",
}


def test_each_is_answered_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_photos(tmp_path / "photos")
    for name, content in FILES.items():
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = sorted(tmp_path.rglob("*"))
    wrong = []
    for typed, pattern in TYPED.items():
        with pytest.raises(SystemExit) as caught:
            run_command(typed.split(), COMMAND_BY_NAME)
        last = capsys.readouterr().err.strip().splitlines()[-1]
        if caught.value.code not in (1, 2) or not re.search(f"^error: {pattern}", last):
            wrong.append((typed, last))
    assert not wrong, "\n".join(map(str, wrong))
    assert sorted(tmp_path.rglob("*")) == before


CHANGES = "would change the protocol"
CALLBACK = "--trainer.callbacks="
# Options of a comparison on photos in folders, and a part of the line that answers.
OF_A_COMPARISON = {
    "--data=NoStream": "NoStream",
    "--data.max_samples=25": "data.max_samples: 25 requested, but there are 24 training photos",
    # Three evaluations in a row.
    "--data.max_samples=2": "too few to meet the criterion, which needs 3 evaluations of 1 sample each",
    "--data.backbone.name=mobilenet_v9": "data.backbone.name: torchvision has no model 'mobilenet_v9'; it",
    "--model.methods={baseline: headstart.modules.NearestClassMean}": "the name 'baseline' is the baseline's own",
    "--model.methods={a.b: headstart.modules.Replay}": "model.methods: 'a.b' cannot be a method's name",
    "--trainer.accelerator=gpuu": "trainer.accelerator: ",
    "--trainer.limit_train_batches=3": "trainer.limit_train_batches: 3",
    "--trainer.enable_checkpointing=true": f"trainer.enable_checkpointing: True {CHANGES}",
    "--trainer.gradient_clip_val=0.5": f"trainer.gradient_clip_val: 0.5 {CHANGES}",
    CALLBACK + "{class_path: EarlyStopping, init_args: {monitor: loss}}": f"callbacks: EarlyStopping {CHANGES}",
    "--trainer.precision=16": "trainer.precision: 16-mixed does not fit this stream; give 32-true",
    "--trainer.val_check_interval=nonsense": "val_check_interval: it follows from criterion.evaluate_every",
}


def test_mistakes_in_a_comparison(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = {option: error_line(capsys, lambda option=option: fit(option)) for option in OF_A_COMPARISON}  # type: ignore[misc]
    precision = ["--data=headstart.datamodules.PhotoStream", "--trainer.precision=16-mixed"]
    wrong = [line for option, line in lines.items() if OF_A_COMPARISON[option] not in line]
    assert not wrong, "\n".join(wrong)
    # Where bfloat16 is allowed, it is named.
    assert "does not fit this stream; give 32-true or bf16-mixed" in error_line(capsys, lambda: fit(*precision))
    (tmp_path / "file").touch()
    for folder in ("file/run", "n" * 300, "nul\0", "~nobody_has_this_name/run", ""):
        for logger in ("false", "headstart.callbacks.DashboardLogger"):
            line = error_line(capsys, lambda: fit(f"--trainer.logger={logger}", folder=folder))  # noqa: B023
            assert line.startswith("error: trainer.default_root_dir: ")
    assert {path.name for path in tmp_path.iterdir()} == {"pictures", "file"}


def test_a_mistake_that_a_method_finds_is_reported_once(fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        fit("--model.methods.lora=LoRA")
    assert caught.value.code == 1
    output = capsys.readouterr()
    reason = "LoRA runs a backbone of its own; feed it photos, with data=PhotoStream"
    assert output.err.splitlines()[-1] == f"error: model.methods.lora: {reason}"
    assert (output.out + output.err).count(reason) == 1
    assert "INCOMPLETE: an error ended the run, before every method was measured. Nothing is written." in output.out


# Wrong arguments of a source, and the argument that the message names; '' for the source as a whole.
SOURCES: dict[str, tuple[dict[str, Any], str]] = {
    **dict.fromkeys(("AntsAndBees", "CatsAndDogs", "ClassFolders"), ({"root": "nowhere"}, "root")),
    **dict.fromkeys(("OxfordPets", "UnsplitClassFolders"), ({"root": "nowhere"}, "root")),
    "ClassSubset": (
        {"source": "{class_path: headstart.datamodules.ClassFolders, init_args: {root: nowhere}}", "classes": "[a, b]"},
        "source.root",
    ),
    "CsvPhotos": ({"file": "nowhere.csv"}, "file"),
    "DrawnObjects": ({"photos_per_class": 0}, "photos_per_class"),
    "DrawnPets": ({"train_size": 1}, ""),
    "DrawnScenes": ({"subjects": "[unicorn]"}, "subjects"),
    "HuggingFaceDataset": ({"path": "nowhere"}, "path"),
    "MapFolders": ({"root": "nowhere", "classes": "[road, car]"}, "root"),
    "OwnDataset": ({"dataset": "torchvision.datasets.ImageFolder", "arguments": "{root: nowhere}"}, "arguments"),
    "TorchvisionDataset": ({"name": "Nothing"}, "name"),
}


@pytest.mark.slow
def test_mistakes_of_every_source_name_the_option_of_either_command_once(
    fit: Fit, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = [getattr(datamodules, name) for name in dir(datamodules)]
    sources = [each for each in exported if issubclass(each, PhotoSource) and each is not PhotoSource]
    assert {source.__name__ for source in sources} == set(SOURCES)
    commands: dict[str, Callable[..., object]] = {
        "data.photos": fit,
        "targets.pets": lambda *options: evaluate.main(["transferability", *options, "--logger=false"]),
    }
    wrong = []
    for source, (arguments, named) in SOURCES.items():
        for option, run in commands.items():
            given = [f"--{option}.{name}={value}" for name, value in arguments.items()]
            call = [f"--{option}=headstart.datamodules.{source}", *given]
            line = error_line(capsys, lambda run=run, call=call: run(*call))  # type: ignore[misc]
            if not line.startswith(f"error: {option}{named and '.'}{named}: ") or line.count(option) != 1:
                wrong.append(line)
    assert not wrong, "\n".join(wrong)
