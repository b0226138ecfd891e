"""Submissions of strangers: valid ones are read, and all problems of invalid ones are reported."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import ModelEntry, Source, Stimulus
from headstart.contract.submissions import Submission, read_submission

Read = Callable[..., Submission]
Refuse = Callable[..., list[Problem]]

MODELS: dict[str, Source] = {
    "resnet50": "torchvision",
    "resnet101": "torchvision",
    "vit_tiny": "timm",
    "caf\u00e9": "timm",
}
STIMULI = [("photos", "a/1.png"), ("photos", "a/2.png")]
COMMON: dict[str, Any] = {
    "weights": None,
    "layer": "fc",
    "embedding": "flatten",
    "input_size": (64, 64),
    "preprocess": {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "resize": 64, "crop": 64},
    "output_dim": 8,
}


@pytest.fixture
def documents() -> tuple[Registry, Catalog]:
    parameters = {"vit_tiny": {"depth": 2, "flag": True, "sizes": [1, 2.5]}}
    entries = {
        name: ModelEntry(model_name=name, source=source, model_parameters=parameters.get(name, {}), **COMMON)
        for name, source in MODELS.items()
    }
    stimuli = tuple(Stimulus(dataset_name=dataset, image_identifier=path) for dataset, path in STIMULI)
    return Registry(Path("registry"), entries, ""), Catalog(Path("catalog"), stimuli, "")


@pytest.fixture
def read(documents: tuple[Registry, Catalog], tmp_path: Path) -> Read:
    """Write a submission, as a value or as bytes, and read it."""

    def run(content: Any, **options: Any) -> Submission:
        path = tmp_path / "entry.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_submission(path, *documents, **options)

    return run


@pytest.fixture
def refuse(read: Read) -> Refuse:
    """Return the problems of a submission, and check that each can be printed anywhere."""

    def run(content: Any, **options: Any) -> list[Problem]:
        with pytest.raises(ContractError, match=r"^submission \S+entry\.json: \d+ problems?: ") as caught:
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


def test_blue_submission(read: Read) -> None:
    content = json.dumps({"models": ["vit_tiny", "resnet50"]}).encode()
    digest = hashlib.sha256(content).hexdigest()
    assert read(content) == Submission("blue", ("vit_tiny", "resnet50"), (), digest, content, "1.0")


def test_red_submission(read: Read, documents: tuple[Registry, Catalog]) -> None:
    submission = read(red(STIMULI[1], STIMULI[0]))
    assert (submission.team, submission.models) == ("red", ())
    assert submission.stimuli == documents[1].stimuli[::-1]


@pytest.mark.parametrize("document", [{"models": ["resnet50", "resnet101"]}, red(*STIMULI)])
def test_version_may_be_named(read: Read, document: dict[str, Any]) -> None:
    for version in ("1.0", "1.1"):
        assert read({"contract_version": version, **document}).contract_version == version
    assert read(document).contract_version == "1.0"


@pytest.mark.parametrize("version", ["2.0", "1", 1.0, None, "", {"a": 1}])
@pytest.mark.parametrize(
    "document",
    [{"models": ["resnet50", "resnet101"]}, red(*STIMULI), {"entries": []}, {"models": [], **red(*STIMULI)}],
    ids=["blue", "red", "other keys", "both keys"],
)
def test_another_version(refuse: Refuse, document: dict[str, Any], version: Any) -> None:
    problem = refuse({**document, "contract_version": version})[0]
    assert problem.pointer == "/contract_version"
    rule = f'contract version {json.dumps(version)} is not accepted; the accepted versions are "1.0" and "1.1"'
    assert problem.rule == rule


@pytest.mark.parametrize(
    "entry",
    [
        {"model_name": "vit_tiny", "source": "timm"},
        {"model_name": "vit_tiny", "model_parameters": {"sizes": [1, 2.5], "flag": True, "depth": 2}},
        {"model_name": "resnet101", "source": "torchvision", "model_parameters": None},
        {"model_name": "resnet101", "source": "torchvision", "model_parameters": {}},
        {"model_name": "resnet101", "layer_name": "fc"},
        {"model_name": "resnet101", "layer_name": None},
    ],
)
def test_longer_form_that_agrees(read: Read, entry: dict[str, Any]) -> None:
    assert read({"models": ["resnet50", entry]}).models == ("resnet50", entry["model_name"])


@pytest.mark.parametrize(
    ("entry", "field", "there"),
    [
        ({"model_name": "resnet101", "source": "ssl"}, "source", '"torchvision"'),
        ({"model_name": "resnet101", "model_parameters": {"depth": 2}}, "model_parameters", "{}"),
        ({"model_name": "vit_tiny", "model_parameters": None}, "model_parameters", '{"depth": 2'),
        ({"model_name": "vit_tiny", "model_parameters": {}}, "model_parameters", '{"depth": 2'),
        ({"model_name": "vit_tiny", "layer_name": "head"}, "layer_name", '"fc"'),
        (
            {"model_name": "vit_tiny", "model_parameters": {"depth": 2, "flag": 1, "sizes": [1, 2.5]}},
            "model_parameters",
            '{"depth": 2, "flag": true',
        ),
    ],
)
def test_longer_form_that_disagrees(refuse: Refuse, entry: dict[str, Any], field: str, there: str) -> None:
    (problem,) = refuse({"models": ["resnet50", entry]})
    assert problem.pointer == f"/models/1/{field}"
    assert json.loads(problem.value) == (entry[field] or {})
    assert problem.rule.startswith(f"disagrees with the registry: {there}")


@pytest.mark.parametrize(
    ("entry", "pointer", "words"),
    [
        ({}, "/models/1/model_name", "is required"),
        ({"model_name": "vit_tiny", "weights": "x"}, "/models/1/weights", "is not a field of the contract"),
        ({"model_name": "vit_tiny", "source": ["timm"]}, "/models/1/source", "must be a valid string"),
        ({"model_name": "vit_tiny", "layer_name": 5}, "/models/1/layer_name", "must be a valid string"),
        ({"model_name": "vit_tiny", "model_parameters": [1]}, "/models/1/model_parameters", "must be an object"),
        (5, "/models/1", "must be a name or an object"),
        (["vit_tiny"], "/models/1", "must be a name or an object"),
        ("", "/models/1", "must not be empty"),
        ("a\x1b[31m", "/models/1", "no control characters"),
    ],
)
def test_wrong_entries_of_the_blue_team(refuse: Refuse, entry: Any, pointer: str, words: str) -> None:
    (problem,) = refuse({"models": ["resnet50", entry]})
    assert problem.pointer == pointer
    assert words in problem.rule


@pytest.mark.parametrize(
    ("name", "closest"),
    [("resnet_50", "resnet50"), ("RESNET101", "resnet101"), ("vit-tiny", "vit_tiny"), ("zzz", None)],
)
@pytest.mark.parametrize("long", [True, False])
def test_unknown_model_with_the_closest(refuse: Refuse, name: str, closest: str | None, long: bool) -> None:
    (problem,) = refuse({"models": ["caf\u00e9", {"model_name": name} if long else name]})
    hint = f' (closest: "{closest}")' if closest else ""
    pointer = "/models/1/model_name" if long else "/models/1"
    assert problem == Problem(pointer, json.dumps(name), f"not in the model registry{hint}")


@pytest.mark.parametrize(
    "spelling", ["caf\u00e9", "cafe\u0301", "CAF\u00c9", "\uff43af\u00e9", {"model_name": "cafe\u0301"}]
)
def test_models_that_come_twice(refuse: Refuse, spelling: Any) -> None:
    problems = refuse({"models": ["caf\u00e9", "resnet50", spelling]})
    pointer = "/models/2/model_name" if isinstance(spelling, dict) else "/models/2"
    twice = [problem for problem in problems if "unique" in problem.rule]
    assert [(problem.pointer, problem.rule) for problem in twice] == [
        (pointer, "the same model as /models/0; models must be unique")
    ]
    assert {problem.pointer for problem in problems} == {pointer}


def test_layers_are_named_since_version_1_1(read: Read, refuse: Refuse) -> None:
    document = {"models": ["resnet50", {"model_name": "vit_tiny", "layer_name": "fc"}]}
    assert read(document).contract_version == "1.1"
    assert read({"contract_version": "1.1", **document}).contract_version == "1.1"
    (problem,) = refuse({"contract_version": "1.0", **document})
    assert problem == Problem("/models/1/layer_name", '"fc"', "is not a field of version 1.0 of the contract")


@pytest.mark.parametrize("key", ["models", "differentiating_images"])
@pytest.mark.parametrize("count", [0, 1])
def test_at_least_two(refuse: Refuse, key: str, count: int) -> None:
    entries = ["resnet50"] if key == "models" else red(STIMULI[0])["differentiating_images"]
    (problem,) = refuse({key: entries[:count]})
    assert (problem.pointer, problem.rule) == (f"/{key}", f"must have at least 2 items, not {count}")


@pytest.mark.parametrize("key", ["models", "differentiating_images"])
@pytest.mark.parametrize("value", [None, "resnet50", 5, {"a": 1}])
def test_entries_must_be_a_list(refuse: Refuse, key: str, value: Any) -> None:
    (problem,) = refuse({key: value})
    assert (problem.pointer, problem.rule) == (f"/{key}", "must be a list")


def test_too_many_entries(refuse: Refuse) -> None:
    (problem,) = refuse({"models": [1] * 100_001})
    assert (problem.pointer, problem.rule) == ("/models", "must have at most 100000 items, not 100001")


@pytest.mark.parametrize("document", [5, None, "blue", [], ["resnet50", "vit_tiny"], {}, {"model": ["resnet50"]}])
def test_team_that_cannot_be_told(refuse: Refuse, document: Any) -> None:
    (problem,) = refuse(document)
    assert problem.pointer == ""
    assert '"models" (Blue Team) or "differentiating_images" (Red Team)' in problem.rule


def test_both_teams_at_once(refuse: Refuse) -> None:
    (problem,) = refuse({"models": ["resnet50", "vit_tiny"], **red(*STIMULI)})
    assert problem.rule.endswith("not both")


def test_team_that_is_asked_for(read: Read, refuse: Refuse) -> None:
    blue = {"models": ["resnet50", "vit_tiny"]}
    assert read(blue, team="blue").team == "blue"
    assert read(red(*STIMULI), team="red").team == "red"
    (problem,) = refuse(blue, team="red")
    assert (problem.pointer, problem.rule) == (
        "/models",
        "this is a Blue Team submission; a Red Team submission is expected",
    )
    assert refuse(red(*STIMULI), team="blue")[0].rule.startswith("this is a Red Team submission")


def test_unknown_fields_of_a_submission(refuse: Refuse) -> None:
    (problem,) = refuse({"models": ["resnet50", "vit_tiny"], "rationale\x1b": "mine"})
    assert problem == Problem("/rationale\\u001b", '"mine"', "is not a field of the contract")


def test_everything_at_once_in_the_order_of_entries(refuse: Refuse) -> None:
    models = [
        "resnet50",
        "resnet5",
        {"model_name": "vit_tiny", "source": "open_clip", "model_parameters": [], "seed": 1},
        7,
        "RESNET50",
        "caf\u00e9",
    ]
    problems = refuse({"contract_version": "3", "models": models, "team": "us"}, team="red")
    assert [problem.pointer for problem in problems] == [
        "/models",
        "/contract_version",
        "/team",
        "/models/1",
        "/models/2/model_parameters",
        "/models/2/seed",
        "/models/2/source",
        "/models/3",
        "/models/4",
        "/models/4",
    ]


def test_size_limit(read: Read, refuse: Refuse) -> None:
    content = json.dumps({"models": ["resnet50", "vit_tiny"]}).encode()
    assert read(content, max_bytes=len(content)).team == "blue"
    (problem,) = refuse(content, max_bytes=len(content) - 1)
    assert problem.rule == f"is larger than the limit of {len(content) - 1} bytes"
    (problem,) = refuse(content + b" " * 1_000_000)
    assert problem.rule == "is larger than the limit of 1,000,000 bytes"


def test_long_combining_sequences_do_not_take_quadratic_time(refuse: Refuse) -> None:
    name = "a" + "\u0301\u0316" * 120_000
    document = json.dumps({"models": [name, name]}, ensure_ascii=False).encode()
    assert [problem.pointer for problem in refuse(document)] == ["/models/0", "/models/1"]
