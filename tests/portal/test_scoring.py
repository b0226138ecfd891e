"""Real scores: those of the evaluation."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.contract.documents import read_catalog, read_registry
from headstart.contract.submissions import read_submission
from headstart.evaluation.alignment.scoring import ScoringSetup, score
from headstart.evaluation.embeddings import Extraction
from headstart.output.errors import UserError
from headstart.portal import scoring
from headstart.portal.queue import Job
from headstart.portal.scoring import Scorer
from headstart.portal.settings import Settings
from headstart.tests.material.arena import Arena, make_arena
from headstart.tests.material.portals import RULES

HERE = Extraction(device="cpu", num_workers=0)


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path / "datasets"))
    return make_arena(tmp_path)


@pytest.fixture
def scorer(arena: Arena) -> Scorer:
    rules = arena.write("challenge.yaml", yaml.safe_dump(RULES))
    return Scorer(Settings(str(rules), str(arena.registry), str(arena.catalog), extraction=HERE))


def score_by_command(submission: Path, arena: Arena) -> dict[str, Any]:
    models, stimuli = read_registry(arena.registry), read_catalog(arena.catalog)
    return score(read_submission(str(submission), models, stimuli), ScoringSetup(models, stimuli, HERE))


def job(content: bytes, track: Any = "blue") -> Job:
    return Job(1, 1, track, "", content)


@pytest.mark.slow
def test_scores_are_those_of_the_command(arena: Arena, scorer: Scorer) -> None:
    files = {"blue": arena.blue("squeezenet1_1", "mobilenet_v2_narrow"), "red": arena.red([0, 3, 4, 7, 8])}
    for track, file in files.items():
        expected = score_by_command(file, arena)
        outcome = scorer(job(file.read_bytes(), track))
        document = json.loads(outcome.document)
        assert outcome.state == "scored"
        assert (document["scores"], document["pairwise"]) == (expected["scores"], expected["pairwise"])


def test_what_is_no_longer_valid_is_refused_and_errors_name_nothing(
    arena: Arena, scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = scorer(job(arena.blue("gone", "squeezenet1_1").read_bytes()))
    assert outcome.state == "refused"
    assert outcome.problems is not None
    assert outcome.problems[0].pointer == "/models/0"

    def fail(*_: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(scoring, "score", fail)
    errors: list[Exception] = [UserError("stimuli: secret.png"), OSError(28, "No space left"), RuntimeError("secret")]
    content = arena.blue("squeezenet1_1", "mobilenet_v2_narrow").read_bytes()
    outcomes = [scorer(job(content)) for _ in list(errors)]
    assert {outcome.state for outcome in outcomes} == {"failed"}
    reasons = ["a model could not be loaded or run", "has no free space", "a stimulus could not be read"]
    assert [reason in outcome.note for outcome, reason in zip(outcomes, reasons, strict=True)] == [True] * 3
    assert not any("secret" in outcome.note for outcome in outcomes)
    assert "secret" in outcomes[0].error
