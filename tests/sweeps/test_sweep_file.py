"""Sweep files have the same meaning as in Weights & Biases; an error names each key that is not supported here."""

import datetime
import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.output.errors import UserError
from headstart.sweeps.sweep_file import Sweep, read_sweep

COMMAND = ["${env}", "${interpreter}", "${program}", "--config=configs/demo.yaml", "${args}", "--data.orderings=2"]
GRID: dict[str, Any] = {
    "program": "train.py",
    "method": "grid",
    "command": COMMAND,
    "parameters": {
        "data.backbone.weights": {"values": ["embedded", "some/where/else.pth"]},
        "data": {"parameters": {"batch_size": {"value": 3}}},
        "seed_everything": {"values": [0, 1]},
    },
}


def read(folder: Path, content: Any) -> Sweep:
    path = folder / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return read_sweep(path)


def with_values(*values: Any) -> dict[str, Any]:
    return {**GRID, "parameters": {"model.methods.mine": {"values": [*values]}}}


def test_grid_is_the_product_of_its_values(tmp_path: Path) -> None:
    sweep = read(tmp_path, GRID)
    expected = [
        (
            "--config=configs/demo.yaml",
            f"--data.backbone.weights={weights}",
            "--data.batch_size=3",
            f"--seed_everything={seed}",
            "--data.orderings=2",
        )
        for weights, seed in itertools.product(["embedded", "some/where/else.pth"], [0, 1])
    ]
    assert [run.options for run in sweep.runs] == expected
    assert [run.name.rpartition("-")[0] for run in sweep.runs] == ["embedded-0", "embedded-1", "else-0", "else-1"]
    assert len({run.name for run in sweep.runs}) == 4
    assert read(tmp_path, {**GRID, "run_cap": 3}).runs == sweep.runs[:3]
    million = {**GRID, "parameters": {name: {"values": list(range(1000))} for name in "ab"}, "run_cap": 2}
    assert [run.options[-3:-1] for run in read(tmp_path, million).runs] == [("--a=0", "--b=0"), ("--a=0", "--b=1")]
    assert len(read(tmp_path, with_values(1, 1, 2)).runs) == 2

    # A run keeps its name as long as its options are the same.
    names = {run.name for run in sweep.runs}
    more = {**GRID, "parameters": {**GRID["parameters"], "seed_everything": {"values": [0, 1, 2]}}}
    assert names < {run.name for run in read(tmp_path, more).runs}
    other = {**GRID, "command": [*COMMAND, "--data.max_samples=9"]}
    assert names.isdisjoint(run.name for run in read(tmp_path, other).runs)

    assert read(tmp_path, {**GRID, "name": None}).dashboard == {"sweep": "mine"}
    named = read(tmp_path, {**GRID, "name": "ours", "project": "pets", "entity": "team"})
    assert named.dashboard == {"sweep": "ours", "project": "pets", "entity": "team"}


def test_any_value_makes_an_option_and_a_run_name_that_is_safe_as_a_folder(tmp_path: Path) -> None:
    replay = {"class_path": "headstart.modules.Replay", "init_args": {"size": 3}}
    readable_names = {
        "headstart.modules.Replay": "Replay",
        "others.Classifier": "Classifier",
        "resnet18.a1_in1k": "resnet18",
        "photos/pets.tar.gz": "pets.tar",
        "pets.yaml": "pets",
    }
    odd = ["a/../b c;$(d)", "ü" * 300, "..", "", [1, 2], None, 0.5, replay, *readable_names]
    for run, value in zip(read(tmp_path, with_values(*odd)).runs, odd, strict=True):
        assert Path(run.name).name == run.name
        assert run.name.isascii()
        assert 8 <= len(run.name) <= 100
        (option,) = (option for option in run.options if "mine" in option)
        text = option.partition("=")[2]
        assert (text if isinstance(value, str) else yaml.safe_load(text)) == value
        if isinstance(value, str) and value in readable_names:
            assert run.name.rpartition("-")[0] == readable_names[value]

    days = [datetime.date(2020, 1, 2), [datetime.date(2020, 1, 3)]]
    dates = [run.options[1].partition("=")[2] for run in read(tmp_path, with_values(*days)).runs]
    assert [yaml.safe_load(each) for each in dates] == ["2020-01-02", ["2020-01-03"]]


