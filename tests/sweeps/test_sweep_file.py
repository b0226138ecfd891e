"""Sweep files mean what they mean to Weights & Biases, and what cannot be done here is refused by name."""

import datetime
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from headstart.output.errors import UserError
from headstart.sweep import main
from headstart.sweeps.sweep_file import Sweep, read_sweep

GRID: dict[str, Any] = {
    "program": "train.py",
    "method": "grid",
    "command": [
        "${env}",
        "${interpreter}",
        "${program}",
        "--config=configs/demo.yaml",
        "${args}",
        "--data.orderings=2",
    ],
    "parameters": {
        "data.backbone.weights": {"values": ["embedded", "some/where/else.pth"]},
        "data": {"parameters": {"batch_size": {"value": 3}}},
        "seed_everything": {"values": [0, 1]},
    },
}


def drawn(parameter: dict[str, Any]) -> dict[str, Any]:
    return {"method": "random", "run_cap": 1, "parameters": {"a": parameter}}


def read(folder: Path, content: Any, seed: int = 0) -> Sweep:
    path = folder / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return read_sweep(path, seed)


def test_grid_is_the_product_of_its_values(tmp_path: Path) -> None:
    sweep = read(tmp_path, GRID)
    assert sweep.name == "mine"
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


def test_names_stay_where_options_do(tmp_path: Path) -> None:
    names = {run.name for run in read(tmp_path, GRID).runs}
    more = {**GRID, "parameters": {**GRID["parameters"], "seed_everything": {"values": [0, 1, 2]}}}
    assert names < {run.name for run in read(tmp_path, more).runs}
    other = {**GRID, "command": [*GRID["command"], "--data.max_samples=9"]}
    assert names.isdisjoint(run.name for run in read(tmp_path, other).runs)


@pytest.mark.parametrize(
    "value", ["a/../b c;$(d)", "ü" * 300, "..", "", {"class_path": "headstart.modules.Replay"}, [1, 2], None]
)
def test_any_value_gives_a_folder_s_name(value: Any, tmp_path: Path) -> None:
    (run,) = read(tmp_path, {**GRID, "parameters": {"model.methods.mine": {"values": [value]}}}).runs
    assert Path(run.name).name == run.name
    assert run.name.isascii()
    assert 8 <= len(run.name) <= 100
    (option,) = (option for option in run.options if "mine" in option)
    text = option.partition("=")[2]
    assert (text if isinstance(value, str) else yaml.safe_load(text)) == value


def test_a_date_is_a_value(tmp_path: Path) -> None:
    days = [datetime.date(2020, 1, 2), [datetime.date(2020, 1, 3)]]
    runs = read(tmp_path, {**GRID, "parameters": {"model.methods.mine": {"values": days}}}).runs
    dates = [run.options[1].partition("=")[2] for run in runs]
    assert [yaml.safe_load(each) for each in dates] == ["2020-01-02", ["2020-01-03"]]


def test_values_that_the_dashboard_receives(tmp_path: Path) -> None:
    assert read(tmp_path, {**GRID, "name": None}).dashboard == {"sweep": "mine"}
    named = read(tmp_path, {**GRID, "name": "ours", "project": "pets", "entity": "team"})
    assert named.dashboard == {"sweep": "ours", "project": "pets", "entity": "team"}


def test_values_that_come_twice_run_once(tmp_path: Path) -> None:
    assert len(read(tmp_path, {**GRID, "parameters": {"seed_everything": {"values": [1, 1, 2]}}}).runs) == 2


def test_a_grid_may_be_cut_off(tmp_path: Path) -> None:
    whole = read(tmp_path, GRID).runs
    assert read(tmp_path, {**GRID, "run_cap": 3}).runs == whole[:3]


def test_options_of_the_command_in_two_parts(tmp_path: Path) -> None:
    command = ["${program}", "--config", "configs/demo.yaml", "--trainer.default_root_dir=null", "${args}"]
    run = read(tmp_path, {**GRID, "command": command}).runs[0]
    assert run.options[0] == "--config=configs/demo.yaml"
    assert not any("default_root_dir" in option for option in run.options)


