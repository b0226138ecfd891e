"""The stream of frozen features keeps them by what they depend on."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing

SetUp = Callable[..., SampleStream]


def test_features_are_computed_once_for_the_same_weights(
    set_up: SetUp, computed: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = str(tmp_path / "chosen")
    key = set_up(FeatureStream, cache_dir=cache, precision="float32").decisive()
    assert (key["inputs"], key["feature_precision"]) == ("frozen features", "float32")
    assert computed == [24, 12]
    set_up(FeatureStream, cache_dir=cache, precision="float32", orderings=7, first_ordering=3, batch_size=4)
    assert len(computed) == 2
    assert len(list((tmp_path / "chosen" / "features").glob("*/*.safetensors"))) == 2
    # Other weights may have the same name.
    monkeypatch.setattr("headstart.modules.networks.backbone.Backbone.digest", lambda self: "of replaced weights")
    set_up(FeatureStream, cache_dir=cache, precision="float32")
    assert len(computed) == 4


EMBEDDED = BackboneSpec("mobilenet_v2", "embedded", {"width_mult": 0.35}, Preprocessing(32, 32))


def test_a_common_offset_is_subtracted_and_source_logits_stay(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = set_up(FeatureStream, backbone=EMBEDDED, precision="float32")
    monkeypatch.setattr("headstart.modules.arithmetic.LARGE_OFFSET", 1e-3)
    moved = set_up(FeatureStream, backbone=EMBEDDED, precision="float32")
    offset = plain.train_inputs.mean(0)
    torch.testing.assert_close(moved.train_inputs, plain.train_inputs - offset)
    torch.testing.assert_close(moved.validation_inputs, plain.validation_inputs - offset)
    logits = [
        stream.validation_inputs @ start.source_head.mT + start.source_bias  # type: ignore[union-attr]
        for stream in (plain, moved)
        for start in [stream.start()]
    ]
    torch.testing.assert_close(*logits)
