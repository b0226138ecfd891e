"""Reading a stranger's file returns a submission or raises a contract error, whatever it holds."""

import json
import random
from typing import Any

import pytest

from headstart.contract.problems import ContractError
from headstart.contract.submissions import check_submission
from headstart.tests.material.contract_documents import make_catalog, make_registry

MODELS = ["resnet50", "vit_tiny", "caf\u00e9"]
STIMULI = [{"dataset_name": "photos", "image_identifier": f"{name}.png"} for name in "abc"]
SCALARS = [None, True, 0, -1.5, "", "timm", "../a", "./a.png", "\x1b", "1.0", "2.0", *MODELS]
GOOD: dict[str, list[Any]] = {
    "models": [*MODELS, *({"model_name": name, "source": "timm"} for name in MODELS)],
    "differentiating_images": STIMULI,
}
KEYS = ["models", "differentiating_images", "contract_version", "model_name", "source", "model_parameters"]
KEYS += ["dataset_name", "image_identifier", "x/~\x1b"]


def is_valid(content: bytes) -> bool:
    """Return whether a submission is valid; any error but the contract's fails the test."""
    catalog = make_catalog((stimulus["dataset_name"], stimulus["image_identifier"]) for stimulus in STIMULI)
    try:
        check_submission(content, "submission", make_registry(MODELS), catalog)
    except ContractError as error:
        if not error.problems or not str(error).isprintable():
            pytest.fail(repr(error))
        return False
    return True


def random_value(source: random.Random, depth: int = 0) -> Any:
    kind = source.random()
    if depth > 4 or kind < 0.3:
        return source.choice(SCALARS)
    if kind < 0.6:
        return [random_value(source, depth + 1) for _ in range(source.randrange(4))]
    return {source.choice(KEYS): random_value(source, depth + 1) for _ in range(source.randrange(4))}


def random_document(source: random.Random) -> Any:
    """Return any value, or one to four entries, most of them valid."""
    if source.random() < 0.5:
        return random_value(source)
    key = source.choice(list(GOOD))
    entries = [random_value(source, 3) if source.random() < 0.2 else source.choice(GOOD[key]) for _ in range(4)]
    return {key: entries[: source.randrange(1, 5)]}


def test_random_values_and_bytes() -> None:
    source = random.Random(0)
    content = json.dumps({"contract_version": "1.0", "differentiating_images": STIMULI}).encode()
    for of_bytes in (False, True):
        outcomes = []
        for _ in range(600):
            damaged = bytearray(content if of_bytes else json.dumps(random_document(source)).encode())
            if of_bytes:
                for _ in range(source.randrange(4)):
                    damaged[source.randrange(len(damaged))] = source.randrange(256)
                damaged = damaged[: source.choice([None, source.randrange(len(damaged))])]
            outcomes.append(is_valid(bytes(damaged)))
        assert set(outcomes) == {True, False}
