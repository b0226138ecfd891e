"""The page: its numbers are those of the leaderboard, its names are texts, and it needs nothing but itself."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from PIL import Image

from headstart.evaluate import main
from headstart.evaluation.report.report import report
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger, Trace, TraceKey
from headstart.tests.material.pages import Page
from headstart.tests.material.runs import TRACES, write_run

EVIL = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp; '{{ 7*7 }}' 🦊 猫", "a,b\\n$x$%")
METHODS = ("baseline", "mine", "third", "fourth")


def traces(seed: int, methods: int = len(METHODS), orderings: int = 25) -> np.ndarray[Any, Any]:
    """Give counts of 100 that rise by and by, `[methods, orderings, 60]`."""
    generator = np.random.default_rng(seed)
    rise = generator.uniform(3, 8, (methods, orderings, 1)) * (1 + np.arange(methods))[:, None, None]
    return generator.binomial(100, 0.97 - 0.45 * np.exp(-np.arange(60) / rise))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs on two data sets into a folder of their own."""
    (tmp_path / "runs").mkdir()
    for seed, name in enumerate(("pets", "flowers")):
        write_run(tmp_path / "runs" / name, traces(seed), limit=60, methods=METHODS, dataset=name)
    return tmp_path / "runs"


def show(folder: Path, **options: Any) -> Page:
    return Page(report(str(folder), output=str(folder.parent / "page.html"), **options))


