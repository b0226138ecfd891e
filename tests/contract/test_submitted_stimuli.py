"""Stimuli of a Red Team: the rejected ones, and the pointers to their problems."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Stimulus
from headstart.contract.submissions import read_submission
from headstart.tests.contract.test_submissions import red

Refuse = Callable[[Any], list[Problem]]

STIMULI = [("photos", "a/1.png"), ("photos", "a/2.png"), ("photos", "\u00e9.png"), ("drawings", "a/1.png")]
CATALOG = Catalog(Path("catalog"), tuple(Stimulus(dataset_name=d, image_identifier=i) for d, i in STIMULI), "")


@pytest.fixture
def refuse(tmp_path: Path) -> Refuse:
    """Return the problems of a submission."""

    def run(content: Any) -> list[Problem]:
        path = tmp_path / "entry.json"
        path.write_text(json.dumps(content))
        with pytest.raises(ContractError, match="entry") as caught:
            read_submission(path, Registry(Path("registry"), {}, ""), CATALOG)
        assert str(caught.value).isascii()
        return caught.value.problems

    return run


@pytest.mark.parametrize("spelling", ["a/1.png", "./a/1.png", "a/./1.png", "a//1.png", "a\\1.png", "b/../a/1.png"])
def test_stimuli_that_come_twice(refuse: Refuse, spelling: str) -> None:
    problems = refuse(red(STIMULI[1], STIMULI[0], ("photos", spelling)))
    twice = Problem(
        "/differentiating_images/2",
        json.dumps(spelling),
        "the same stimulus as /differentiating_images/1; stimuli must be unique",
    )
    assert twice in problems
    assert all(problem.pointer.startswith("/differentiating_images/2") for problem in problems)


def test_stimuli_that_differ_in_normalisation(refuse: Refuse) -> None:
    problems = refuse(red(STIMULI[2], ("photos", "e\u0301.png"), ("PHOTOS", "\u00e9.png")))
    twice = [problem.pointer for problem in problems if "same stimulus as /differentiating_images/0" in problem.rule]
    assert twice == ["/differentiating_images/1", "/differentiating_images/2"]


@pytest.mark.parametrize(
    ("stimulus", "field", "words"),
    [
        (("photos", "a/9.png"), "image_identifier", 'not in the stimuli catalog under dataset "photos"'),
        (("drawings", "a/2.png"), "image_identifier", 'not in the stimuli catalog under dataset "drawings"'),
        (("A", "a/1.png"), "dataset_name", "not a dataset of the stimuli catalog"),
        (("photos", "../photos/a/1.png"), "image_identifier", "must be a plain relative path"),
        (("photos", ""), "image_identifier", "must not be empty"),
        (("../photos", "a"), "dataset_name", "must be ASCII letters"),
    ],
)
def test_wrong_stimuli(refuse: Refuse, stimulus: tuple[str, str], field: str, words: str) -> None:
    (problem,) = refuse(red(*STIMULI, stimulus))
    assert problem.pointer == f"/differentiating_images/4/{field}"
    assert words in problem.rule


@pytest.mark.parametrize("entry", [5, None, "photos/a/1.png", ["photos", "a/1.png"]])
def test_stimuli_must_be_objects(refuse: Refuse, entry: Any) -> None:
    document = red(*STIMULI)
    document["differentiating_images"][1] = entry
    (problem,) = refuse(document)
    assert (problem.pointer, problem.rule) == ("/differentiating_images/1", "must be an object")


def test_fields_of_stimuli(refuse: Refuse) -> None:
    document = red(*STIMULI)
    del document["differentiating_images"][0]["dataset_name"]
    document["differentiating_images"][1]["label"] = 1
    problems = [(problem.pointer, problem.rule) for problem in refuse(document)]
    assert problems == [
        ("/differentiating_images/0/dataset_name", "is required"),
        ("/differentiating_images/1/label", "is not a field of the contract"),
    ]
