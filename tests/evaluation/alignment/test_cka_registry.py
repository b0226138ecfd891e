"""Registries that are made from the libraries' own configurations, and checked."""

from functools import partial
from pathlib import Path

import pytest
import timm
import torchvision
from torchvision.transforms import CenterCrop, Normalize, Resize

from headstart import evaluate
from headstart.contract.documents import read_registry
from headstart.contract.schema import ModelEntry
from headstart.evaluation.alignment.registry_entries import make_entry
from headstart.tests.material.arena import ENTRIES, Arena
from headstart.tests.material.arena import make_entry as small_entry
from headstart.tests.material.mistakes import error_line


def run(*options: str) -> None:
    evaluate.main(["cka-registry", *options])


@pytest.mark.parametrize("name", ["test_vit.r160_in1k", "resnet10t.c3_in1k", "vit_small_patch16_dinov3.lvd1689m"])
def test_entry_of_timm_is_what_timms_own_transform_does(name: str) -> None:
    entry = make_entry(name)
    network = timm.create_model(name)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network))
    steps = {type(step): step for step in transform.transforms}
    assert entry.preprocess.resize == steps[Resize].size
    assert (entry.preprocess.crop, entry.preprocess.crop) == tuple(steps[CenterCrop].size) == entry.input_size
    assert entry.preprocess.interpolation == steps[Resize].interpolation.value
    assert entry.preprocess.mean == pytest.approx(steps[Normalize].mean.tolist(), abs=1e-7)
    assert entry.preprocess.std == pytest.approx(steps[Normalize].std.tolist(), abs=1e-7)
    assert (entry.output_dim, entry.weights) == (network.num_features, name.partition(".")[2])


def test_entry_of_torchvision_is_that_of_its_page() -> None:
    entry, other = make_entry("torchvision:resnet50"), make_entry("torchvision:resnet50.IMAGENET1K_V1")
    assert (entry.preprocess.resize, entry.preprocess.crop, entry.preprocess.interpolation) == (232, 224, "bilinear")
    assert (entry.model_name, entry.weights) == ("resnet50", "IMAGENET1K_V2")
    assert (entry.layer, entry.output_dim) == ("penultimate", 2048)
    assert (other.model_name, other.weights) == ("resnet50.IMAGENET1K_V1", "IMAGENET1K_V1")
    assert other.preprocess.resize == 256
    assert other.model_parameters == {"name": "resnet50"}
    # Transformers take pictures of the size of their weights.
    for name, side in (("torchvision:vit_b_16.IMAGENET1K_SWAG_E2E_V1", 384), ("vit_h_14", 518)):
        entry = make_entry(name)
        assert (entry.input_size, entry.model_parameters["image_size"]) == ((side, side), side)
    assert "image_size" not in make_entry("vit_b_16").model_parameters


def test_layer_whose_input_is_taken() -> None:
    expected = {
        "squeezenet1_1": ("classifier.1", "pool", 512),
        "regnet_x_400mf": ("penultimate", "flatten", torchvision.models.regnet_x_400mf().fc.in_features),
        "deit_tiny_distilled_patch16_224.fb_in1k": ("head", "flatten", 192),
        "test_efficientnet.r160_in1k": ("penultimate", "flatten", 256),
        "vit_tiny_patch16_224": ("penultimate", "flatten", 192),
        # The neck of the Segment Anything model has 256 channels (Kirillov et al., ICCV 2023, appendix A).
        "samvit_base_patch16.sa1b": ("logits", "flatten", 256),
    }
    made = {name: make_entry(name) for name in expected}
    assert {name: (entry.layer, entry.embedding, entry.output_dim) for name, entry in made.items()} == expected


def test_entry_of_open_clip() -> None:
    pytest.importorskip("open_clip")
    entry = make_entry("ViT-B-32.openai")
    shipped = read_registry(Path(evaluate.__file__).parent / "configs" / "model_registry.json").entries
    (expected,) = [entry for entry in shipped.values() if entry.model_parameters == {"model_name": "ViT-B-32"}]
    options = {"model_name": entry.model_name, "weights": "openai", "notes": ""}
    assert entry == ModelEntry.model_validate({**expected.model_dump(), **options})


def test_made_registry_can_be_used_in_whatever_form_names_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, path = "test_vit.r160_in1k", "shufflenet_v2_x0_5", tmp_path / "registry.json"
    for form in ([one, other], [f"{one},{other}"], [f"[{one}, {other}]"], [f"{one},", other]):
        run("--make", *form, f"--output={path}", "--overwrite")
        assert [*read_registry(path).entries.values()] == [make_entry(name) for name in (one, other)], form
    run("--check", f"--registry={path}", "--random_weights=true")
    last = "2/2 shufflenet_v2_x0_5: layer penultimate, 1024 columns, the same in two passes\n"
    assert capsys.readouterr().out.endswith(last)


def test_check_goes_on_after_failures(arena: Arena, capsys: pytest.CaptureFixture[str]) -> None:
    failing = [
        small_entry("squeezenet1_0", "no_such_layer", "pool", 512),
        small_entry("shufflenet_v2_x1_0", "fc", "flatten", 7),
    ]
    path = arena.write("registry.json", [*failing, ENTRIES[0]])
    with pytest.raises(SystemExit):
        run("--check", f"--registry={path}")
    printed = capsys.readouterr()
    first, second, third = printed.out.splitlines()
    assert first.startswith("1/3 squeezenet1_0: fails: ")
    assert "no layer 'no_such_layer'" in first
    assert "output_dim is 7" in second
    assert third == "3/3 squeezenet1_1: layer features, 512 columns, the same in two passes"
    assert printed.err.endswith("fail: squeezenet1_0, shufflenet_v2_x1_0\n")
    run("--check", f"--registry={path}", "--models=[squeezenet1_1]")


UNKNOWN = {
    "resnet50": "a model of several libraries; give torchvision:resnet50 or timm:resnet50",
    "resnet5000": "is not a model of torchvision or timm",
    "timm:squeezenet1_1": "is not a model of timm",
    "resnet50.a9_in1k": "is not a model of",
    "convnext_base.fb_in22k_ft_in1k_384": "does not use a square crop from the centre",
    "regnetz_005": "timm has none",
}
MISTAKES: list[tuple[list[str], str]] = [
    *(([f"--make={name}", "--output=made.json"], words) for name, words in UNKNOWN.items()),
    ([], "make, check: neither is given"),
    (["--make= "], "make, check: neither is given"),
    (["--make=shufflenet_v2_x0_5"], "output: is missing"),
    (["--make=shufflenet_v2_x0_5", "--output=made.json", "--registry=b.json"], "registry: 'b.json' is given with make"),
    (["--make=a a", "--output=made.json"], "none of them twice"),
    (
        ["--make=timm:resnet18 torchvision:resnet18", "--output=made.json"],
        "two models have the name 'resnet18'; append a dot and a tag of weights",
    ),
    (["--make=shufflenet_v2_x0_5", "--output=registry.json"], "holds something else"),
    (["--check", "--models=[no_such]"], "'no_such' not in the registry"),
    (["--check", "--output=made.json"], "is given without make"),
]


def test_mistakes(arena: Arena, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(arena.folder)
    monkeypatch.setenv("HACKATHON_MODEL_REGISTRY", str(arena.registry))
    lines = [(words, error_line(capsys, partial(run, *options), 1)) for options, words in MISTAKES]
    assert [pair for pair in lines if pair[0] not in pair[1]] == []
    assert not (arena.folder / "made.json").exists()
