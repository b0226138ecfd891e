"""Submissions of strangers: valid ones are read, and all problems of invalid ones are reported."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Source, Track
from headstart.contract.submissions import Submission, check_submission
from headstart.tests.material.contract_documents import make_catalog, make_registry

Read = Callable[..., Submission]
Refuse = Callable[..., list[Problem]]

MODELS: dict[str, Source] = {
    "resnet50": "torchvision",
    "resnet101": "torchvision",
    "vit_tiny": "timm",
    "caf\u00e9": "timm",
}
STIMULI = [("photos", "a/1.png"), ("photos", "a/2.png"), ("photos", "\u00e9.png"), ("drawings", "a/1.png")]


@pytest.fixture
def documents() -> tuple[Registry, Catalog]:
    parameters = {"depth": 2, "flag": True, "sizes": [1, 2.5]}
    return make_registry(MODELS, vit_tiny=parameters), make_catalog(STIMULI)


@pytest.fixture
def read(documents: tuple[Registry, Catalog]) -> Read:
    """Check a submission that is a value, or bytes."""

    def run(content: Any, **options: Any) -> Submission:
        written = content if isinstance(content, bytes) else json.dumps(content).encode()
        return check_submission(written, "submission entry.json", *documents, **options)

    return run


@pytest.fixture
def refuse(read: Read) -> Refuse:
    """Return the problems of a submission, and check that each can be printed anywhere."""

    def run(content: Any, **options: Any) -> list[Problem]:
        with pytest.raises(ContractError, match=r"^submission entry\.json: \d+ problems?: ") as caught:
            read(content, **options)
        assert str(caught.value).isascii()
        assert str(caught.value).isprintable()
        assert all(len(problem.value) <= 80 for problem in caught.value.problems)
        return caught.value.problems

    return run


def red(*stimuli: tuple[str, str]) -> dict[str, Any]:
    return {
        "differentiating_images": [{"dataset_name": dataset, "image_identifier": path} for dataset, path in stimuli]
    }


def test_submissions_of_both_teams(read: Read, documents: tuple[Registry, Catalog]) -> None:
    stimuli = tuple(documents[1].stimuli)[::-1]
    for document, models, images in (
        (blue("vit_tiny", "resnet50"), ("vit_tiny", "resnet50"), ()),
        (red(*STIMULI[::-1]), (), stimuli),
    ):
        content = json.dumps(document).encode()
        digest = hashlib.sha256(content).hexdigest()
        team: Track = "blue" if models else "red"
        assert read(content, team=team) == Submission(team, models, images, digest, content, "1.0")


def blue(*models: Any) -> dict[str, Any]:
    return {"models": list(models)}


UNSEEN = "must contain no control characters"
EITHER = 'either "models" (Blue Team) or "differentiating_images" (Red Team)'


def test_versions(read: Read, refuse: Refuse) -> None:
    for document in (blue("resnet50", "resnet101"), red(*STIMULI)):
        for version in ("1.0", "1.1"):
            assert read({"contract_version": version, **document}).contract_version == version
        assert read(document).contract_version == "1.0"
    others: list[Any] = ["2.0", "1", 1.0, None, {"a": 1}]
    for other in others:
        problem = refuse({**red(*STIMULI), "contract_version": other})[0]
        rule = f'contract version {json.dumps(other)} is not accepted; the accepted versions are "1.0" and "1.1"'
        assert (problem.pointer, problem.rule) == ("/contract_version", rule)
    # Layers are named since version 1.1.
    document = blue("resnet50", {"model_name": "vit_tiny", "layer_name": "fc"})
    assert read(document).contract_version == "1.1"
    (problem,) = refuse({"contract_version": "1.0", **document})
    assert problem == Problem("/models/1/layer_name", '"fc"', "is not a field of version 1.0 of the contract")


PARAMETERS = {"sizes": [1, 2.5], "flag": True, "depth": 2}


def test_longer_form_that_agrees(read: Read) -> None:
    entries: list[dict[str, Any]] = [
        {"model_name": "vit_tiny", "source": "timm"},
        {"model_name": "vit_tiny", "model_parameters": PARAMETERS},
        {"model_name": "resnet101", "source": "torchvision", "model_parameters": None},
        {"model_name": "resnet101", "model_parameters": {}, "layer_name": None},
        {"model_name": "resnet101", "layer_name": "fc"},
    ]
    for entry in entries:
        assert read(blue("resnet50", entry)).models == ("resnet50", entry["model_name"])


# The second entry of a Blue Team, where its only problem is, and how the rule begins.
MODELS_THAT_ARE_WRONG: list[tuple[Any, str, str]] = [
    ({"model_name": "resnet101", "source": "ssl"}, "/source", 'disagrees with the registry: "torchvision"'),
    ({"model_name": "resnet101", "model_parameters": {"depth": 2}}, "/model_parameters", "disagrees with the registry"),
    ({"model_name": "vit_tiny", "model_parameters": None}, "/model_parameters", "disagrees with the registry: {"),
    ({"model_name": "vit_tiny", "model_parameters": {**PARAMETERS, "flag": 1}}, "/model_parameters", "disagrees"),
    ({"model_name": "vit_tiny", "layer_name": "head"}, "/layer_name", 'disagrees with the registry: "fc"'),
    ({}, "/model_name", "is required"),
    ({"model_name": "vit_tiny", "weights": "x"}, "/weights", "is not a field of the contract"),
    ({"model_name": "vit_tiny", "layer_name": 5}, "/layer_name", "must be a valid string"),
    (["vit_tiny"], "", "must be a name or an object"),
    ("a\x1b[31m", "", UNSEEN),
    ("RESNET101", "", 'not in the model registry (closest: "resnet101")'),
    ({"model_name": "resnet_50"}, "/model_name", 'not in the model registry (closest: "resnet50")'),
]
# The last of four stimuli of a Red Team.
STIMULI_THAT_ARE_WRONG: list[tuple[Any, str, str]] = [
    (("photos", "a/9.png"), "/image_identifier", 'not in the stimuli catalog under dataset "photos"'),
    (("A", "a/1.png"), "/dataset_name", "not a dataset of the stimuli catalog"),
    (("photos", "../photos/a/1.png"), "/image_identifier", "must be a plain relative path"),
    ("photos/a/1.png", "", "must be an object"),
    ({"image_identifier": "a/1.png"}, "/dataset_name", "is required"),
    ({**red(STIMULI[3])["differentiating_images"][0], "label": 1}, "/label", "is not a field of the contract"),
]
# Whole documents.
DOCUMENTS_THAT_ARE_WRONG: list[tuple[Any, str, str]] = [
    *((value, "", f"must be an object with {EITHER}") for value in (5, None, ["resnet50", "vit_tiny"])),
    *((value, "", f"must have {EITHER}") for value in ({}, {"model": ["resnet50"]})),
    ({**blue("resnet50", "vit_tiny"), **red(*STIMULI)}, "", f"must have {EITHER}, not both"),
    *(({"models": value}, "/models", "must be a list") for value in (None, "resnet50", {"a": 1})),
    ({"differentiating_images": 5}, "/differentiating_images", "must be a list"),
    ({"models": []}, "/models", "must have at least 2 items, not 0"),
    (red(STIMULI[0]), "/differentiating_images", "must have at least 2 items, not 1"),
    ({"models": [1] * 100_001}, "/models", "must have at most 100000 items, not 100001"),
    ({**blue("resnet50", "vit_tiny"), "rationale\x1b": "mine"}, "/rationale\\u001b", "is not a field of the contract"),
]


def test_what_is_wrong_is_pointed_to(refuse: Refuse) -> None:
    stimuli = red(*STIMULI[:3])["differentiating_images"]
    cases = [(blue("caf\u00e9", entry), f"/models/1{end}", words) for entry, end, words in MODELS_THAT_ARE_WRONG]
    for stimulus, end, words in STIMULI_THAT_ARE_WRONG:
        entry = red(stimulus)["differentiating_images"][0] if isinstance(stimulus, tuple) else stimulus
        cases.append(({"differentiating_images": [*stimuli, entry]}, f"/differentiating_images/3{end}", words))
    wrong = []
    for document, pointer, words in [*cases, *DOCUMENTS_THAT_ARE_WRONG]:
        problems = refuse(document)
        if [problem.pointer for problem in problems] != [pointer] or not problems[0].rule.startswith(words):
            wrong.append((pointer, words, problems))
    assert not wrong, wrong


def test_entries_that_come_twice_in_another_spelling(refuse: Refuse) -> None:
    spellings: list[Any] = ["caf\u00e9", "CAF\u00c9", "\uff43af\u00e9", {"model_name": "cafe\u0301"}]
    for spelling in spellings:
        problems = refuse(blue("caf\u00e9", "resnet50", spelling))
        pointer = "/models/2/model_name" if isinstance(spelling, dict) else "/models/2"
        assert {problem.pointer for problem in problems} == {pointer}
        assert "the same model as /models/0; models must be unique" in [problem.rule for problem in problems]
    for dataset, path in (
        *(("photos", path) for path in ("a/1.png", "./a/1.png", "a/./1.png", "a//1.png", "a\\1.png", "b/../a/1.png")),
        ("PHOTOS", "a/1.png"),
    ):
        problems = refuse(red(STIMULI[1], STIMULI[0], (dataset, path)))
        rule = "the same stimulus as /differentiating_images/1; stimuli must be unique"
        assert Problem("/differentiating_images/2", json.dumps(path), rule) in problems
        assert all(problem.pointer.startswith("/differentiating_images/2") for problem in problems)
    assert any("same stimulus" in problem.rule for problem in refuse(red(STIMULI[2], ("photos", "e\u0301.png"))))


def test_everything_at_once_in_the_order_of_entries(refuse: Refuse) -> None:
    wrong = {"model_name": "vit_tiny", "source": "open_clip", "model_parameters": [], "seed": 1}
    models = ["resnet50", "resnet5", wrong, 7, "RESNET50", "caf\u00e9"]
    problems = refuse({"contract_version": "3", "models": models, "team": "us"}, team="red")
    fields = [f"2/{field}" for field in ("model_parameters", "seed", "source")]
    entries = [f"/models/{place}" for place in ("1", *fields, "3", "4", "4")]
    assert [problem.pointer for problem in problems] == ["/models", "/contract_version", "/team", *entries]


def test_long_combining_sequences_do_not_take_quadratic_time(refuse: Refuse) -> None:
    name = "a" + "\u0301\u0316" * 120_000
    document = json.dumps({"models": [name, name]}, ensure_ascii=False).encode()
    assert [problem.pointer for problem in refuse(document)] == ["/models/0", "/models/1"]
