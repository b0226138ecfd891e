"""Rows of a small random network, and the ways in which a table of rows is asked for."""

from collections.abc import Callable
from pathlib import Path

from headstart.datamodules import rows
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_policy import Policy, Resources
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.store.row_store import StoredRows

SMALL = Preprocessing(resize=32, crop=32)
NETWORK = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(0)
ON_CPU = Policy(device="cpu")
TAPS = [Tap("features.1", "pool", None), Tap("penultimate", "flatten", 1280)]
Find = Callable[..., StoredRows]


def find_features(photos: Pictures, folder: Path, seed: int = 0) -> StoredRows:
    spec = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(seed)
    policy = Policy(folded=True, unreadable="remark", device="cpu")
    return rows.rows(spec, [], photos, policy, Resources(folder, "features", 0))


def find_pixels(photos: Pictures, folder: Path, preprocessing: Preprocessing = SMALL) -> StoredRows:
    return rows.pixels(preprocessing, photos, Resources(folder, "pixels", 0))


WAYS: dict[str, Callable[[Pictures, Path], StoredRows]] = {
    "embeddings": lambda photos, folder: rows.rows(NETWORK, TAPS, photos, ON_CPU, Resources(folder, "", 0)),
    "features": find_features,
    "pixels": find_pixels,
}
