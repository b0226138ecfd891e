"""Stored features against running the frozen backbone again for every evaluation."""

import torch

from headstart.benchmarks.speed.frame import PHOTOS, WEIGHTS, temporary_folder, timed, train
from headstart.modules import BackboneSpec
from headstart.modules.networks.backbone import build_backbone

ORDERINGS, EVALUATIONS, VALIDATION, BATCH = 20, 250, 1000, 4


def main(photos: str = PHOTOS, weights: str = WEIGHTS) -> None:
    """Time a pass of the backbone over as many pictures as validation photos, extrapolate, and time a whole run.

    The pictures are in memory, so that no decoding is counted against recomputation.

    Args:
        photos: Folder of cats and dogs.
        weights: Weights of MobileNetV2.
    """
    backbone = build_backbone(BackboneSpec(weights=weights).network(0)).folded()
    pictures = torch.randint(0, 256, (BATCH, 3, 224, 224), dtype=torch.uint8)
    with torch.inference_mode():
        backbone(pictures)
        one_pass = timed(lambda: [backbone(pictures) for _ in range(VALIDATION // BATCH)])[0]
    recomputed = one_pass * ORDERINGS * EVALUATIONS
    print(f"recomputed: {recomputed / 3600:.1f} h at {one_pass:.1f} s a pass")

    options = ["--config=configs/cats_and_dogs.yaml", "--model.methods={mean: headstart.modules.NearestClassMean}"]
    options += [f"--data.photos.root={photos}", f"--data.backbone.weights={weights}", "--trainer.logger=false"]
    options += [f"--data.orderings={ORDERINGS}", f"--data.max_samples={EVALUATIONS}", "--criterion.threshold=1.0"]
    with temporary_folder() as folder:
        for state in ("from an empty cache", "features in place"):
            seconds = train(folder, *options).seconds
            print(f"{state}: {seconds:.1f} s, ratio {recomputed / seconds:.0f}", flush=True)
