"""The network of a specification is named without building it."""

import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.networks import name_network


def identify(name: str = "some", source: str = "torchvision", **fields: Any) -> dict[str, Any]:
    return name_network(name, source, **fields).identity


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


def test_a_file_of_weights_is_found_in_either_folder(folders: tuple[Path, Path]) -> None:
    registry, elsewhere = folders
    for weights, folder in (("both.pth", registry), ("registry.pth", registry), ("elsewhere.pth", elsewhere)):
        assert name_network("some", weights=weights, folder=registry).weights == folder / weights
    absolute = elsewhere / "both.pth"
    assert name_network("some", weights=str(absolute), folder=registry).weights == absolute
    assert name_network("some", weights="IMAGENET1K_V1", folder=registry).weights == "IMAGENET1K_V1"
    assert name_network("some", folder=registry).weights is None


def test_file_is_identified_by_its_content(folders: tuple[Path, Path]) -> None:
    registry, _ = folders
    identity = identify(weights="both.pth", folder=registry)
    assert identity["weights"] == {"file": sha256(b"registry").hexdigest()}
    assert identity == identify(weights="registry.pth", folder=registry, seed=5)
    before = (registry / "both.pth").read_bytes()
    (registry / "both.pth").write_bytes(before + b"!")
    assert identify(weights="both.pth", folder=registry) != identity


def test_seed_counts_where_a_classifier_is_drawn() -> None:
    for classes, is_drawn in (({}, False), ({"num_classes": 0}, False), ({"num_classes": 5}, True)):
        pretrained = BackboneSpec("timm/resnet18", "DEFAULT", classes)
        assert (pretrained.network(0).identity != pretrained.network(1).identity) == is_drawn


def test_loaded_weights_count_whatever_names_them() -> None:
    named = ("DEFAULT", 0, "a"), ("random", 1, "a"), ("gone.pth", 2, "a"), ("DEFAULT", 0, "b")
    first, second, third, other = (
        replace(BackboneSpec("timm/resnet18", weights, {"num_classes": 5}).network(seed), loaded_sha256=digest).identity
        for weights, seed, digest in named
    )
    assert first == second == third != other


def test_name_counts_where_it_names_the_model_or_draws_the_weights() -> None:
    fields: dict[str, Any] = {"weights": "IMAGENET1K_V1"}
    assert identify("a", **fields) != identify("b", **fields)
    fields["parameters"] = {"name": "resnet18"}
    assert identify("a", **fields) == identify("b", **fields)
    fields["weights"] = None
    assert identify("a", **fields) != identify("b", **fields)


SPEC = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, Preprocessing(32, 32)).network(0)


def test_every_part_counts() -> None:
    changes: list[dict[str, Any]] = [
        *({"library": "timm"}, {"model": "mobilenet_v3_small"}, {"weights": "DEFAULT"}, {"seed": 1}),
        *({"arguments": {"width_mult": 0.5}}, {"arguments": {}}, {"forward_args": {"scale": 2}}),
    ]
    assert [change for change in changes if replace(SPEC, **change).identity == SPEC.identity] == []
    same = replace(SPEC, name="another", preprocessing=None, allowed_modules=["zoo"])
    assert same.identity == SPEC.identity != replace(SPEC, pixels=True).identity


def test_both_doors_lead_to_one_network(tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(b"weights")
    for name, source, parameters, weights in [
        ("mobilenet_v2", "torchvision", {"name": "mobilenet_v2", "width_mult": 0.25}, "IMAGENET1K_V1"),
        ("mobilenet_v2", "torchvision", {"name": "mobilenet_v2", "width_mult": 0.25}, str(tmp_path / "w.pth")),
        ("timm/test_vit", "timm", {"model_name": "test_vit", "width_mult": 0.25}, "DEFAULT"),
    ]:
        network = BackboneSpec(name, weights, {"width_mult": 0.25}).network(3)
        entry = name_network("an entry", source, weights, parameters)
        assert network.identity == entry.identity
    drawn = BackboneSpec("timm/test_vit", "random").network(3)
    entry = name_network("an entry", "timm", None, {"model_name": "test_vit"})
    assert replace(drawn, seed=entry.seed).identity == entry.identity


def test_all_code_of_an_allowed_package_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "some_package"
    (package / "deep").mkdir(parents=True)

    def code() -> Any:
        parameters = {"name": "some_package.networks.make"}
        return identify(source="custom", parameters=parameters, allowed=["some_package"])["code"]

    identities = []
    for name, content in [("__init__.py", ""), ("networks.py", "make = 1"), ("parts.py", "1"), ("parts.py", "2")]:
        (package / name).write_text(content)
        if (package / "networks.py").exists():
            identities.append(code())
    (package / "parts.py").rename(package / "deep" / "parts.py")
    identities.append(code())
    assert len(set(identities)) == len(identities) == 4
    (tmp_path / "outside.py").write_text("1")
    assert code() == identities[-1]


def test_naming_a_network_needs_no_torch() -> None:
    code = (
        "import sys; from headstart.contract.documents import read_registry, registry_path\n"
        "known = read_registry(registry_path(None)); known.networks(list(known.entries), 0)\n"
        "assert not {'torch', 'torchvision', 'timm', 'lightning'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
