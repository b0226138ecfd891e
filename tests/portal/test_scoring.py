"""Real scores, public and held out: those of the evaluation, and what is published before and after the deadline."""

import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.contract.documents import read_catalog, read_registry
from headstart.contract.submissions import read_submission
from headstart.evaluation.alignment.scoring import ScoringSetup, score
from headstart.evaluation.embeddings import Extraction
from headstart.output.errors import UserError
from headstart.portal.records.accounts import add_team
from headstart.portal.settings import Settings
from headstart.portal.work import scoring
from headstart.portal.work.queue import Job, claim, finish
from headstart.portal.work.scoring import Scorer, TransientError
from headstart.store.segments import StoreError
from headstart.tests.material.arena import ENTRIES, Arena, make_arena
from headstart.tests.material.blank_figures import blank_figures
from headstart.tests.material.portals import RULES, Site

HERE = Extraction(device="cpu", num_workers=0)
PAGES = ("/", "/blue", "/red", "/submissions", "/submissions/1", "/submissions/2", "/leaderboard", "/log", "/log.atom")
DATA = ("challenge", "submissions", "submissions/1", "submissions/2", "leaderboard?team=blue", "leaderboard?team=red")
OTHERS = (*(f"/api/{path}" for path in DATA), "/api/log", "/metrics", "/health")


class Hosted:
    """A portal on small networks, with held-out ones, and the scores that it should give."""

    def __init__(self, folder: Path) -> None:
        self.arena = make_arena(folder)
        shown, hidden = self.arena.stimuli[:9], self.arena.stimuli[9:]
        lines = ["".join(f"{json.dumps(stimulus)}\n" for stimulus in part) for part in (shown, hidden)]
        self.shown, self.hidden = (
            self.arena.write(name, text) for name, text in zip(("shown.jsonl", "hidden.jsonl"), lines, strict=True)
        )
        secret = [{**entry, "model_name": f"{entry['model_name']}_secret"} for entry in ENTRIES]
        self.secret = self.arena.write("secret.json", secret)
        self.rules = folder / "challenge.yaml"

    def settings(self, **rules: Any) -> Settings:
        self.rules.write_text(yaml.safe_dump({**RULES, **rules}))
        folder = self.arena.folder
        return Settings(
            challenge=str(self.rules),
            registry=str(self.arena.registry),
            catalog=str(self.shown),
            held_out_registry=str(self.secret),
            held_out_catalog=str(self.hidden),
            datasets=str(folder / "datasets"),
            data=str(folder),
            extraction=HERE,
        )

    def score(self, submission: Path, registry: Path, catalog: Path) -> dict[str, Any]:
        """Score as the command does."""
        models, stimuli = read_registry(registry), read_catalog(catalog)
        return score(read_submission(submission, models, stimuli), ScoringSetup(models, stimuli, HERE))[0]


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosted:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path / "datasets"))
    return Hosted(tmp_path)