def test_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOTOS", "/my photos")
    command = ["${program}", "--data.photos.root=${envvar:PHOTOS}/x", "${args}"]
    assert read(tmp_path, {**GRID, "command": command}).runs[0].options[0] == "--data.photos.root=/my photos/x"
    parts = ["${program}", "--data.photos.root", "${envvar:PHOTOS}", "${args}"]
    assert read(tmp_path, {**GRID, "command": parts}).runs[0].options[0] == "--data.photos.root=/my photos"
    monkeypatch.delenv("PHOTOS")
    with pytest.raises(UserError, match="environment variable PHOTOS of the command is not set"):
        read(tmp_path, {**GRID, "command": command})


# Each with the cumulative distribution that Weights & Biases documents.
DISTRIBUTIONS = [
    ({"min": 2.0, "max": 5.0}, stats.uniform(2, 3)),
    ({"distribution": "uniform", "min": 2, "max": 5}, stats.uniform(2, 3)),
    ({"distribution": "log_uniform_values", "min": 1e-4, "max": 1.0}, stats.loguniform(1e-4, 1)),
    ({"distribution": "log_uniform", "min": math.log(1e-4), "max": 0.0}, stats.loguniform(1e-4, 1)),
    ({"distribution": "inv_log_uniform_values", "min": 1e-4, "max": 1.0}, stats.loguniform(1e-4, 1)),
    ({"distribution": "normal", "mu": 3, "sigma": 2}, stats.norm(3, 2)),
    ({"distribution": "log_normal", "mu": 0.5, "sigma": 0.2}, stats.lognorm(0.2, scale=math.exp(0.5))),
]


@pytest.mark.parametrize(("parameter", "expected"), DISTRIBUTIONS, ids=lambda x: str(x)[:40])
def test_draws_have_their_distribution(parameter: dict[str, Any], expected: Any, tmp_path: Path) -> None:
    drawn = draw(tmp_path, parameter, 500)
    assert stats.kstest(drawn, expected.cdf).pvalue > 0.001


