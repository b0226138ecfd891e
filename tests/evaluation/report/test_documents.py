"""Results of other commands on the page."""

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.report.report import report
from headstart.metrics.ranking.ranking_measures import EVALUATION_MEASURES
from headstart.tests.material.pages import Page
from headstart.tests.material.report_runs import EVIL, show

PAIRWISE = {"names": ["one", EVIL[0]], "biased": [[1.0, 0.25], [0.25, 1.0]], "debiased": None}
CKA = {"pairwise": PAIRWISE, "n_stimuli": 9, "digests": {}, "mean_cka_biased": 0.25, "mean_cka_debiased": None}


def test_results_of_other_commands_come_from_all_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "cka.json").write_text(json.dumps(CKA))
        # Files of other programs, and damaged ones.
        (folder / "score.json").write_text("{}")
        (folder / "rbf_cka.json").write_text(json.dumps({**CKA, "measure": "unknown"}))
        (folder / "audit.json").write_text("{")
    page = Page(report([str(folder) for folder in [*folders, folders[0]]], output=str(tmp_path / "page.html")))
    remarks = [text for text in page.texts if text.startswith("2 models on 9 stimuli.")]
    assert [remark.rpartition(" ")[2] for remark in remarks] == [str(folder / "cka.json") for folder in folders]
    assert " ".join(capsys.readouterr().out.split()).count(".json' cannot be shown (") == 6


def test_results_of_other_commands_are_shown_where_they_lie(tmp_path: Path) -> None:
    names: list[str] = PAIRWISE["names"]  # type: ignore[assignment]
    digests = dict[str, Any]()
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
        "saturated": {"pets": {"logme": names}},
        "titles": dict(zip(["logme"], metric_titles(["logme"]), strict=True)),
        "performance_warnings": {},
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
        "best": {key: {"metrics": ["logme"], "tied": [], "not_compared": {}} for key in reached},
        "metrics": ["logme"],
        "sources": names,
        "targets": ["pets"],
    }
    (tmp_path / "all" / "below").mkdir(parents=True)
    documents = {"cka": CKA, "transferability": transferability, "audit": audit, "stability": stability}
    for name, document in documents.items():
        (tmp_path / "all" / "below" / f"{name}.json").write_text(json.dumps(document))
    page = show(tmp_path / "all")
    similarity = [["models", *names], ["one", "1.000", "0.250"], [EVIL[0], "0.250", "1.000"]]
    assert page.tables["linear CKA (biased)"] == similarity
    assert page.tables["pets"][0] == ["source", "mean rank", "LogME (saturated)"]
    assert page.tables["pets"][1:] == [["one", "1.00", "0.50 ± 0.25 (1)"], [EVIL[0], "–", "no"]]
    assert [row[0] for row in page.tables["Rankers"][1:]] == ["mean rank elsewhere", "LogME"]
    assert "0.750 [0.500,\N{NO-BREAK SPACE}1.000]" in page.tables["Rankers"][1]
    assert page.tables["Setup stability"][1:] == [["target", "0.25", "1,234"]]
    assert page.tables["Win rate, %"][1][1:] == ["100.0"]
    # There are no traces, and so no leaderboard.
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["page.html"]