def numbers(cell: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", cell)]


def is_shown(value: float | None, shown: float | None) -> bool:
    return value is None if shown is None else value is not None and shown == pytest.approx(value, rel=0.06, abs=0.051)


def test_every_number_of_the_tables_is_that_of_the_leaderboard(runs: Path) -> None:
    page = show(runs)
    document = json.loads((runs.parent / "leaderboard.json").read_text())
    assert len(document["settings"]) == 2
    for setting in document["settings"]:
        header, *rows = page.tables[f"Leaderboard: {setting['name']}"]
        assert [row[0] for row in rows] == [method["name"] for method in setting["methods"]]
        for row, method in zip(rows, setting["methods"], strict=True):
            cells = dict(zip(header, row, strict=True))
            assert cells["reached"] == f"{method['reached']}/{method['orderings']}"
            assert numbers(cells["rank"].replace("–", " ")) == method["rank_interval"]
            assert cells["group"] == "".join(
                letter for letter, group in zip("abcd", setting["not_told_apart"], strict=False) if row[0] in group
            )
            for title, key in (
                ("median", "median"),
                ("restricted mean", "restricted_mean"),
                ("improvement, %", "relative_improvement"),
            ):
                expected = [method[key], *(method[f"{key}_interval"] or [])]
                assert numbers(cells[title]) == pytest.approx([x for x in expected if x is not None], abs=0.051)
            for title, key in (("p", "p_value_holm"), ("onset", "onset")):
                assert numbers(cells[title]) == pytest.approx(
                    [method[key]] if method[key] is not None else [], rel=0.06
                )
            for at, accuracy in method["accuracy_at"].items():
                # Behind the limit nothing is known of any method.
                assert (accuracy is None) == (f"accuracy at {at}" not in cells)
                shown = numbers(cells.get(f"accuracy at {at}", ""))
                assert shown == pytest.approx([] if accuracy is None else [100 * accuracy], abs=0.051)


def test_pairs_and_means_over_settings_are_those_of_the_leaderboard(runs: Path) -> None:
    page = show(runs)
    document = json.loads((runs.parent / "leaderboard.json").read_text())
    # Captions of the settings' tables of pairs are alike; the last one stays.
    for row, pair in zip(
        page.tables["Resolution: neighbours in the order above"][1:], document["settings"][1]["pairs"], strict=True
    ):
        assert row[:2] == [pair["better"], pair["worse"]]
        assert numbers(row[2]) == pytest.approx([pair["difference"], *pair["interval"]], abs=0.051)
        assert (row[4] == "yes") == pair["told_apart"]
        assert numbers(row[5]) == [pair["orderings_needed"]] if pair["orderings_needed"] else row[5] == "–"
    for row, method in zip(page.tables["Over all settings"][1:], document["over_settings"]["methods"], strict=True):
        assert row[0] == method["name"]
        assert numbers(row[1]) == pytest.approx(
            [method["interquartile_mean"], *method["interquartile_mean_interval"]], abs=0.00051
        )
    for setting in document["sensitivity"]["settings"]:
        _, *rows = page.tables[setting["name"]]
        cells = [cell for row in rows for cell in row[1:]]
        for cell, found in zip(cells, setting["grid"], strict=True):
            mark = " *" if found["undecided"] else ""
            assert cell == ("–" if found["tau"] is None else f"{found['order'][0]} {found['tau']:.2f}{mark}")


def test_nothing_is_loaded_from_elsewhere(runs: Path) -> None:
    page = show(runs)
    assert {address[:1] for address in page.addresses if address != "data:,"} == {"#"}
    assert not {"img", "iframe", "object", "embed", "audio", "video", "base"} & set(page.tags)
    assert not re.search(r"url\(|@import", "".join(page.styles))
    source = (runs.parent / "page.html").read_text()
    assert "default-src 'none'" in source
    # The charts' library is there once.
    assert source.count("window.vegaEmbed=") == 1


def test_the_best_is_named_with_what_is_not_told_apart_from_it(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    far, equal, never = traces(0), np.repeat(traces(1)[:1], 4, axis=0), np.zeros((4, 25, 60), dtype=np.int64)
    for name, counts in {
        "far": far,
        "two": np.concatenate([equal[:2], far[2:]]),
        "equal": equal,
        "never": never,
    }.items():
        write_run(tmp_path / "runs" / name, counts, limit=60, methods=METHODS, dataset=name)
    rows = {
        row[0].split(" ")[1].rstrip(","): row[1:3]
        for row in show(tmp_path / "runs").tables["Best method of each setting"][1:]
    }
    assert rows["far"] == ["baseline", "–"]
    assert rows["two"] == ["baseline", "mine"]
    assert rows["equal"] == ["baseline", "3 methods"]
    assert rows["never"] == ["none met the criterion", "3 methods"]


def test_names_are_texts(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for seed, name in enumerate(EVIL):
        options: dict[str, Any] = {"limit": 60, "methods": ("baseline", *EVIL[:3]), "dataset": name}
        write_run(tmp_path / "runs" / str(seed), traces(seed), **options)
    page = show(tmp_path / "runs")
    assert set(page.content["methods"]) == {"baseline", *EVIL[:3]}
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    tables = [table for caption, table in page.tables.items() if caption.startswith("Leaderboard: ")]
    assert len(tables) == 4
    assert all({row[0] for row in table[1:]} == {"baseline", *EVIL[:3]} for table in tables)
    assert [row[0] for row in page.tables["Best method of each setting"][1:]] == [
        f"{number}. {name}, resnet50 (DEFAULT)" for number, name in enumerate(EVIL, 1)
    ]


def test_the_same_runs_give_the_same_bytes(runs: Path) -> None:
    first = report(str(runs), output=str(runs.parent / "page.html")).read_bytes()
    assert report(str(runs), output=str(runs.parent / "again" / "page.html")).read_bytes() == first
    assert (runs.parent / "again" / "leaderboard.json").is_file()


def test_the_leaderboard_is_that_of_its_own_command(runs: Path) -> None:
    main(["report", str(runs), "--output", str(runs.parent / "page.html"), "--threshold=0.9"])
    main(["leaderboard", str(runs), "--output", str(runs.parent / "own"), "--threshold=0.9"])
    for kind in ("json", "csv", "md", "tex"):
        name = f"leaderboard.{kind}"
        assert (runs.parent / name).read_bytes() == (runs.parent / "own" / name).read_bytes()


def test_the_page_gives_its_own_command(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"threshold": 0.85, "consecutive": 3, "where": {"dataset": "pets"}, "methods": ["mine", "third"]}
    page = show(runs, **options, tuned={"mine": "pets"})
    [command] = [text for text in page.texts if text.startswith("headstart report")]
    before = {path.name: path.read_bytes() for path in runs.parent.iterdir() if path.is_file()}
    monkeypatch.chdir(runs.parent)
    main([*shlex.split(command)[1:], "--output=again/page.html"])
    assert {path.name: path.read_bytes() for path in (runs.parent / "again").iterdir()} == before


def test_several_folders_are_one_page_that_gives_its_own_command(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes [1].txt").touch()
    main(["report", "runs/pets", "notes [1].txt", "runs/flowers"])
    page = Page(tmp_path / "runs" / "report.html")
    document = json.loads((tmp_path / "runs" / "leaderboard.json").read_text())
    assert document["folders"] == ["runs/pets", "notes [1].txt", "runs/flowers"]
    assert [setting["dataset"] for setting in document["settings"]] == ["pets", "flowers"]
    [command] = [text for text in page.texts if text.startswith("headstart report")]
    assert command == "headstart report runs/pets 'notes [1].txt' runs/flowers --baseline=baseline"
    main([*shlex.split(command)[1:], "--output", "again/page.html"])
    for name, other in {"report.html": "page.html", "leaderboard.json": "leaderboard.json"}.items():
        assert (tmp_path / "again" / other).read_bytes() == (tmp_path / "runs" / name).read_bytes()
    main(["leaderboard", "runs/pets", "notes [1].txt", "runs/flowers", "--output=own"])
    assert (tmp_path / "own" / "leaderboard.json").read_bytes() == (tmp_path / "runs" / "leaderboard.json").read_bytes()


def test_results_of_other_commands_come_from_all_folders(tmp_path: Path) -> None:
    pairwise = {"names": ["a", "b"], "biased": [[1.0, 0.5], [0.5, 1.0]], "debiased": None}
    document = {"pairwise": pairwise, "n_stimuli": 9, "digests": {}, "mean_cka_biased": 0.5, "mean_cka_debiased": None}
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "cka.json").write_text(json.dumps(document))
        (folder / "score.json").write_text("{}")
    page = Page(report([str(folder) for folder in [*folders, folders[0]]], output=str(tmp_path / "page.html")))
    remarks = [text for text in page.texts if text.startswith("Mean over pairs")]
    assert [remark.rpartition(" ")[2] for remark in remarks] == [str(folder / "cka.json") for folder in folders]


def test_mistakes_in_what_is_given_come_before_another_leaderboard_beside_the_page(runs: Path) -> None:
    show(runs)
    nothing = str(runs.parent / "nothing")
    mistakes: list[tuple[list[str], dict[str, Any], str]] = [
        ([str(runs), nothing], {}, "^folder: there is no folder '.*nothing'"),
        ([nothing], {}, "^folder: there is no folder '.*nothing'"),
        ([str(runs)], {"where": {"dataset": "birds"}}, "^where: no setting has these values"),
        ([str(runs)], {"choose": {"mine": "t*"}}, "^choose: "),
    ]
    for given, options, message in mistakes:
        with pytest.raises(UserError, match=message):
            report(given, output=str(runs.parent / "page.html"), **options)


def test_the_measure_and_what_differs_are_told(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for size in (1, 2):
        options: dict[str, Any] = {"limit": 60 * size, "step": size, "methods": METHODS, "measure": "balanced_accuracy"}
        write_run(tmp_path / "runs" / str(size), traces(0), **options)
    page = show(tmp_path / "runs")
    assert page.texts.count("Learning curves: validation balanced accuracy") == 2
    assert any("validation balanced accuracy has stood at 80% or more for 3 " in text for text in page.texts)
    [differing] = [text for text in page.texts if text.startswith("The settings differ in ")]
    assert "batch_size (1, 2)" in differing
    assert "max_samples (60, 120)" in differing


def test_other_weights_and_names_with_commas_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for number, (dataset, weights) in enumerate([("drawn_pets, noise 2", "one.pth"), ("pets", "two.pth")]):
        write_run(
            tmp_path / "runs" / str(number), traces(0), limit=60, methods=METHODS, dataset=dataset, weights=weights
        )
    [differing] = [text for text in show(tmp_path / "runs").texts if text.startswith("The settings differ in ")]
    assert differing == "The settings differ in dataset ('drawn_pets, noise 2', pets); weights (one.pth, two.pth)."
    (tmp_path / "same").mkdir()
    for number in range(2):
        options: dict[str, Any] = {"limit": 60, "methods": METHODS, "weights_sha256": f"{number}" * 64}
        write_run(tmp_path / "same" / str(number), traces(0), **options)
    [differing] = [text for text in show(tmp_path / "same", overwrite=True).texts if "settings differ" in text]
    assert "weights_sha256 (00000000, 11111111)" in differing


def test_another_leaderboard_beside_the_page_is_kept(runs: Path) -> None:
    show(runs)
    with pytest.raises(
        UserError, match=r"^output: .*leaderboard.json' holds results of another configuration.*one folder holds one"
    ):
        show(runs, threshold=0.9)
    show(runs, threshold=0.9, overwrite=True)
    assert json.loads((runs.parent / "leaderboard.json").read_text())["criterion"]["threshold"] == 0.9


def test_learning_curves_are_of_the_orderings_that_all_methods_have(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    counts = traces(0)
    write_run(tmp_path / "runs" / "one", counts[:2, :20], limit=60, methods=METHODS[:2])
    write_run(tmp_path / "runs" / "two", counts[[0, 2], 5:], first=5, limit=60, methods=("baseline", "third"))
    page = show(tmp_path / "runs")
    lines = page.content["figures"]["setting-1-learning_curves"]["data"].splitlines()[1:]
    baseline = page.content["methods"].index("baseline")
    shown = [float(line.split(",")[2]) for line in lines if line.startswith(f"{baseline},")]
    assert shown[0] == pytest.approx(counts[0, 5:20, 0].mean(), abs=0.006)


def test_a_ledger_alone_is_shown_and_its_commands_are_not_invented(tmp_path: Path) -> None:
    fed = {"batch_size": 1, "evaluate_every": 1, "validation_size": 100, "weights_sha256": "0" * 64}
    with Ledger(tmp_path / "stored") as ledger:
        stream = ledger.record(fed, told={"dataset": "pets", "backbone": "resnet18", "weights": "DEFAULT"})
        for name, counts in zip(METHODS, traces(0), strict=True):
            method = ledger.record(
                {"class": "headstart.modules.Mine", "hyperparameters": {"name": name}}, told={"name": name}
            )
            ledger.write({TraceKey(stream, method, k): Trace(trace) for k, trace in enumerate(counts)})
    page = show(tmp_path / "stored")
    assert len(page.tables["Leaderboard: pets, resnet18 (DEFAULT)"]) == 1 + len(METHODS)
    assert not any("headstart train" in text for text in page.texts)


def test_methods_that_were_tuned_on_a_setting_are_marked_there(runs: Path) -> None:
    page = show(runs, tuned={"mine": "pets"})
    marked = [name for name, table in page.tables.items() if "mine *" in [row[0] for row in table]]
    assert marked == ["Leaderboard: pets, resnet50 (DEFAULT)"]
    assert [text for text in page.texts if text.startswith("*")] == [
        "* Hyperparameters of mine: on these validation photos."
    ]


def commands(page: Page, name: str) -> list[str]:
    """Give the arguments of headstart train in the command of a method's row."""
    text = next(text for text in page.texts if f"\n# {name}\n" in f"\n{text}")
    lines = text.splitlines()
    python, entry, *options = shlex.split(lines[lines.index(f"# {name}") + 1])
    assert (python, entry) == ("headstart", "train")
    return options


@pytest.mark.slow
def test_the_commands_of_rows_replicate_them(fit: Callable[..., Path]) -> None:
    from headstart.train import main as train

    folder = fit(
        "--model.methods={mean: headstart.modules.NearestClassMean, 'it''s {1}': headstart.modules.StreamingLDA}"
    )
    page = Page(report(str(folder), output=str(folder.parent / "page.html")))
    before = json.loads((folder / "results.json").read_text())
    # The first measures both of its methods in both orderings, whatever ledger lies beside; the second its own.
    for name, reused in (("it's {1}", 0), ("mean", 2)):
        options = commands(page, name)
        train(options)
        [place] = [option.partition("=")[2] for option in options if option.startswith("--trainer.default_root_dir=")]
        again = json.loads((folder.parent / place / "results.json").read_text())
        assert set(again["methods"]) == {"baseline", name}
        assert again["times"]["reused_traces"] == reused
        for each, scores in again["methods"].items():
            assert scores["samples_to_criterion"] == before["methods"][each]["samples_to_criterion"]


def test_configurations_stand_on_the_page(runs: Path) -> None:
    page = show(runs)
    config = (runs / "pets" / "config.yaml").read_text()
    assert config in page.texts
    assert yaml.safe_load(config)["model"]["methods"].keys() == set(METHODS[1:])
    options = dict(option.lstrip("-").split("=", 1) for option in commands(page, "mine")[2:])
    assert yaml.safe_load(options["model.methods"]) == {"mine": {"class_path": "headstart.modules.NearestClassMean"}}


def test_results_of_other_commands_are_shown_where_they_lie(tmp_path: Path) -> None:
    names = ["one", EVIL[0]]
    pairwise = {"names": names, "biased": [[1.0, 0.25], [0.25, 1.0]], "debiased": None}
    digests: dict[str, Any] = {"weights": {}}
    means = {"mean_cka_biased": 0.25, "mean_cka_debiased": None, "mean_cka_calibrated": 0.125}
    cka = {"pairwise": pairwise, "n_stimuli": 9, "digests": digests, **means}
    score = {"score": 0.5, "rank": 1.0, "seconds": 1.0, "reason": None}
    transferability = {
        "metrics": ["logme"],
        "scores": {
            "pets": {
                "one": {"logme": {**score, "interval": [0.25, 0.75]}},
                EVIL[0]: {"logme": {**score, "score": None, "reason": "no"}},
            }
        },
        "mean_ranks": {"pets": {"one": 1.0, EVIL[0]: None}},
        "digests": digests,
    }
    stability = {
        "metrics": ["logme"],
        "experiments": 10,
        "setup_stability": {"target": 0.25},
        "setup_stability_pairs": {"target": 1234},
        "win_rate_percent": {"logme": {"kendall": 100.0}},
    }
    reached = {measure: {"mean": 0.5, "ci95": [0.25, None], "per_target": {}} for measure in EVALUATION_MEASURES}
    reached["weighted_kendall"] = {"mean": 0.75, "ci95": [0.5, 1.0], "per_target": {}}
    audit = {
        "rankers": {"mean_rank": reached, "logme": reached},
        "metrics": ["logme"],
        "sources": names,
        "targets": ["pets"],
    }
    (tmp_path / "all" / "below").mkdir(parents=True)
    for name, document in {
        "cka": cka,
        "transferability": transferability,
        "audit": audit,
        "stability": stability,
    }.items():
        (tmp_path / "all" / "below" / f"{name}.json").write_text(json.dumps(document))
    page = show(tmp_path / "all")
    assert sorted(page.tables["linear CKA (biased)"][0][1:]) == sorted(names)
    assert {cell for row in page.tables["linear CKA (biased)"][1:] for cell in row[1:]} == {"1.000", "0.250"}
    assert "biased 0.2500, debiased –, calibrated 0.1250;" in "".join(page.texts)
    assert page.tables["pets"][1:] == [["one", "1.00", "0.5 ± 0.25 (1)"], [EVIL[0], "–", "no"]]
    assert [row[0] for row in page.tables["Rankers"][1:]] == ["mean rank elsewhere", "LogME"]
    assert "0.750 [0.500, 1.000]" in page.tables["Rankers"][1]
    assert page.tables["Setup stability"][1:] == [["target", "0.25", "1,234"]]
    assert page.tables["Win rate, %"][1][1:] == ["100.0"]
    # There are no traces, and so no leaderboard.
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]


@pytest.mark.parametrize(
    "change", [{"pairwise": None}, {"measure": "unknown"}, {"pairwise": {"names": ["a", "b"], "biased": [[1]]}}]
)
def test_damaged_results_of_other_commands_are_named(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "all").mkdir()
    pairwise = {"names": ["a", "b"], "biased": [[1.0, 0.5], [0.5, 1.0]], "debiased": None}
    whole = {"pairwise": pairwise, "n_stimuli": 9, "digests": {}, "mean_cka_biased": 0.5, "mean_cka_debiased": None}
    (tmp_path / "all" / "cka.json").write_text(json.dumps({**whole, **change}))
    with pytest.raises(UserError, match=r"^folder: .*cka.json' cannot be read \(.*; move it elsewhere"):
        show(tmp_path / "all")
    assert not (tmp_path / "page.html").exists()


def test_files_of_other_programs_are_passed_over(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, document in {"score.json": {"score": 3}, "stability.json": [1, 2]}.items():
        (runs / name).write_text(json.dumps(document))
    assert "Best method of each setting" in show(runs).tables
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("is of another kind") == 2


@pytest.mark.slow
def test_figures_are_files_of_their_own(runs: Path) -> None:
    show(runs, figures=str(runs.parent / "figures"), figure_formats=["png", "svg"])
    names = {path.name for path in (runs.parent / "figures").iterdir()}
    kinds = ("learning_curves", "reached", "improvement")
    expected = {f"setting-{number}-{kind}" for number in (1, 2) for kind in kinds} | {
        "over_settings",
        "setup_stability",
    }
    assert names == {f"{name}.{form}" for name in expected for form in ("png", "svg")}
    drawing = ElementTree.parse(runs.parent / "figures" / "setting-1-improvement.svg")
    texts = {element.text for element in drawing.iter() if element.tag.endswith("text")}
    assert {"mine", "third", "fourth"} <= texts
    with Image.open(runs.parent / "figures" / "setting-1-learning_curves.png") as picture:
        assert picture.width > 1000


def test_several_folders_that_hold_nothing_are_all_named(tmp_path: Path) -> None:
    given = [str(tmp_path / name) for name in "ab"]
    for folder in given:
        Path(folder).mkdir()
    with pytest.raises(UserError, match=r"^folder: '.*a', '.*b' hold no run of headstart train"):
        report(given, output=str(tmp_path / "out" / "page.html"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _: None, r"^folder: there is no folder"),
        (Path.mkdir, r"^folder: .*holds no run of headstart train"),
        (
            lambda folder: (folder.mkdir(), (folder / "cka.json").write_text("{")),
            r"^folder: .*cka.json' cannot be read",
        ),
        (
            lambda folder: (folder.mkdir(), (folder / "cka.json").write_text("{}")),
            r"^folder: .*holds no run of headstart train",
        ),
        (
            lambda folder: (folder.mkdir(), (folder / "cka.json").write_text('{"n_stimuli": 9}')),
            r"^folder: .*cka.json.*no pairwise",
        ),
        (
            lambda folder: (write_run(folder), (folder / "results.json").unlink()),
            r"^folder.runs: .*has no results.json",
        ),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    tmp_path: Path, prepare: Callable[[Path], Any], message: str
) -> None:
    prepare(tmp_path / "given")
    with pytest.raises(UserError, match=message):
        report(str(tmp_path / "given"), output=str(tmp_path / "out" / "page.html"))
    assert not (tmp_path / "out").exists()


def test_what_is_no_page_is_not_replaced(runs: Path) -> None:
    path = runs.parent / "page.html"
    path.write_text("mine")
    with pytest.raises(UserError, match=r"^output: .*page.html' holds something else"):
        show(runs)
    assert path.read_text() == "mine"


def test_a_missing_package_names_the_extra(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [
        name
        for name in sys.modules
        if name.startswith(("altair", "headstart.output.page", "headstart.evaluation.report."))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UserError, match=r"altair.*pip install 'headstart\[report\]'"):
        show(runs)


def test_a_single_run_of_one_ordering_has_a_page(tmp_path: Path) -> None:
    page = show(write_run(tmp_path / "run", TRACES[:, :1], limit=8))
    assert page.tables["Best method of each setting"][1][1] == "mine"
