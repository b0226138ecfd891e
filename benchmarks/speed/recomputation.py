"""Stored features against running the frozen backbone again for every evaluation."""

from __future__ import annotations

import jsonargparse
import torch

from headstart.benchmarks.speed.frame import temporary_folder, timed, train
from headstart.modules import BackboneSpec
from headstart.modules.networks.backbone import build_backbone

ORDERINGS, EVALUATIONS = 20, 250
PASSES = 2


def main(
    photos: str = "../shared/data/cats_and_dogs", weights: str = "../shared/weights/mobilenet_v2_imagenet.safetensors"
) -> None:
    """Time a few passes of the backbone over the validation photos, extrapolate, and compare with a whole run.

    The passes run on pictures in memory, so that the decoding is not counted against recomputation.

    Args:
        photos: Folder of cats and dogs.
        weights: Weights of MobileNetV2.
    """
    backbone = build_backbone(BackboneSpec(weights=weights).network(0)).folded()
    pictures = torch.randint(0, 256, (4, 3, 224, 224), dtype=torch.uint8)
    size = 1000
    with torch.inference_mode():
        backbone(pictures)
        passes = PASSES * size // len(pictures)
        one_pass = timed(lambda: [backbone(pictures) for _ in range(passes)])[0] / PASSES
    again = one_pass * ORDERINGS * EVALUATIONS
    options = ["--config=configs/cats_and_dogs.yaml", "--model.methods={mean: headstart.modules.NearestClassMean}"]
    options += [f"--data.photos.root={photos}", f"--data.backbone.weights={weights}", "--trainer.logger=false"]
    options += [f"--data.orderings={ORDERINGS}", f"--data.max_samples={EVALUATIONS}", "--criterion.threshold=1.0"]
    with temporary_folder() as folder:
        first, second = (train(folder, *options).seconds for _ in range(2))
    print(
        f"{ORDERINGS} orderings x {EVALUATIONS} evaluations x {size} photos: {again / 3600:.1f} h at {one_pass:.1f} s "
        f"a pass for one method, against {second:.1f} s with features in place (ratio {again / second:.0f}) and "
        f"{first:.1f} s with their computation (ratio {again / first:.0f})"
    )


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