def test_whole_numbers_and_steps(tmp_path: Path) -> None:
    assert set(draw(tmp_path, {"min": 1, "max": 3}, 60)) == {1, 2, 3}
    stepped = draw(tmp_path, {"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.25}, 60)
    assert set(stepped) == {0, 0.25, 0.5, 0.75, 1}
    assert np.mean(draw(tmp_path, {"values": [0, 1], "probabilities": [0.9, 0.1]}, 300)) < 0.2


def draw(folder: Path, parameter: dict[str, Any], count: int) -> list[float]:
    content = {
        **GRID,
        "method": "random",
        "run_cap": count,
        "parameters": {"x": parameter, "y": {"min": 0.0, "max": 1.0}},
    }
    runs = read(folder, content).runs
    assert len(runs) == count
    return [float(option.partition("=")[2]) for run in runs for option in run.options if option.startswith("--x=")]


def test_draws_are_those_of_the_seed_and_more_are_added(tmp_path: Path) -> None:
    content = {**GRID, "method": "random", "run_cap": 3, "parameters": {"x": {"min": 0.0, "max": 1.0}}}
    first = read(tmp_path, content, seed=4).runs
    assert read(tmp_path, content, seed=4).runs == first
    assert read(tmp_path, {**content, "run_cap": 5}, seed=4).runs[:3] == first
    assert read(tmp_path, content, seed=5).runs != first


def test_a_grid_of_a_million_runs_may_be_cut_off(tmp_path: Path) -> None:
    content = {**GRID, "parameters": {name: {"values": list(range(1000))} for name in "ab"}, "run_cap": 2}
    assert [run.options[-3:-1] for run in read(tmp_path, content).runs] == [("--a=0", "--b=0"), ("--a=0", "--b=1")]


def test_anchors_and_options_of_a_chosen_class_are_allowed(tmp_path: Path) -> None:
    text = yaml.safe_dump({**GRID, "parameters": {"data.photos": {"values": ["a.B", "a.C"]}}}, sort_keys=False)
    text += "  seed_everything: &seeds {values: [1, 2]}\n  data.first_ordering: *seeds\n"
    text = text.replace("--data.orderings=2", "--data.photos.noise=2")
    assert len(read(tmp_path, text).runs) == 8


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("headstart.modules.Replay", "Replay"),
        ("mine.scale", "scale"),
        ("others.Classifier", "Classifier"),
        ({"class_path": "headstart.modules.Replay", "init_args": {"size": 3}}, "Replay"),
        ("resnet18.a1_in1k", "resnet18"),
        ("photos/pets.tar.gz", "pets.tar"),
        ("pets.yaml", "pets"),
        (0.5, "0.5"),
    ],
)
def test_names_have_the_last_part_of_a_path(
    value: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").touch()
    monkeypatch.chdir(tmp_path)
    (run,) = read(tmp_path, {**GRID, "parameters": {"model.methods.mine": {"values": [value]}}}).runs
    assert run.name.rpartition("-")[0] == name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "bayes"}, "method is 'bayes'"),
        ({"program": "other.py"}, "program is 'other.py'"),
        ({"early_terminate": {}}, "early_terminate is not supported here"),
        ({"parameters": {}}, "there are no parameters"),
        ({"parameters": {"a": 3}}, "parameter a is 3"),
        ({"parameters": {"a": {"values": []}}}, "values of parameter a are []"),
        ({"parameters": {"a": {"vales": [1]}}}, "parameter a has neither value"),
        ({"parameters": {"a": {"min": 0.0, "max": 1.0}}}, "parameter a has no values; a grid"),
        ({"parameters": {"results.ledger": {"value": "x"}}}, "results.ledger is the sweep's own; give --ledger"),
        ({"method": "random"}, "run_cap is None"),
        ({"run_cap": 0}, "run_cap is 0"),
        ({"run_cap": True}, "run_cap is True"),
        (drawn({"distribution": "odd", "min": 1}), "distribution 'odd'"),
        (drawn({"distribution": "uniform", "min": 1}), "without its 'max'"),
        (drawn({"min": "x", "max": 1}), "parameter a cannot be sampled"),
        ({"command": "headstart train"}, "command is 'headstart train'"),
        ({"command": ["${program}"]}, "${args} stands 0 times"),
        ({"command": ["${program}", "${args}", "${args_json}"]}, "${args_json} of the command cannot be given"),
        ({"command": ["${program}", "stray", "${args}"]}, "'stray' of the command is no option"),
        ({"command": ["${program}", "--results.ledger=x", "${args}"]}, "results.ledger in the command"),
        (drawn({"values": [1, 2], "probabilities": [0.5, 0.6]}), "parameter a cannot be sampled"),
        (drawn({"values": [1, 2], "probabilities": [1]}), "parameter a cannot be sampled"),
        (drawn({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0}), "parameter a cannot be sampled"),
        (drawn({"distribution": "q_uniform", "min": 0, "max": 1, "q": "x"}), "parameter a cannot be sampled"),
        (drawn({"distribution": 3, "min": 0, "max": 1}), "distribution 3;"),
        (drawn({"distribution": None, "min": 0, "max": 1}), "distribution None;"),
        (drawn({"distribution": "inv_log_uniform_values", "min": 0, "max": 1}), "parameter a cannot be sampled"),
        ({"parameters": {"a": {"parameters": {}}}}, "parameter a has neither value"),
        ({"parameters": {"a": {"parameters": [1]}}}, "parameters of a are [1]; give a mapping"),
        (drawn({"distribution": "gauss"}), "parameter a has distribution 'gauss'; give one of int_uniform, uniform, "),
        ({"parameters": {"a": {"value": 1, "values": [2]}}}, "parameter a has values beside its value"),
        ({"parameters": {"a": {"values": [2], "min": 1}}}, "parameter a has min beside its values"),
        (drawn({"value": 2, "distribution": "normal"}), "parameter a has value, and distribution 'normal'"),
        (drawn({"min": 0, "max": 1, "steps": 3}), "parameter a has steps beside its distribution"),
        (
            {"parameters": {"data.x": {"value": 1}, "data": {"parameters": {"x": {"value": 2}}}}},
            "parameter data.x replaces data.x; leave one of them out$",
        ),
        (
            {"parameters": {"data.x": {"value": 1}, "data": {"value": {"y": 2}}}},
            "parameter data replaces data.x; leave one of them out$",
        ),
        (
            {"parameters": {"data.photos.noise": {"value": 1}, "data.photos": {"values": ["a", "b"]}}},
            "parameter data.photos replaces data.photos.noise; leave one of them out, or put data.photos first",
        ),
        (
            {"parameters": {"a.init_args.b": {"value": 1}, "a.b": {"value": 1}}},
            "parameter a.b replaces a.init_args.b",
        ),
        ({"command": ["${program}", "${args}", "--seed_everything=9"]}, "seed_everything after ${args} replaces"),
        ({"command": ["${program}", "${args}", "--seed_everything", "9"]}, "seed_everything after ${args} replaces"),
        ({"command": ["${program}", "${args}", "--config=configs/demo.yaml"]}, "config after ${args} replaces"),
        (
            {"command": ["${program}", "${args}", "--data=a.yaml"]},
            "data after ${args} replaces parameter",
        ),
        ({"command": ["${program}", "${args}", "--data.class_path=B"]}, "data.class_path after ${args} replaces"),
        (
            {"parameters": {"data.photos": {"values": ["a"]}, "data.photos.class_path": {"values": ["b"]}}},
            "parameter data.photos.class_path replaces data.photos; leave one of them out",
        ),
        (drawn({"min": 0, "max": 1, "mu": 3}), "parameter a has mu beside distribution 'int_uniform'; leave it out"),
        (drawn({"distribution": "uniform", "min": 0, "max": 1, "q": 0.5}), "has q beside distribution 'uniform'"),
        (
            drawn({"distribution": "q_normal", "q": 2, "min": 0, "max": 1}),
            "has max, min beside distribution 'q_normal'",
        ),
        ({"parameters": {"a": {"values": [1, 2], "probabilities": [0, 1]}}}, "parameter a has probabilities; a grid"),
        ({"parameters": {"a": {"values": list(range(10**4 + 1))}}}, "there are 10,001 runs, but a sweep has at most"),
        ({"method": "random", "run_cap": 10**6}, "there are 1,000,000 runs, but a sweep has at most 10,000"),
        ("a: 1\na: 2", "is no YAML (it has the key 'a' twice (line 2))"),
        ("a: &x\n  b: *x", "has an anchor that contains itself"),
        ("a: 2020-13-45", "is no YAML (month must be in 1..12)"),
        (
            "a: [",
            "is no YAML (while parsing a flow node expected the node content, but found '<stream end>' at line 1, ",
        ),
        ("- a", "holds no mapping"),
    ],
)
def test_mistakes_in_a_sweep_file_are_refused(change: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path, change if isinstance(change, str) else {**GRID, **change})
    # A dollar sign marks the end of a message.
    assert words in f"{refused.value}$"
    assert str(refused.value).startswith("file: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "nowhere.yaml", "cannot be read (No such file"),
        (tmp_path, "cannot be read (Is a directory)"),
    ):
        with pytest.raises(UserError) as refused:
            read_sweep(path, 0)
        assert words in str(refused.value)
        assert "Errno" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trainer.logger=false"], "trainer.logger: it is an option of the runs; write it into the command of the"),
        (["--data.batch_size", "3"], "data.batch_size: it is an option of the runs; write it into the command of the"),
        (["--seed_everything=3"], "seed_everything: it is an option of the runs; write it into the command of the"),
        (["--results.ledger=x"], "results.ledger: it is an option of the runs; give --ledger instead"),
    ],
)
def test_options_of_the_runs_belong_into_the_file(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["configs/sweep/demo.yaml", *options])
    assert caught.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {words}")
