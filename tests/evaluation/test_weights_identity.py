"""Which weights an entry means, told without loading them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from contract.schema import ModelEntry
from evaluation.weights_identity import identify_weights, weights_file
from output.errors import UserError
from tests.material.arena import make_entry


def entry(**fields: Any) -> ModelEntry:
    return ModelEntry.model_validate_json(json.dumps(make_entry("some", "fc", "flatten", 3, **fields)))


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A registry's folder, and another one that is the working directory."""
    registry, elsewhere = tmp_path / "registry", tmp_path / "elsewhere"
    for folder in (registry, elsewhere):
        folder.mkdir()
        (folder / "both.pth").write_text(folder.name)
        (folder / f"{folder.name}.pth").write_text(folder.name)
    monkeypatch.chdir(elsewhere)
    return registry, elsewhere


def test_where_a_file_is_looked_for(folders: tuple[Path, Path]) -> None:
    registry, elsewhere = folders
    for weights, folder in (("both.pth", registry), ("registry.pth", registry), ("elsewhere.pth", elsewhere)):
        assert weights_file(weights, registry) == folder / weights
    assert weights_file(str(elsewhere / "both.pth"), registry) == elsewhere / "both.pth"
    assert weights_file("IMAGENET1K_V1", registry) is None
    assert weights_file(None, registry) is None


def test_file_is_told_by_its_content(folders: tuple[Path, Path]) -> None:
    registry, _ = folders
    identity = identify_weights(entry(weights="both.pth"), registry, 0, [])
    assert identity["file"] == sha256(b"registry").hexdigest()
    assert identity == identify_weights(entry(weights="registry.pth"), registry, 5, [])


def test_missing_file_is_named(folders: tuple[Path, Path]) -> None:
    registry, _ = folders
    with pytest.raises(UserError, match=f"'some'.*{registry / 'gone.pth'}"):
        identify_weights(entry(weights="gone.pth"), registry, 0, [])


def test_seed_counts_for_random_weights_alone(tmp_path: Path) -> None:
    drawn, other = (identify_weights(entry(), tmp_path, seed, []) for seed in (0, 1))
    assert drawn != other
    named, same = (identify_weights(entry(weights="IMAGENET1K_V1"), tmp_path, seed, []) for seed in (0, 1))
    assert named == same
    assert named != identify_weights(entry(weights="IMAGENET1K_V2"), tmp_path, 0, [])


def test_all_code_of_an_allowed_package_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "some_package"
    (package / "deep").mkdir(parents=True)
    custom = entry(source="custom", model_parameters={"name": "some_package.networks.make"})
    identities = []
    for name, code in [("__init__.py", ""), ("networks.py", "import parts"), ("parts.py", "1"), ("parts.py", "2")]:
        (package / name).write_text(code)
        if (package / "networks.py").exists():
            identities.append(identify_weights(custom, tmp_path, 0, ["some_package"])["code"])
    (package / "parts.py").rename(package / "deep" / "parts.py")
    identities.append(identify_weights(custom, tmp_path, 0, ["some_package"])["code"])
    assert len(set(identities)) == len(identities) == 4
    (tmp_path / "outside.py").write_text("1")
    assert identify_weights(custom, tmp_path, 0, ["some_package"])["code"] == identities[-1]


def test_code_of_custom_models_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    custom = entry(source="custom", model_parameters={"name": "some_networks.make"})
    identities = []
    for code in ("make = 1", "make = 2"):
        (tmp_path / "some_networks.py").write_text(code)
        identities.append(identify_weights(custom, tmp_path, 0, ["some_networks"]))
    assert identities[0] != identities[1]
