"""Real scores, public and held out: those of the evaluation."""

import json
from dataclasses import dataclass
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
from headstart.tests.material.arena import ENTRIES, Arena, make_arena
from headstart.tests.material.portals import RULES

HERE = Extraction(device="cpu", num_workers=0)


@dataclass
class Hosted:
    """A challenge on small networks, with held-out ones."""

    arena: Arena
    shown: Path
    hidden: Path
    secret: Path
    scorer: Scorer


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosted:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path / "datasets"))
    arena = make_arena(tmp_path)
    parts = {"shown.jsonl": arena.stimuli[:9], "hidden.jsonl": arena.stimuli[9:]}
    shown, hidden = (arena.write(name, "\n".join(map(json.dumps, stimuli))) for name, stimuli in parts.items())
    secret = arena.write("secret.json", [{**its, "model_name": f"{its['model_name']}_secret"} for its in ENTRIES])
    rules = arena.write("challenge.yaml", yaml.safe_dump(RULES))
    documents = {"registry": arena.registry, "catalog": shown, "held_out_registry": secret, "held_out_catalog": hidden}
    named: dict[str, Any] = {name: str(path) for name, path in documents.items()}
    return Hosted(arena, shown, hidden, secret, Scorer(Settings(challenge=str(rules), extraction=HERE, **named)))


def score_by_command(submission: Path, registry: Path, catalog: Path) -> dict[str, Any]:
    models, stimuli = read_registry(registry), read_catalog(catalog)
    return score(read_submission(str(submission), models, stimuli), ScoringSetup(models, stimuli, HERE))


def job(content: bytes, track: Any = "blue", kind: Any = "public") -> Job:
    return Job(1, 1, 1, kind, track, "", content)


@pytest.mark.slow
def test_public_and_held_out_scores(hosted: Hosted) -> None:
    arena, scorer = hosted.arena, hosted.scorer
    files = {"blue": arena.blue("squeezenet1_1", "mobilenet_v2_narrow"), "red": arena.red([0, 3, 4, 7, 8])}
    for track, file in files.items():
        expected = score_by_command(file, arena.registry, hosted.shown)
        outcome = scorer(job(file.read_bytes(), track))
        document = json.loads(outcome.document)
        assert outcome.state == "scored"
        assert (document["scores"], document["pairwise"]) == (expected["scores"], expected["pairwise"])

        # A Red submission keeps its stimuli, and a Blue one its models.
        held_out = (arena.registry, hosted.hidden) if track == "blue" else (hosted.secret, hosted.shown)
        hidden = scorer(job(file.read_bytes(), track, "held_out"))
        assert json.loads(hidden.document)["score"] == score_by_command(file, *held_out)["score"] != expected["score"]


def test_what_is_no_longer_valid_is_refused_and_errors_name_nothing(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer, arena = hosted.scorer, hosted.arena
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
