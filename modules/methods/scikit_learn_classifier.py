"""A classifier with scikit-learn's interface, refitted on all samples seen."""

import pkgutil
import sys
from typing import Any

import numpy as np
import torch
from jsonargparse.typing import PositiveInt
from numpy.typing import NDArray
from torch import Tensor

from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.samples_seen import SamplesSeen
from headstart.output.errors import UserError, reason_of
from headstart.output.printable import say

TABICL = "tabicl.TabICLClassifier"
# Classifiers that could not be fitted to few samples; a line says so once.
WARNED = set[str]()


class ScikitLearnClassifier(Method):
    """A classifier of another library, such as one that was pre-trained on tables, refitted at every evaluation.

    Any class with scikit-learn's `fit`, `predict_proba` and `get_params` is possible. The default is TabICL, a network
    that takes the samples as inputs and is not trained on them: Jingang Qu, David Holzmueller, Gael Varoquaux, Marine
    Le Morvan, "TabICL: A Tabular Foundation Model for In-Context Learning on Large Data", ICML, 2025; pip install
    'headstart[tabular]'. It fetches its weights from huggingface.co/jingang/TabICL when it is first used.

    Features are reduced to the leading principal components of the samples seen, as classifiers for tables need few
    columns. The classifier's random numbers follow from the comparison's seed, unless the options set `random_state`.
    Orderings are fitted one after the other. A class without a sample is never predicted, and where all samples are of
    one class, it is predicted without a fit.

    Some classifiers cannot be fitted to few samples. Nearest neighbours need as many samples as neighbours.
    Cross-validation needs a sample of every class in each part. While `fit` or `predict_proba` raises a ValueError, the
    most frequent class of the samples seen is predicted, as by chance. Its logit is infinite, as no probability is
    known. The results therefore name the method and the number of such orderings. A line on the error stream has the
    first reason. Wrong parameters of scikit-learn's own classes, and other errors, end the run.

    Args:
        classifier: Import path of the class.
        options: Arguments of its constructor.
        components: Largest number of principal components.
    """

    def __init__(
        self, classifier: str = TABICL, options: dict[str, Any] | None = None, components: PositiveInt = 64
    ) -> None:
        super().__init__()
        self.classifier = classifier
        self.kind = _import(classifier)
        self.options = dict(options or {})
        self.components = components
        try:
            example = self.kind(**self.options)
        except TypeError as error:
            raise UserError(f"options: {classifier} cannot be made with {self.options} ({error})") from error
        missing = [name for name in ("fit", "predict_proba", "get_params") if not hasattr(example, name)]
        if missing:
            raise UserError(f"classifier: {classifier!r} has no {' and no '.join(missing)}; give one that has")
        self.is_seeded = "random_state" in example.get_params() and "random_state" not in self.options

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.seen = SamplesSeen(start)

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Add the batch to the samples seen."""
        self.seen.append(self.features(inputs), labels, self.indices)

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logarithms of the probabilities of a classifier that is fitted to all samples seen."""
        features = self.features(inputs).double().cpu().numpy()
        labels = self.seen.labels.cpu().numpy()
        logits = np.full((self.start.orderings, features.shape[-2], self.start.classes), -np.inf, dtype=np.float32)
        for ordering in range(self.start.orderings if self.seen.count else 0):
            samples = self.seen.gather(slice(ordering, ordering + 1))[0].double().cpu().numpy()
            points = features if features.ndim == 2 else features[ordering]
            classes, probabilities = self._predict(samples, labels[ordering], points)
            with np.errstate(divide="ignore"):
                logits[ordering][:, classes] = np.log(probabilities)
        return torch.from_numpy(logits).to(inputs.device)

    def _predict(
        self, samples: NDArray[np.float64], labels: NDArray[np.int64], features: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the classes with a sample, and their probabilities for the features, `[features, classes]`."""
        classes = np.unique(labels)
        if len(classes) == 1:
            return classes, np.ones((len(features), 1))
        from sklearn.decomposition import PCA

        axes = PCA(min(self.components, *samples.shape), svd_solver="full")
        # The axes' shares of the variance are undefined if all samples are the same.
        with np.errstate(invalid="ignore"):
            columns = axes.fit_transform(samples)

        classifier = self.kind(**self.options, **({"random_state": self.start.seed} if self.is_seeded else {}))
        try:
            classifier.fit(columns, labels)
            probabilities = classifier.predict_proba(axes.transform(features))
        except (OSError, ValueError, AttributeError) as error:
            reason = f"{self.classifier} cannot be fitted to {len(labels)} samples ({reason_of(error)})"
            # Wrong parameters are TypeErrors, too, and missing downloads OSErrors: no further sample mends them.
            if not isinstance(error, ValueError) or isinstance(error, (OSError, TypeError, AttributeError)):
                raise UserError(f"classifier: {reason}") from error
            self._warn(reason)
            return np.array([np.bincount(labels).argmax()]), np.full((len(features), 1), np.inf)
        return np.asarray(classifier.classes_), np.asarray(probabilities)

    def _warn(self, reason: str) -> None:
        if self.classifier not in WARNED:
            WARNED.add(self.classifier)
            say(f"WARNING: {reason}; until it can be, it predicts the most frequent class.", sys.stderr)


def _import(path: str) -> Any:  # noqa: ANN401 - a class of another library
    """Return the class of an import path."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        extra = "; pip install 'headstart[tabular]'" if path == TABICL else "; give the import path of a class"
        raise UserError(f"classifier: {path!r} cannot be imported ({error}){extra}") from error