@pytest.mark.slow
def test_public_and_held_out_scores(hosted: Hosted) -> None:
    arena = hosted.arena
    blue, red = arena.blue("squeezenet1_1", "mobilenet_v2_narrow"), arena.red([0, 3, 4, 7, 8])
    site = Site(hosted.settings(deadline=(datetime.now(UTC) + timedelta(days=1)).isoformat()))
    with site.client, blank_figures():
        site.token = add_team(site.database, "Owls")
        site.submit(blue.read_bytes())
        site.submit(red.read_bytes(), "red")
        scorer, jobs = Scorer(site.settings), 0
        while (job := claim(site.database, "test")) is not None:
            assert finish(site.database, job, scorer(job))
            jobs += 1
        assert jobs == 4
        expected = [hosted.score(path, arena.registry, hosted.shown) for path in (blue, red)]
        submissions = [site.read(f"/api/submissions/{number}") for number in (1, 2)]
        for one, document in zip(submissions, expected, strict=True):
            assert one["score"] == document["score"]
            assert one["result"]["pairwise"] == document["pairwise"]
        assert submissions[0]["debiased_score"] == expected[0]["mean_cka_debiased"]
        assert submissions[1]["debiased_score"] == 1 - expected[1]["mean_cka_debiased"]
        assert submissions[1]["calibrated_score"] == 1 - expected[1]["mean_cka_calibrated"]
        low, high = submissions[1]["ci95"]
        assert [1 - high, 1 - low] == pytest.approx(expected[1]["ci95"]["mean"])
        held_out = [
            hosted.score(blue, arena.registry, hosted.hidden)["score"],
            # A Red submission keeps its stimuli.
            hosted.score(red, hosted.secret, hosted.shown)["score"],
        ]
        site.log_in()
        texts = [site.client.get(path).text for path in PAGES]
        texts += [site.client.get(path, headers=site.headers()).text for path in OTHERS]
        secrets = ["secret", "city-scenes", "held_out_score", *(f"{value:.6f}" for value in held_out)]
        assert [secret for secret in secrets if any(secret in text for text in texts)] == []
    after = Site(hosted.settings(deadline=(datetime.now(UTC) - timedelta(days=1)).isoformat()), site.token)
    with after.client:
        boards = [after.read(f"/api/leaderboard?team={track}") for track in ("blue", "red")]
        assert [board[0]["held_out_score"] for board in boards] == held_out
        page = after.client.get("/leaderboard").text
        assert all(f"{value:.6f}" in page for value in held_out)
        # The models and stimuli stay unnamed.
        texts = [after.client.get(path, headers=after.headers()).text for path in (*PAGES, *OTHERS)]
        assert [secret for secret in ("_secret", "city-scenes") if any(secret in text for text in texts)] == []


def test_the_held_out_score_decides_the_order(open_site: Callable[..., Site]) -> None:
    over = datetime.now(UTC) + timedelta(days=1)
    site = open_site({"deadline": over.isoformat()}, held_out_catalog="hidden.jsonl")
    site.submit(b'{"models": ["owl", "lark"]}')
    site.submit(b'{"models": ["owl", "lark"]}' + b" " * 9, token=add_team(site.database, "Larks"))
    site.work()
    assert [line["participant"] for line in site.read("/api/leaderboard?team=blue")] == ["Owls", "Larks"]
    site.client.app.state.portal.is_over = lambda *_: True  # type: ignore[attr-defined] # an application
    # The stub's held-out score grows with the document's length.
    board = site.read("/api/leaderboard?team=blue")
    assert [(line["rank"], line["participant"]) for line in board] == [(1, "Larks"), (2, "Owls")]


def job(arena: Arena, content: bytes) -> Job:
    return Job(1, 1, 1, "public", "small", "blue", content)


def test_the_epsilon_of_the_rules_gives_a_second_score(hosted: Hosted) -> None:
    content = hosted.arena.blue("squeezenet1_1", "mobilenet_v2_narrow").read_bytes()
    with blank_figures():
        outcome = Scorer(hosted.settings(score={"epsilon": 0.5}))(job(hosted.arena, content))
    document = json.loads(outcome.document or "")
    assert document["epsilon"] == 0.5
    assert document["score_with_epsilon"] < document["score"]


def test_a_submission_that_is_no_longer_valid_is_refused(hosted: Hosted) -> None:
    outcome = Scorer(hosted.settings())(job(hosted.arena, hosted.arena.blue("gone", "squeezenet1_1").read_bytes()))
    assert outcome.state == "refused"
    assert outcome.problems is not None
    assert outcome.problems[0]["pointer"] == "/models/0"


@pytest.mark.parametrize(("number", "passes"), [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_a_full_disk_passes(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool) -> None:
    def fail(*_: object) -> None:
        try:
            raise OSError(number, "from the system")
        except OSError as error:
            try:
                raise StoreError("rows cannot be written") from error
            except StoreError as again:
                raise UserError("extraction.cache_dir: rows cannot be written") from again

    monkeypatch.setattr(scoring, "score", fail)
    content = hosted.arena.blue("squeezenet1_1", "mobilenet_v2_narrow").read_bytes()
    scorer = Scorer(hosted.settings())
    if passes:
        with pytest.raises(TransientError):
            scorer(job(hosted.arena, content))
    else:
        assert scorer(job(hosted.arena, content)).state == "failed"
