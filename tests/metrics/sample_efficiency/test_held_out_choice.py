"""Hyperparameters are chosen without the data set that the choice is scored on."""

import numpy as np

from headstart.metrics.sample_efficiency.held_out_choice import choose_on_others


def test_the_held_out_data_set_has_no_say() -> None:
    scores = {
        "cats": {"small": 1.0, "middle": 3.0, "large": 9.0},
        "ants": {"small": 9.0, "middle": 3.0, "large": 1.0},
        "pets": {"small": 9.0, "middle": 3.0, "large": 2.0},
    }
    assert choose_on_others(scores) == {"cats": "large", "ants": "middle", "pets": "middle"}
    changed = {**scores, "cats": {"small": 100.0, "middle": 0.0, "large": 100.0}}
    assert choose_on_others(changed)["cats"] == "large"


def test_choice_is_that_of_brute_force() -> None:
    generator = np.random.default_rng(0)
    table = generator.random((5, 4))
    scores = {str(row): dict(zip("abcd", values.tolist(), strict=True)) for row, values in enumerate(table)}
    for held_out, chosen in choose_on_others(scores).items():
        others = np.delete(table, int(held_out), axis=0)
        assert "abcd".index(chosen) == others.mean(0).argmin()


def test_equal_variants_give_the_first() -> None:
    assert choose_on_others({"a": {"one": 1.0, "two": 1.0}, "b": {"one": 2.0, "two": 2.0}}) == {"a": "one", "b": "one"}
