"""A classifier of another library as a method: what it is given, what becomes of its answers, what it may not be."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from headstart.modules import ScikitLearnClassifier
from headstart.modules.methods import scikit_learn_classifier
from headstart.output.errors import UserError
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples

NEIGHBOURS = "sklearn.neighbors.KNeighborsClassifier"


def test_probabilities_are_those_of_the_classifier_on_principal_components() -> None:
    inputs, labels = random_samples(3, 30, 40, 3)
    method = feed(
        ScikitLearnClassifier("sklearn.linear_model.LogisticRegression", {"C": 0.1}, components=5), inputs, labels, 4, 3
    )
    logits = method(inputs[0])
    for ordering in range(3):
        axes = PCA(5).fit(inputs[ordering].numpy())
        alone = LogisticRegression(C=0.1).fit(axes.transform(inputs[ordering].numpy()), labels[ordering].numpy())
        expected = alone.predict_proba(axes.transform(inputs[0].numpy()))
        np.testing.assert_allclose(logits[ordering].exp().numpy(), expected, atol=1e-4)


def test_random_numbers_are_seeded() -> None:
    inputs, labels = random_samples(2, 30, 10, 2)
    forest = "sklearn.ensemble.RandomForestClassifier"
    first, second = (feed(ScikitLearnClassifier(forest), inputs, labels)(inputs[0]) for _ in range(2))
    assert torch.equal(first, second)
    other = feed(ScikitLearnClassifier(forest, {"random_state": 7}), inputs, labels)(inputs[0])
    assert not torch.equal(first, other)


def test_a_wrong_parameter_ends_the_run_in_one_line() -> None:
    inputs, labels = random_samples(1, 12, 10, 2)
    method = feed(ScikitLearnClassifier(NEIGHBOURS, {"metric": "x"}), inputs, labels)
    with pytest.raises(UserError, match=r"^classifier: sklearn.neighbors.KNeighborsClassifier cannot be fitted"):
        method(inputs[0])


def test_the_most_frequent_class_is_predicted_until_there_are_enough_samples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scikit_learn_classifier, "WARNED", set())
    inputs, _ = random_samples(2, 8, 10, 2)
    labels = (torch.arange(8).expand(2, 8) + 1) % 2
    method = begin(ScikitLearnClassifier(NEIGHBOURS, {"n_neighbors": 5}), make_start(inputs))
    finite, predicted = [], []
    for part in batches(inputs, labels, 1):
        adapt(method, part)
        greatest, classes = method(inputs[0]).max(-1)
        finite.append(greatest.isfinite().all().item())
        predicted.append(set(classes.flatten().tolist()))
    # The first sample's class is predicted without a fit; of equally frequent classes the first one.
    assert finite == [True, False, False, False, True, True, True, True]
    assert predicted[:4] == [{1}, {0}, {1}, {0}]
    alone = KNeighborsClassifier(5).fit(inputs[1].numpy(), labels[1].numpy())
    assert method(inputs[1])[1].argmax(-1).tolist() == alone.predict(inputs[1].numpy()).tolist()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"WARNING: {NEIGHBOURS} cannot be fitted to 2 samples (Expected n_neighbors <= ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.Classifier",), r"^classifier: 'nowhere.Classifier' cannot be imported"),
        (("sklearn.cluster.KMeans",), r"^classifier: 'sklearn.cluster.KMeans' has no predict_proba"),
        (("sklearn.linear_model.LogisticRegression", {"d": 1}), r"^options: sklearn.linear_model.LogisticRegression"),
    ],
)
def test_mistakes(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ScikitLearnClassifier(*arguments)
