"""What a new user would type wrongly, and what the commands say: one line that says how to mend it."""

import re
from pathlib import Path

import pytest

from headstart.cli.command_line import run_command
from headstart.cli.commands import NAMED
from headstart.tests.conftest import write_photos

# What is typed, and a pattern of the line that answers.
MISTAKES = {
    "demo --model.methods.x=NearestClasMean": r"model\.methods\.x: there is no Method .*closest: .*NearestClassMean\)",
    "demo --model.baseline.lr=-1": r"model\.baseline\.lr: .*no such option of .*GradientDescent; it has optimizer",
    "demo --seed_everything=-1": r"seed_everything: expected a whole number from 0 to 4294967295, not -1",
    "demo --data.orderings=100000000": r"data\.orderings: 100,000,000 orderings .* GB of memory.*; give fewer",
    "train --data.photos=photos": r"data\.photos: photos is a folder; name its kind, ClassFolders",
    "demo --data.max_samples=100000000": r"data\.max_samples: 20 orderings of 100,000,000 evaluations .*; give fewer",
    "demo --seed_everything=4294967296": r"seed_everything: .* from 0 to 4294967295, not 4294967296",
    "demo --seed_everything=true": r"seed_everything: expected a whole number from 0 to 4294967295, not true",
    "train --data.photos=./photos": r"data\.photos: \./photos is a folder; name its kind",
    "train --data.photos.root=photos": r"data\.photos: .*PhotoSource is abstract; name its kind, ClassFolders",
    "train --config=two.yaml": r"dataa, modell: there are no such options \(closest: data, model\)",
    "train --config=nested.yaml": r"dataa, modell: there are no such options \(closest: data, model\)",
    "train --config=inside.yaml": r"data\.orderngs, data\.batchsize: there are no such options of .*data\.batch_size\)",
    "demo --dataa.x=1 --modell.y=2": r"dataa, modell: there are no such options",
    "demo --model.methods={x:NearestClasMean}": r"model\.methods: ",
    "demo --config=method.yaml": r"model\.methods\.x: there is no Method .*closest: .*NearestClassMean\)",
    "demo --model.methods.x=NearestClassMean --model.methods.x.lr=1": r"model\.methods\.x\.lr: .*; it has no options",
    "fit photos/train --output=photos/train": r"output: 'photos/train' has photos in it, or lies in their folder",
    "fit photos/train --output=photos/train/cats": r"output: 'photos/train/cats' has photos in it, or lies in their",
    "fit photos/train --output=photos": r"output: 'photos' has photos in it",
    "fit photos/train --backbones=[{nam:resnet18}]": r"backbones: ",
    "fit photos/train --backbones=[1]": r"backbones: '\[1\]' is no network; give a name",
    "fit photos/train --backbones=[resnet51]": r"backbones: torchvision has no model .resnet51.; it has resnet50",
    "fit photos/train --orderings=10000000000": r"orderings: 10,000,000,000 orderings of .* GB of memory.*; give fewer",
    "fit photos/train --seed=4294967296": r"seed: expected a whole number from 0 to 4294967295, not 4294967296",
    "demo --model.baseline.optimizer.lr=-1": r"model\.baseline\.optimizer: Invalid learning rate: -1.0",
    "train --data.photos=table.csv": r"data\.photos: table\.csv is a file; .*CsvPhotos",
    "audit table.csv": r"table: no column 'source'",
    "stability table.csv": r"table: no column 'source'",
    "list": r"kind: it is required; give one of methods, metrics, measures, models, datasets, configs",
}


def test_each_is_answered_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path / "photos")
    Path("two.yaml").write_text("dataa: 1\nmodell: 2\n")
    Path("nested.yaml").write_text("dataa: {orderings: 3}\nmodell: {x: 1}\n")
    Path("inside.yaml").write_text("data: {init_args: {orderngs: 3, batchsize: 2}}\n")
    Path("method.yaml").write_text("model: {methods: {x: NearestClasMean}}\n")
    Path("table.csv").write_text("a,b\n1,2\n")
    before = sorted(tmp_path.rglob("*"))
    wrong = []
    for typed, pattern in MISTAKES.items():
        with pytest.raises(SystemExit) as caught:
            run_command(typed.split(), NAMED)
        last = capsys.readouterr().err.strip().splitlines()[-1]
        if caught.value.code not in (1, 2) or not re.search(f"^error: {pattern}", last):
            wrong.append((typed, last))
    assert not wrong, "\n".join(map(str, wrong))
    assert sorted(tmp_path.rglob("*")) == before
