"""Submissions that keep the contract and break a challenge's own rules."""

import json
from typing import Any

import pytest

from headstart.contract.challenge import CHALLENGE, Challenge
from headstart.contract.problems import ContractError, Problem
from headstart.contract.submissions import Submission, check_submission
from headstart.tests.material.contract_documents import make_catalog, make_registry

MODELS = ["resnet18", "resnet50", "vit_tiny", "vit_small", "deit_base", "mixer"]


def make_challenge(**teams: Any) -> Challenge:
    return CHALLENGE.validate_python({"name": "ours", "title": "Ours", "teams": teams})


def read(document: dict[str, Any], challenge: Challenge) -> Submission:
    catalog = make_catalog((f"set{i // 4}", f"{i}.png") for i in range(12))
    return check_submission(
        json.dumps(document).encode(), "submission", make_registry(MODELS), catalog, None, challenge
    )


def breaches(document: dict[str, Any], challenge: Challenge) -> list[Problem]:
    with pytest.raises(ContractError) as caught:
        read(document, challenge)
    return caught.value.problems


def blue(*models: Any) -> dict[str, Any]:
    return {"models": list(models)}


def red(*indices: int) -> dict[str, Any]:
    stimuli = [{"dataset_name": f"set{i // 4}", "image_identifier": f"{i}.png"} for i in indices]
    return {"differentiating_images": stimuli}


def test_counts() -> None:
    cases: list[tuple[dict[str, int], set[int], str]] = [
        ({"exactly": 3}, {3}, "exactly 3"),
        ({"least": 4}, {4, 5, 6}, "at least 4"),
        ({"most": 3}, {2, 3}, "at most 3"),
        ({"least": 3, "most": 4}, {3, 4}, ""),
        ({}, {2, 3, 4, 5, 6}, ""),
    ]
    for count, allowed, words in cases:
        challenge = make_challenge(blue={"count": count}, red={"count": count})
        for size in range(2, 7):
            entries = {"models": blue(*MODELS[:size]), "stimuli": red(*range(size))}
            for things, document in entries.items():
                if size in allowed:
                    read(document, challenge)
                    continue
                (problem,) = breaches(document, challenge)
                assert problem.pointer == f"/{next(iter(document))}"
                assert words in problem.rule
                assert problem.rule.endswith(f"{things} in this challenge, not {size}")


def test_data_sets() -> None:
    challenge = make_challenge(red={"datasets": ["set0", "set2"]})
    assert len(read(red(0, 1, 11), challenge).stimuli) == 3
    messages = breaches(red(0, 5, 11, 7), challenge)
    rule = "is not a data set of this challenge; choose from set0, set2"
    assert messages == [Problem(f"/differentiating_images/{i}/dataset_name", '"set1"', rule) for i in (1, 3)]


def test_breaches_stand_beside_those_of_the_contract_and_never_loosen_it() -> None:
    challenge = make_challenge(blue={"count": {"exactly": 2}})
    messages = breaches({**blue("resnet18", "resnet18", 5, "resnet", None), "us": 1}, challenge)
    pointers = [problem.pointer for problem in messages]
    assert pointers == ["/us", "/models", *[f"/models/{i}" for i in (1, 2, 3, 4)]]
    cases: list[tuple[dict[str, Any], Challenge, str]] = [
        (blue("resnet18"), make_challenge(blue={}), "must have at least 2"),
        ({"models": 5}, make_challenge(blue={"count": {"exactly": 4}}), "must be a list"),
        (blue(*MODELS), make_challenge(red={}), "the challenge 'ours' has no Blue Team"),
    ]
    for document, rules, words in cases:
        (problem,) = breaches(document, rules)
        assert (problem.pointer, problem.rule[: len(words)]) == ("/models", words)


def test_versions_that_a_challenge_takes() -> None:
    named = blue("mixer", {"model_name": "vit_tiny", "layer_name": "fc"})
    both = make_challenge(blue={})
    plain = both.model_copy(update={"contract_versions": ("1.0",)})
    assert read(named, both).contract_version == "1.1"
    for document, rule in (
        (named, "is not a field of version 1.0 of the contract"),
        ({"contract_version": "1.1", **blue("mixer", "vit_tiny")}, 'contract version "1.1" is not accepted; the'),
    ):
        (problem,) = breaches(document, plain)
        assert problem.rule.startswith(rule)
