"""Methods as scikit-learn classifiers: its checks, its tools, and the traces of comparisons."""

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headstart
from headstart import modules
from headstart.datamodules import DrawnPets
from headstart.datamodules.orderings import sample_ordering
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.modules.methods.catalogue import METHODS
from headstart.tests.material.blank_figures import blank_figures
from headstart.train import main

pytest.importorskip("sklearn", reason="the extra sklearn is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from headstart.estimators import CLASSIFIERS, HeadstartClassifier

# Required arguments beside the name: a classifier that is installed.
GIVEN: dict[str, dict[str, Any]] = {"scikit_learn_classifier": {"classifier": "sklearn.naive_bayes.GaussianNB"}}


def samples(count: int = 60, classes: int = 3) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Draw separable features and the names of their classes."""
    generator, labels = np.random.default_rng(0), np.arange(count) % classes
    features = generator.normal(size=(count, 5)) + 4 * np.eye(5)[labels]
    return features, np.array(["ant", "bee", "cat"])[labels]


def test_no_argument_of_a_method_is_called_as_one_of_the_classifier() -> None:
    of_classifier = {"method", "batch_size", "random_state"}
    arguments = {name: inspect.signature(getattr(modules, name)).parameters.keys() for name in METHODS}
    assert [name for name in METHODS if of_classifier & arguments[name]] == []


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn() -> None:
    check_estimator(HeadstartClassifier())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", CLASSIFIERS)
def test_the_checks_of_scikit_learn_on_every_method(method: str) -> None:
    check_estimator(HeadstartClassifier(method, **GIVEN.get(method, {})))


@pytest.mark.parametrize("method", CLASSIFIERS)
def test_every_method_classifies_each_sample_whatever_its_company_and_goes_on_when_it_is_pickled(method: str) -> None:
    features, names = samples(300)
    classifier = HeadstartClassifier(method, batch_size=2, **GIVEN.get(method, {})).fit(features, names)
    assert classifier.classes_.tolist() == ["ant", "bee", "cat"]
    chances = classifier.predict_proba(features)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert (classifier.classes_[chances.argmax(1)] == classifier.predict(features)).all()
    if method != "gradient_descent":  # small steps
        assert classifier.score(features, names) > 0.7
    for part in (slice(0, 1), slice(5, 12), slice(250, 300)):
        np.testing.assert_allclose(classifier.predict_proba(features[part]), chances[part], rtol=0, atol=1e-12)

    copy = pickle.loads(pickle.dumps(classifier))
    for fitted in (classifier, copy):
        fitted.partial_fit(features[:20], names[:20])
    assert np.array_equal(classifier.predict_proba(features), copy.predict_proba(features))


def test_tools_of_scikit_learn() -> None:
    features, names = samples(90)
    scaled = make_pipeline(StandardScaler(), HeadstartClassifier("streaming_lda"))
    assert cross_val_score(scaled, features, names).min() > 0.9
    search = GridSearchCV(HeadstartClassifier("kernel_ridge"), {"ridge": [0.1, 10.0], "batch_size": [30]}, cv=3)
    search.fit(features, names)
    assert search.best_params_["ridge"] in (0.1, 10.0)
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
    classifier = HeadstartClassifier("kernel_ridge", ridge=3.0)
    assert classifier.get_params() == {"method": "kernel_ridge", "batch_size": 1, "random_state": 0, "ridge": 3.0}
    assert "ridge=3.0" in repr(classifier)


# What is done, and the beginning of the message.
MISTAKES: dict[str, Callable[[], object]] = {
    "method: 'nothing' is no method on features; name one": lambda: HeadstartClassifier("nothing").fit(*samples()),
    "ridge: expected a number": lambda: HeadstartClassifier("kernel_ridge", ridge=-1).fit(*samples()),
    "rigde: there is no such option": lambda: HeadstartClassifier("kernel_ridge", rigde=1).fit(*samples()),
    "batch_size: expected a whole number of 1 or": lambda: (
        HeadstartClassifier().set_params(batch_size=1.5).fit(*samples())
    ),
    "random_state: expected a whole number of 0": lambda: (
        HeadstartClassifier().set_params(random_state=None).fit(*samples())
    ),
    "ridge: gaussian_discriminant_analysis has no such": lambda: HeadstartClassifier().set_params(ridge=1),
    "classes: must be passed": lambda: HeadstartClassifier().partial_fit(*samples()),
    "y: 'bee' is none of the classes": lambda: HeadstartClassifier().partial_fit(*samples(), classes=["ant"]),
}


def test_mistakes() -> None:
    for message, make in MISTAKES.items():
        with pytest.raises(ValueError, match=message):
            make()


def test_parameters_that_are_set_later_change_nothing_learnt() -> None:
    features, names = samples()
    classifier = HeadstartClassifier("streaming_lda").fit(features, names)
    expected = classifier.predict_proba(features)
    classifier.set_params(method="kernel_ridge", ridge=2.0)
    assert np.array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(features), expected)
    with pytest.raises(ValueError, match="ridge"):
        classifier.set_params(ridge=-1).fit(features[:, :2], names)
    with pytest.raises(NotFittedError):
        classifier.predict(features[:, :2])


@pytest.mark.slow
def test_predictions_are_those_of_the_trace(tmp_path: Path) -> None:
    source, seed = DrawnPets(train_size=60, validation_size=50), 3
    sizes = ["--data.photos.train_size=60", "--data.photos.validation_size=50", "--data.max_samples=25"]
    options = ["--data.num_workers=0", "--data.orderings=1", "--trainer.logger=false", "--criterion.threshold=1.0"]
    options += [f"--model.methods.{name}={name}" for name in CLASSIFIERS if name not in GIVEN]
    options += [f"--seed_everything={seed}", f"--trainer.default_root_dir={tmp_path}"]
    with blank_figures():
        main(["--config=demo.yaml", *sizes, *options])
    curves = Curves.load(tmp_path / "curves.npz")

    train, validation = source.train(), source.validation()
    samples, points = (headstart.embed(photos, {"weights": "embedded"}) for photos in (train, validation))
    order = sample_ordering(len(train), 0, seed)
    for index, name in enumerate(curves.methods[1:], 1):
        classifier = HeadstartClassifier(name, random_state=seed)
        correct = []
        for position in order[: len(curves.samples_seen)]:
            classifier.partial_fit(samples[[position]], train.labels[[position]], classes=[0, 1])
            correct.append((classifier.predict(points) == validation.labels).sum())
        assert correct == curves.correct[index, 0].tolist(), name
