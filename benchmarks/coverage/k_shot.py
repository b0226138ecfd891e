"""Accuracy at labels per class as `headstart train` measures it, beside scikit-learn on the same features."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import normalize

from headstart.benchmarks.coverage.frame import Shares, print_table
from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.datamodules.embedding import embed
from headstart.datamodules.orderings import balanced_ordering
from headstart.datamodules.photos.class_folders import read_class_folders
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.modules.networks.backbone_spec import BackboneSpec

PRECISION: Literal["float32"] = "float32"
METHODS = {
    "logistic_regression": "LogisticRegression",
    "nearest_class_mean": "NearestClassMean",
    "gaussian_discriminant_analysis": "GaussianDiscriminantAnalysis",
}


class Empirical(LinearDiscriminantAnalysis):  # type: ignore[misc]  # scikit-learn has no types
    """Linear discriminant analysis of features of unit norm, with the shrinkage of GDA-CLIP.

    Its precision, `D ((n - 1) C + tr(C) I)^-1`, is in the proportion of scikit-learn's `(1 - s) C + s tr(C) / D I` if s
    is `D / (D + n - 1)`. As all classes have as many samples, their priors are equal.
    """

    def __init__(self) -> None:
        super().__init__(solver="lsqr")

    def fit(self, features: NDArray[np.float64], labels: NDArray[np.int64]) -> "Empirical":
        """Fit to samples, `[samples, features]`."""
        samples, width = features.shape
        self.shrinkage = width / (width + samples - 1)
        super().fit(normalize(features), labels)
        return self

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.int64]:
        """Predict classes."""
        predicted: NDArray[np.int64] = super().predict(normalize(features))
        return predicted


# The same methods in scikit-learn, in the order of METHODS, and the fewest samples of a class they are fitted to.
ORACLES: list[tuple[Callable[[], Any], int]] = [
    (lambda: LogisticRegression(max_iter=10_000, tol=1e-8), 1),
    (NearestCentroid, 1),
    (Empirical, 2),
]


def main(
    shared: str = "../shared",
    weights: str = "mobilenet_v2_imagenet",
    sets: list[str] = ["flowers", "cats_and_dogs"],  # noqa: B006 - never changed
    per_class: list[int] = [1, 2, 4, 8, 16],  # noqa: B006 - never changed
    orderings: int = 20,
) -> None:
    """Print the mean accuracy over balanced orderings by both, and the largest difference in one ordering.

    Args:
        shared: Folder with the photos in `data` and the weights in `weights`.
        weights: Name of the file of MobileNetV2's weights there.
        sets: Data sets.
        per_class: Labels per class, in ascending order.
        orderings: Number of orderings.
    """

    def cases() -> Iterator[tuple[str, Shares]]:
        backbone = BackboneSpec(weights=str((Path(shared) / "weights" / f"{weights}.safetensors").resolve()))
        for name in sets:
            root = Path(shared, "data", name).resolve()
            train, validation = read_class_folders(root)
            inputs, points = (embed(part, backbone, precision=PRECISION) for part in (train, validation))
            ours = _measure(root, backbone, per_class[-1] * len(train.classes), orderings)

            orders = [balanced_ordering(train.labels, ordering, 0) for ordering in range(orderings)]
            for method, (oracle, fewest) in zip(METHODS, ORACLES, strict=True):
                for number in (each for each in per_class if each >= fewest):
                    labels = number * len(train.classes)
                    theirs = []
                    for order in orders:
                        with warnings.catch_warnings(action="ignore"):  # a feature's deviation may be 0
                            fitted = oracle().fit(inputs[order[:labels]], train.labels[order[:labels]])
                        theirs.append((fitted.predict(points) == validation.labels).mean())
                    own = ours.accuracy_at(labels)[ours.methods.index(method)]
                    shares = {"headstart": own.mean(), "scikit-learn": np.mean(theirs)}
                    yield f"{name}, {number} per class, {method}", {**shares, "largest": np.abs(own - theirs).max()}

    print_table(cases())


def _measure(root: Path, backbone: BackboneSpec, samples: int, orderings: int) -> Curves:
    """Return the curves of `headstart train` on balanced orderings of a folder."""
    methods = ", ".join(f"{name}: headstart.modules.{kind}" for name, kind in METHODS.items())
    with temporary_folder() as folder:
        run(
            "train.py",
            "--config=benchmarks/local/benchmark/flowers.yaml",
            f"--data.photos.root={root}",
            f"--data.backbone.weights={backbone.weights}",
            f"--data.precision={PRECISION}",
            "--data.order=balanced",
            f"--data.orderings={orderings}",
            f"--data.max_samples={samples}",
            "--criterion.until=limit",
            "--model.baseline=headstart.modules.GradientDescent",
            f"--model.methods={{{methods}}}",
            "--trainer.logger=false",
            f"--trainer.default_root_dir={folder}",
            f"--results.ledger={folder / 'ledger'}",
        )
        return Curves.load(folder / "curves.npz")
