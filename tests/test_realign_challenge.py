"""The documents of a challenge that was held, as they were used there, where they lie beside the checkout."""

import json
import os
from pathlib import Path

import pytest
import timm

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import Catalog, read_registry
from headstart.contract.submissions import read_submission
from headstart.modules.networks.libraries import IMAGENET, LIBRARIES
from headstart.scripts.validate_submission import validate

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("HEADSTART_SHARED", ROOT.parent / "shared"))
REGISTRY, SUBMISSION = (
    SHARED / "data" / "realign_challenge" / f"blue_team_{name}.json" for name in ("model_registry", "submission")
)
pytestmark = pytest.mark.skipif(
    not REGISTRY.is_file(), reason="needs the documents of HEADSTART_SHARED, by default ../shared"
)


def test_registry_as_it_was_used() -> None:
    registry = read_registry(REGISTRY)
    written = {entry["model_name"]: entry for entry in json.loads(REGISTRY.read_text())}
    assert len(written) == 141
    assert list(registry.entries) == list(written)
    for name, entry in registry.entries.items():
        crop = written[name]["preprocess"]["crop"]
        assert (entry.input_size, entry.output_dim, entry.weights) == ((crop, crop), None, IMAGENET)
        assert {*timm.list_models(pretrained=True), *timm.list_models()} >= {name}
        assert IMAGENET in LIBRARIES["timm"].identifiers(name)


def test_blue_submission_as_it_was_used() -> None:
    registry, catalog = read_registry(REGISTRY), Catalog(Path("none"), [], "")
    challenge = read_challenge(challenge_path("realign_2026"))
    submission = read_submission(str(SUBMISSION), registry, catalog, "blue", challenge=challenge)
    layers = {entry["model_name"]: entry["layer_name"] for entry in json.loads(SUBMISSION.read_text())["models"]}
    assert (submission.models, submission.contract_version) == (tuple(layers), "1.1")
    assert layers == {name: registry.entries[name].layer for name in layers}


def test_validator_takes_both(capsys: pytest.CaptureFixture[str]) -> None:
    validate(str(SUBMISSION), "blue", str(REGISTRY), challenge="realign_2026")
    assert capsys.readouterr().out == "valid: Blue Team submission of 20 models under contract 1.1\n"
