"""Significant differences of sources on the photos, and the sentences that report them."""

import numpy as np

from headstart.evaluation.sources.results import Certainty, describe_first, find_certainty
from headstart.evaluation.sources.scores import Score

WIGGLE = (0.01, -0.01, 0.02, -0.02, 0.0)


def score(value: float, scale: float = 1.0, shift: int = 0) -> Score:
    return Score(value, 0.0, left_out=tuple(value + scale * w for w in WIGGLE[shift:] + WIGGLE[:shift]))


def test_sources_without_a_significant_difference_share_a_letter() -> None:
    scores = {"far": {"m": score(0.0)}, "near": {"m": score(1.0)}, "same": {"m": score(1.001, shift=2)}}
    certainty = find_certainty(scores, "m")
    assert certainty is not None
    assert certainty.groups == [["same", "near"], ["far"]]
    assert certainty.letters == {"same": "a", "near": "a", "far": "b"}
    assert (certainty.compare("near", "far"), certainty.compare("far", "near"), certainty.compare("near", "same")) == (
        1,
        -1,
        0,
    )


def test_there_is_nothing_to_tell_where_a_source_has_no_interval() -> None:
    assert find_certainty({"one": {"m": score(1.0)}, "other": {"m": Score(None, 0.0, "why")}}, "m") is None
    assert find_certainty({"one": {"m": score(1.0)}, "other": {"m": Score(1.0, 0.0)}}, "m") is None
    assert find_certainty({"one": {"m": score(1.0)}}, "m") is None


def test_the_answer_says_what_the_photos_tell() -> None:
    def certainty(*order: str, apart: list[tuple[int, int]]) -> Certainty:
        differences = np.zeros((4, 4), dtype=bool)
        for pair in apart:
            differences[pair] = differences[pair[::-1]] = True
        return Certainty(order, differences)

    certainties = [
        certainty("A", "B", "C", "D", apart=[(0, 2), (0, 3)]),
        certainty("C", "A", "B", "D", apart=[(0, 1), (1, 3)]),
    ]
    assert describe_first(["A"], ["B", "C", "D"], certainties, 3) == [
        "First by mean rank: A.",
        "A is significantly better than C under 1 of 3 metrics, and worse under 1.",
        "A is significantly better than D under 2 of 3 metrics.",
        "No metric shows a significant difference between A and B.",
    ]
    assert describe_first(["A"], ["B"], [], 2) == ["First by mean rank: A."]
    assert describe_first(["A", "B"], ["D"], certainties, 2)[0] == "First by mean rank: A, B, alike."


def test_rounding_errors_alone_have_an_interval_of_width_0() -> None:
    assert score(1.0, scale=1e-13).shown == "1 ± 0"
    assert score(1.0).shown.startswith("1.0")
    assert Score(1.0, 0.0).shown == "1"
