"""The suite's methods as scikit-learn classifiers over features."""

import inspect
import io
from importlib import import_module
from numbers import Integral
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn.functional import pad

from headstart.modules.arithmetic import common_offset, deterministic, seen_rows
from headstart.modules.method import MethodStart
from headstart.modules.method_state import MethodState
from headstart.modules.methods.catalogue import METHODS
from headstart.output.parser import OneLineErrorParser

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import Tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("headstart.estimators needs scikit-learn; pip install 'headstart[sklearn]'") from error

# Methods on frozen features that need no source head.
CLASSIFIERS = {
    method.name: name
    for name, method in METHODS.items()
    if "features" in method.inputs and not method.needs_source_head
}
# The sample limit; methods allocate memory only for the samples seen.
MOST_SAMPLES = 2**31
# Samples that are predicted together, filled up with zeros: products of other shapes round differently.
PASS = 256


class HeadstartClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A transfer method of the suite as a classifier with scikit-learn's interface.

    With the same method, head, seed and batches it makes the predictions of a comparison with one ordering, except
    where two classes differ by rounding. Features and arithmetic are float32, on the processor. A prediction does not
    depend on the samples that are predicted with it.

    Args:
        method: Name of a method on frozen features that needs no source head. `headstart list methods` lists them.
        batch_size: Samples in each batch that `fit` and `partial_fit` feed, in their order. Larger batches are faster.
            For closed-form methods they only change rounding.
        random_state: Seed of the method's random numbers.
        hyperparameters: Arguments of the method.

    Attributes:
        classes_: The classes, sorted, `[classes]`.
        n_features_in_: Width of the features.

    Example:
        >>> from sklearn.model_selection import cross_val_score
        >>> from headstart.estimators import HeadstartClassifier
        >>> features = np.random.default_rng(0).normal(size=(40, 3))
        >>> features[:20] += 3
        >>> cross_val_score(HeadstartClassifier("streaming_lda"), features, np.arange(40) < 20).mean()
        np.float64(1.0)
    """

    def __init__(
        self,
        method: str = "gaussian_discriminant_analysis",
        *,
        batch_size: int = 1,
        random_state: int = 0,
        **hyperparameters: Any,
    ) -> None:
        self.method = method
        self.batch_size = batch_size
        self.random_state = random_state
        self._hyperparameters = dict(hyperparameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, with those of the method that were chosen.

        Args:
            deep: Without effect, as no argument is an estimator; scikit-learn passes it.
        """
        return {**super().get_params(deep), **self._hyperparameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, including those of the method.

        Args:
            params: Values by their names.

        Raises:
            ValueError: Neither the classifier nor its method has such an argument.
        """
        of_classifier = {name: value for name, value in params.items() if name in self._get_param_names()}
        of_method = {name: value for name, value in params.items() if name not in of_classifier}
        super().set_params(**of_classifier)
        for name in of_method.keys() - self._hyperparameters.keys():
            arguments = inspect.signature(_find(self.method)).parameters
            if name not in arguments:
                raise ValueError(f"{name}: {self.method} has no such argument; it has {', '.join(arguments) or 'none'}")
        self._hyperparameters |= of_method
        return self

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from these samples, and forget earlier ones.

        Args:
            X: Features `[samples, features]`.
            y: Classes `[samples]`.

        Raises:
            ValueError: The features or classes are not valid, or an argument of the constructor is wrong.
        """
        # An error from here on leaves the classifier unfitted.
        self.__dict__.pop("_state", None)
        self._require_whole_numbers()
        features, labels = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(labels)
        self._begin(np.unique(labels), features)
        return self._learn(features, labels)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:  # noqa: N803 - as above
        """Learn from further samples.

        Args:
            X: Features `[samples, features]`.
            y: Classes `[samples]`.
            classes: All classes of all calls, `[classes]`; needed in the first call. Features that are large next to
                their spread lose digits unless the first call has several samples, which show the common offset.

        Raises:
            ValueError: As for `fit`; or a class of `y` is not one of `classes`.
        """
        self._require_whole_numbers()
        is_first = not hasattr(self, "_state")
        features, labels = validate_data(self, X, y, dtype=np.float32, reset=is_first)
        if is_first:
            if classes is None:
                raise ValueError("classes: must be passed on the first call to partial_fit")
            self._begin(np.unique(np.asarray(classes)), features)
        return self._learn(features, labels)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803 - as above
        """Predict classes.

        Args:
            X: Features `[samples, features]`.

        Returns:
            Classes `[samples]`.
        """
        indices = self._logits(X).max(-1).indices.numpy()
        classes: NDArray[Any] = self.classes_[indices]
        return classes

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803 - as above
        """Return the softmax of the method's logits. They are probabilities if the method models them.

        Args:
            X: Features `[samples, features]`.

        Returns:
            `[samples, classes]`, in the order of `classes_`.
        """
        return self._logits(X).double().softmax(-1).numpy()

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn's checks: gradient descent needs more samples than they have."""
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.method == "gradient_descent"
        return tags

    def _require_whole_numbers(self) -> None:
        for name, minimum in (("batch_size", 1), ("random_state", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < minimum:
                raise ValueError(f"{name}: expected a whole number of {minimum} or more, not {value!r}")

    def _begin(self, classes: NDArray[Any], features: NDArray[np.float32]) -> None:
        """Build the method and begin it, as the comparison does; the features are those of the first call."""
        self.classes_, self._seen = classes, 0
        self._offset = common_offset(torch.from_numpy(features[seen_rows(len(features))]))
        self._start = MethodStart(self.n_features_in_, len(classes), [0], MOST_SAMPLES, int(self.random_state))
        # A pickled method is built from these again, even if other parameters were set afterwards.
        self._made_from = self.method, dict(self._hyperparameters)
        state = self._make()
        with deterministic(), state.generators.in_use():
            state.method.begin(self._start)
            state.optimizers = state.method.build_optimizers()
        self._state = state

    def _make(self) -> MethodState:
        """Build the method from its arguments, checked as on the command line."""
        name, hyperparameters = self._made_from
        kind = _find(name)
        parser = OneLineErrorParser()
        parser.add_class_arguments(kind, fail_untyped=False)
        arguments = parser.parse_object(hyperparameters)
        state = MethodState(kind(**parser.instantiate_classes(arguments)))
        state.reset(self._start)
        return state

    def _learn(self, features: NDArray[np.float32], labels: NDArray[Any]) -> Self:
        codes = np.searchsorted(self.classes_, labels)
        unknown = self.classes_[np.minimum(codes, len(self.classes_) - 1)] != labels
        if unknown.any():
            raise ValueError(f"y: {labels[unknown].tolist()[0]!r} is none of the classes {self.classes_.tolist()}")

        method, positions = self._state.method, torch.arange(self._seen, self._seen + len(labels))
        tensors = self._centred(features), torch.from_numpy(codes), positions
        batches = zip(*(tensor.split(int(self.batch_size)) for tensor in tensors), strict=True)
        with deterministic(), self._state.generators.in_use():
            for batch in batches:
                inputs, targets, method.indices = (part[None] for part in batch)
                method.adapt(inputs, targets)
        self._seen += len(labels)
        return self

    def _centred(self, features: NDArray[np.float32]) -> torch.Tensor:
        """Return features less the common offset, if those of the first call had one."""
        values = torch.from_numpy(features)
        return values if self._offset is None else values - self._offset

    @torch.no_grad()
    def _logits(self, X: ArrayLike) -> torch.Tensor:  # noqa: N803 - as above
        check_is_fitted(self, "_state")
        features = validate_data(self, X, dtype=np.float32, reset=False)
        parts = self._centred(features).split(PASS)
        with deterministic(), self._state.generators.in_use():
            logits = [self._state.method(pad(part, (0, 0, 0, PASS - len(part))))[0, : len(part)] for part in parts]
        return torch.cat(logits)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle; of the method, only the parts that its batches have changed."""
        state = dict(super().__getstate__())
        if "_state" in state:
            stored = io.BytesIO()
            torch.save(state.pop("_state").held(), stored)
            state["_stored"] = stored.getvalue()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state."""
        stored = state.pop("_stored", None)
        super().__setstate__(state)
        if stored is not None:
            self._state = self._make()
            self._state.method.begin(self._start)
            self._state.restore(torch.load(io.BytesIO(stored), weights_only=False))


def _find(method: str) -> Any:  # noqa: ANN401 - a subclass of Method
    """Return the class of a method by its name."""
    name = CLASSIFIERS.get(method, method)
    if name not in CLASSIFIERS.values():
        raise ValueError(f"method: {method!r} is no method on features; name one of {', '.join(CLASSIFIERS)}")
    return getattr(import_module(METHODS[name].module), name)
