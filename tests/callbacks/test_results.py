"""The files of a run are complete, of one configuration and never half-written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from filelock import FileLock
from PIL import Image

from headstart.callbacks import ComparisonRun
from headstart.callbacks.run_folder import configuration_digest
from headstart.output.errors import UserError
from headstart.store.json_digest import sealed
from headstart.store.ledger_file import DESCRIPTION
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.scripted_runs import COUNTS, IndexStream, read

Script = Callable[..., Any]
# A configuration, others that give the same results, and others that do not.
CONFIG = (
    "trainer: {default_root_dir: a, logger: true, max_epochs: 1}\ndata: {batch_size: 8}\nresults: {overwrite: false}"
)


def edited(**changes: Any) -> str:
    content = yaml.safe_load(CONFIG)
    for key, value in changes.items():
        section, _, name = key.partition("__")
        content[section][name] = value
    return yaml.safe_dump(content)


SAME = [edited(), edited(trainer__default_root_dir="b"), edited(trainer__logger=False), edited(results__overwrite=True)]
OTHER = [edited(data__batch_size=4), edited(trainer__max_epochs=2), edited(data__seed=1)]
PICTURES = {"learning_curves.png", "criterion_reached.png"}
NAMES = {"config.yaml", "curves.npz", "results.json", *PICTURES}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*")}


def test_files_of_a_complete_run(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    run = script(COUNTS, drawn=True, results=ComparisonRun(), config=CONFIG, consecutive=3)
    assert set(files(run.folder)) == NAMES
    document = read(run.folder)
    assert document["complete"]
    assert document["stopped_because"] == run.stopped_because
    criterion = {"measure": "accuracy", "threshold": 0.8, "consecutive": 3, "evaluation": "every", "until": "criterion"}
    criterion |= {"required_correct": 16, "all_correct": 20}
    assert document["criterion"] == {**criterion, "largest_class": 10}
    assert document["evaluations"] == document["samples_seen"] == run.evaluations
    assert document["restricted_at"] == 12
    assert yaml.safe_load((run.folder / "config.yaml").read_text()).items() >= yaml.safe_load(CONFIG).items()
    for name in ("learning_curves.png", "criterion_reached.png"):
        with Image.open(run.folder / name) as picture:
            assert min(picture.size) > 300
            assert len(set(picture.convert("L").resize((60, 60)).tobytes())) > 5
    printed = capsys.readouterr().out
    assert "Complete: " in printed
    assert all(str(run.folder / name) in printed for name in NAMES)


def test_same_configuration_is_written_again_and_another_refused_unless_overwritten(script: Script) -> None:
    first = script(COUNTS, results=ComparisonRun(), config=CONFIG)
    for config in SAME:
        run = script(COUNTS, results=ComparisonRun(), config=config)
        assert run.curves.correct.tolist() == first.curves.correct.tolist()
        assert read(run.folder)["times"]["computed_traces"] == 0
        assert set(files(run.folder)) == NAMES

    before = files(first.folder)
    for config in OTHER:
        with pytest.raises(UserError, match="holds results of another configuration"):
            script(COUNTS, results=ComparisonRun(), config=config)
    assert files(first.folder) == before
    script(COUNTS, results=ComparisonRun(overwrite=True), config=OTHER[-1])
    assert yaml.safe_load((first.folder / "config.yaml").read_text()).items() >= yaml.safe_load(OTHER[-1]).items()


WRITERS = [
    "headstart.metrics.sample_efficiency.curves.Curves.content",
    "headstart.callbacks.plots.plot_learning_curves",
    "headstart.callbacks.plots.plot_criterion_reached",
    "headstart.output.figures.save",
]


def fail(*args: Any, **kwargs: Any) -> None:
    raise RuntimeError("no space left")


def test_nothing_is_half_written(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("new", "written"):
        whole = script(COUNTS, results=ComparisonRun(), config=CONFIG, folder=folder) if folder == "written" else None
        before = files(whole.folder) if whole else {}
        for writer in WRITERS:
            with monkeypatch.context() as patch:
                patch.setattr(writer, fail)
                run = script(COUNTS, drawn=True, results=ComparisonRun(), config=CONFIG, folder=folder)
            assert str(run.error) == "no space left"
            assert files(run.folder) == before, writer


def test_run_that_is_cut_off_keeps_what_it_measured(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    run = script([[[16] * 12, [0] * 12]], results=ComparisonRun(), batch_size=4, consecutive=3, fail_at=6)
    assert str(run.error) == "scripted failure"
    document = read(run.folder)
    assert not document["complete"]
    assert document["stopped_because"] == "error: RuntimeError: scripted failure"
    assert document["evaluations"] == 5
    assert document["samples_seen"] == document["restricted_at"] == run.curves.limit == 20
    assert document["methods"]["baseline"]["samples_to_criterion"] == [12, None]
    assert document["methods"]["baseline"]["onset"] == [4, None]
    assert document["methods"]["baseline"]["restricted_mean"] == 16
    assert document["times"]["computed_traces"] == document["times"]["reused_traces"] == 0
    assert "INCOMPLETE: error: RuntimeError: scripted failure" in capsys.readouterr().out


def test_two_processes_in_one_folder(script: Script) -> None:
    run = script(COUNTS, results=ComparisonRun())
    with FileLock(run.folder / ".lock"), pytest.raises(UserError, match="another process writes to"):
        script(COUNTS, results=ComparisonRun())
    script(COUNTS, results=ComparisonRun())


def test_damaged_results_of_the_same_configuration_are_written_again(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    run = script(COUNTS, results=ComparisonRun())
    before = read(run.folder)
    for damaged in ("{", "[]", "{}", '{"methods": 3, "protocol": {}}'):
        (run.folder / "results.json").write_text(damaged)
        again = read(script(COUNTS, results=ComparisonRun()).folder)
        assert {**again, "times": 0} == {**before, "times": 0}
        assert "results.json' is damaged; it is written again." in " ".join(capsys.readouterr().err.split())


def test_results_that_cannot_be_written_end_in_one_line(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("headstart.callbacks.run_folder.write_together", fail)
    with pytest.raises(UserError, match=r"^trainer.default_root_dir: .* cannot be written \(no space left\)"):
        script(COUNTS, results=ComparisonRun())


def test_results_of_another_schema_are_kept(script: Script) -> None:
    run = script(COUNTS, results=ComparisonRun())
    (run.folder / "results.json").write_text(json.dumps(sealed({**read(run.folder), "schema": 1}, {})))
    with pytest.raises(
        UserError, match=r"^trainer.default_root_dir: .* holds results of schema 1, not 2; choose another"
    ):
        script(COUNTS, results=ComparisonRun())
    assert read(script(COUNTS, results=ComparisonRun(overwrite=True)).folder)["schema"] == 2


def test_a_threshold_that_one_class_meets_is_warned_of(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    for threshold, is_warned in ((0.5, True), (0.55, False)):
        run = script(COUNTS, results=ComparisonRun(overwrite=True), threshold=threshold)
        printed = " ".join(capsys.readouterr().out.split())
        advice = "predicting the largest class alone meets the threshold (50% accuracy)"
        assert any(advice in warning for warning in read(run.folder)["warnings"]) == is_warned
        assert (f"WARNING: {advice}" in printed) == is_warned


def test_balanced_accuracy_is_measured_of_unequal_classes(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    # 4 of 7 validation samples are of the first class and 3 of the second, and the first so many are right.
    counts = [[[1, 2, 3, 4, 5, 6, 7]] * 2]
    accuracy = script(counts, validation_size=7, consecutive=1, threshold=0.9)
    run = script(
        counts, validation_size=7, consecutive=1, threshold=0.9, measure="balanced_accuracy", folder="balanced"
    )
    expected = [sum((3, 4)[k % 2] for k in range(count)) / 24 for count in counts[0][0]]
    assert run.curves.accuracy == pytest.approx(np.array([[expected] * 2]), abs=1e-15)
    document = read(run.folder)
    assert document["times"]["computed_traces"] == 2
    criterion = {"measure": "balanced_accuracy", "required_correct": 22, "all_correct": 24, "largest_class": 12}
    chosen = {"threshold": 0.9, "consecutive": 1, "evaluation": "every", "until": "criterion"}
    assert document["criterion"] == {**chosen, **criterion}
    assert "90% validation balanced accuracy at 1" in capsys.readouterr().out
    assert accuracy.curves.accuracy.tolist() == [[[count / 7 for count in counts[0][0]]] * 2]


def test_edited_method_is_another_origin(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    run = script(COUNTS, results=ComparisonRun(), config=CONFIG)
    before = files(run.folder)
    monkeypatch.setattr("headstart.modules.provenance.suite_digest", lambda: "edited")
    with pytest.raises(UserError, match=r"of another configuration \(headstart, baseline, method_0\); "):
        script(COUNTS, results=ComparisonRun(), config=CONFIG)
    assert files(run.folder) == before
    script(COUNTS, results=ComparisonRun(overwrite=True), config=CONFIG)
    assert read(run.folder)["times"]["computed_traces"] == 6


def test_near_duplicates_stand_in_the_results_and_in_the_ledger(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, describe = [["train/1.jpg", "validation/2.jpg"]], IndexStream.describe
    monkeypatch.setattr(IndexStream, "describe", lambda self: {**describe(self), "near_duplicate_photos": pairs})
    run = script(COUNTS, results=ComparisonRun())
    assert any("train/1.jpg ~ validation/2.jpg." in warning for warning in read(run.folder)["warnings"])
    with LedgerReader(run.results.traces.ledger.folder) as ledger:
        [stream] = ledger.streams().values()
    assert stream[DESCRIPTION]["near_duplicate_photos"] == pairs


def test_configuration_digest_is_that_of_its_results() -> None:
    digest = configuration_digest(CONFIG)
    assert len(digest) == 8
    assert {configuration_digest(config) for config in SAME} == {digest}
    assert len({digest, *(configuration_digest(config) for config in OTHER)}) == 1 + len(OTHER)
    # Over seeds, it is that of the comparison.
    data = {"init_args": {"seed": 0, "orderings": 2, "first_ordering": 0, "batch_size": 8}}
    of_seeds = [
        {"trainer": {}, "seed_everything": seed, "data": {"init_args": {**data["init_args"], **changed}}}
        for seed, changed in ((0, {}), (1, {}), (0, {"seed": 1}), (0, {"first_ordering": 2}), (0, {"batch_size": 4}))
    ]
    texts = list(map(yaml.safe_dump, of_seeds))
    first, *others, last = (configuration_digest(text, over_seeds=True) for text in texts)
    assert {*others} == {first} != {last}
    assert len(set(map(configuration_digest, texts))) == len(texts)
