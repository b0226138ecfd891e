"""Settings are tested together as each of them alone."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headstart.evaluation.leaderboard import scores as differences
from headstart.tests.material.leaderboards import CLOSE, FAST, SLOW, rank
from headstart.tests.material.ledgers import reach, store


@pytest.mark.parametrize("at_once", [1, 2, differences.AT_ONCE])
def test_settings_together_are_tested_as_alone(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "AT_ONCE", at_once)
    baseline, fast, close = reach(SLOW, 60), reach(FAST, 60), reach(CLOSE, 60)
    # The same numbers of orderings and other ones, a setting without a baseline, and one of a single method.
    settings = [
        {"baseline": baseline, "fast": fast, "close": close},
        {"baseline": baseline[:12], "close": close[:12]},
        {"fast": fast, "close": close},
        {"baseline": baseline[::-1], "close": close},
        {"baseline": baseline[:12]},
    ]
    for size, traces in enumerate(settings, start=1):
        store(tmp_path / "stored", traces, batch_size=size)
    together = rank(tmp_path / "stored")["settings"]
    for size, setting in enumerate(together, start=1):
        [alone] = rank(tmp_path / "stored", where={"batch_size": size})["settings"]
        assert {**setting, "name": None} == {**alone, "name": None}


def test_differences_are_tested_as_in_scipy(three: Path) -> None:
    [setting] = rank(three)["settings"]
    samples = {"baseline": SLOW, "fast": FAST, "close": CLOSE}

    def p_value(one: str, other: str) -> float:
        return float(
            stats.permutation_test(
                (samples[one] - samples[other],),
                np.mean,
                permutation_type="samples",
                n_resamples=99_999,
                rng=np.random.default_rng(0),
            ).pvalue
        )

    for each in setting["methods"]:
        if each["name"] != "baseline":
            assert each["p_value"] == pytest.approx(p_value("baseline", each["name"]))
    for pair in setting["pairs"]:
        assert pair["p_value"] == pytest.approx(p_value(pair["better"], pair["worse"]))
