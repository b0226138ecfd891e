"""A classifier for the classes of a data set, on networks with and without weights."""

from functools import partial
from pathlib import Path

import torch
from torchvision.models import mobilenet_v2, resnet18

from headstart.modules.networks.backbone import build_classifier
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.mistakes import refusal

SMALL = Preprocessing(32, 32)


def test_a_random_network_is_the_librarys_own() -> None:
    options = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL)
    spec, network, preprocessing, width = build_classifier(options.network(seed=5), classes=4)
    torch.manual_seed(5)
    plain = mobilenet_v2(width_mult=0.25, num_classes=4)
    for name, value in plain.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name
    assert (spec.arguments, preprocessing, width) == ({"width_mult": 0.25, "num_classes": 4}, SMALL, 1280)


def test_weights_stay_and_their_classifier_goes(tmp_path: Path) -> None:
    torch.manual_seed(1)
    trained = resnet18(num_classes=7)
    torch.save(trained.state_dict(), tmp_path / "weights.pth")
    options = BackboneSpec("resnet18", str(tmp_path / "weights.pth"), {}, SMALL)
    spec, network, _, width = build_classifier(options.network(seed=5), classes=7)
    state = network.state_dict()
    assert all(torch.equal(state[name], value) for name, value in trained.state_dict().items() if "fc" not in name)
    assert state["fc.weight"].shape == (7, width)
    assert not torch.equal(state["fc.weight"], trained.fc.weight)
    _, again, _, _ = build_classifier(options.network(seed=5), classes=7)
    assert torch.equal(again.state_dict()["fc.weight"], state["fc.weight"])
    assert spec.arguments == {"num_classes": 7}


def test_networks_that_cannot_be_trained_are_refused() -> None:
    refused = {"squeezenet1_0": "name: SqueezeNet has no linear classifier", "alexnet": "preprocessing: alexnet cannot"}
    for name, words in refused.items():
        spec = BackboneSpec(name, "random", {}, SMALL).network(0)
        assert words in refusal(partial(build_classifier, spec, 3))