def test_command_of_a_sweep_gives_options_to_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOTOS", "/my photos")
    commands = {
        "--config=configs/demo.yaml": ["--config", "configs/demo.yaml", "--trainer.default_root_dir=null"],
        "--data.photos.root=/my photos/x": ["--data.photos.root=${envvar:PHOTOS}/x"],
        "--data.photos.root=/my photos": ["--data.photos.root", "${envvar:PHOTOS}"],
    }
    for option, parts in commands.items():
        run = read(tmp_path, {**GRID, "command": ["${program}", *parts, "${args}"]}).runs[0]
        assert run.options[0] == option
        assert not any("default_root_dir" in each for each in run.options)

    # Allowed: YAML anchors, and an option of the class that a parameter selects.
    text = yaml.safe_dump({**GRID, "parameters": {"data.photos": {"values": ["a.B", "a.C"]}}}, sort_keys=False)
    text += "  seed_everything: &seeds {values: [1, 2]}\n  data.first_ordering: *seeds\n"
    assert len(read(tmp_path, text.replace("--data.orderings=2", "--data.photos.noise=2")).runs) == 8


def parameter_a(**keys: Any) -> dict[str, Any]:
    return {"parameters": {"a": keys}}


def with_command(*parts: str) -> dict[str, Any]:
    return {"command": ["${program}", *parts]}


AGENTS = "; agents of Weights & Biases run that: wandb sweep FILE, then wandb agent$"
# Changes of GRID, or whole files, each with a part of its message; a dollar sign stands for the end of the message.
MISTAKES: list[tuple[Any, str]] = [
    ({"method": "bayes"}, f"method is 'bayes', but only grid is run here{AGENTS}"),
    ({"method": "odd"}, "method is 'odd', but only grid is run here; give grid$"),
    ({"early_terminate": {}}, f"early_terminate is not supported here{AGENTS}"),
    (parameter_a(min=0.0, max=1.0), f"parameter a has max, min{AGENTS}"),
    (parameter_a(values=[1, 2], probabilities=[0, 1]), f"parameter a has probabilities{AGENTS}"),
    ({"odd": 1}, "odd is not supported here; the keys are command, "),
    ({"program": "other.py"}, "program is 'other.py'"),
    ({"parameters": {}}, "there are no parameters"),
    (parameter_a(values=[]), "parameter a is {'values': []}; give a value, or a list of values"),
    (parameter_a(parameters=[1]), "parameter a is {'parameters': [1]}; give"),
    (parameter_a(value=1, values=[2]), "parameter a is {'value': 1, 'values': [2]}; give"),
    (parameter_a(values=list(range(10**4 + 1))), "there are 10,001 runs, but a sweep has at most"),
    ({"parameters": {"results.ledger": {"value": "x"}}}, "results.ledger is the sweep's own; give --ledger"),
    ({"run_cap": 0}, "run_cap is 0"),
    ({"reference": "--a=1"}, "reference is '--a=1'; give a list of options"),
    ({"command": ["${args}", 1]}, "; give a list of texts"),
    (
        "method: grid\ncommand:\n- ${args}\n- --model.methods={a: b}\nparameters: {x: {value: 1}}",
        "line 4 has a part of the command with a colon; quote it",
    ),
    (with_command(), "${args} stands 0 times"),
    (with_command("${args}", "${args_json}"), "${args_json} of the command cannot be given"),
    (with_command("${args}", "--a=${envvar:NO_SUCH}"), "environment variable NO_SUCH of the command is not set"),
    (with_command("stray", "${args}"), "'stray' of the command is no option"),
    (with_command("--results.ledger=x", "${args}"), "results.ledger in the command"),
    (with_command("${args}", "--seed_everything", "9"), "seed_everything after ${args} replaces"),
    (
        {"parameters": {"data.photos.noise": {"value": 1}, "data.photos": {"values": ["a", "b"]}}},
        "parameter data.photos replaces data.photos.noise; leave one of them out, or put data.photos first",
    ),
    ("a: 1\na: 2", "is no YAML (it has the key 'a' twice (line 2))"),
    ("a: &x\n  b: *x", "is no YAML (Circular reference detected)"),
    ("a: x: y", "at line 1, column 5); quote a value with a colon or braces"),
]


def test_mistakes_in_a_sweep_file_are_refused(tmp_path: Path) -> None:
    for change, words in MISTAKES:
        with pytest.raises(UserError) as refused:
            read(tmp_path, change if isinstance(change, str) else {**GRID, **change})
        assert words in f"{refused.value}$"
        assert str(refused.value).startswith("file: ")
        assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=r"cannot be read \(No such file"):
        read_sweep(tmp_path / "nowhere.yaml")
