"""A classifier of another library as a method: what it is given, what becomes of its answers, what it may not be."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from headstart.modules import ScikitLearnClassifier
from headstart.output.errors import UserError
from headstart.tests.material.streams import draw_samples, feed


def test_probabilities_are_those_of_the_classifier_on_principal_components() -> None:
    inputs, labels = draw_samples(3, 30, 40, 3)
    method = feed(
        ScikitLearnClassifier("sklearn.linear_model.LogisticRegression", {"C": 0.1}, components=5), inputs, labels, 4, 3
    )
    logits = method(inputs[0])
    for ordering in range(3):
        axes = PCA(5).fit(inputs[ordering].numpy())
        alone = LogisticRegression(C=0.1).fit(axes.transform(inputs[ordering].numpy()), labels[ordering].numpy())
        expected = alone.predict_proba(axes.transform(inputs[0].numpy()))
        np.testing.assert_allclose(logits[ordering].exp().numpy(), expected, atol=1e-4)


def test_what_is_drawn_is_seeded() -> None:
    inputs, labels = draw_samples(2, 30, 10, 2)
    forest = "sklearn.ensemble.RandomForestClassifier"
    first, second = (feed(ScikitLearnClassifier(forest), inputs, labels)(inputs[0]) for _ in range(2))
    assert torch.equal(first, second)
    other = feed(ScikitLearnClassifier(forest, {"random_state": 7}), inputs, labels)(inputs[0])
    assert not torch.equal(first, other)


def test_no_more_components_than_there_are() -> None:
    inputs, labels = draw_samples(1, 4, 10, 2)
    labels[0] = torch.tensor([0, 1, 0, 1])
    logits = feed(ScikitLearnClassifier("sklearn.linear_model.LogisticRegression"), inputs, labels, 4)(inputs[0])
    axes = PCA(4).fit(inputs[0].numpy())
    alone = LogisticRegression().fit(axes.transform(inputs[0].numpy()), labels[0].numpy())
    expected = alone.predict_proba(axes.transform(inputs[0].numpy()))
    np.testing.assert_allclose(logits[0].exp().numpy(), expected, atol=1e-4)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tabicl", None)
    with pytest.raises(UserError, match=r"^classifier: 'tabicl.TabICLClassifier' .*headstart\[tabular\]"):
        ScikitLearnClassifier()


@pytest.mark.parametrize("options", [{"metric": "x"}, {"n_neighbors": 13}])
def test_what_cannot_be_fitted_is_one_line(options: dict[str, Any]) -> None:
    inputs, labels = draw_samples(1, 12, 10, 2)
    method = feed(ScikitLearnClassifier("sklearn.neighbors.KNeighborsClassifier", options), inputs, labels)
    with pytest.raises(UserError, match=r"^classifier: sklearn.neighbors.KNeighborsClassifier cannot be fitted"):
        method(inputs[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.Classifier",), r"^classifier: 'nowhere.Classifier' cannot be imported"),
        (("sklearn.linear_model.Nothing",), r"^classifier: 'sklearn.linear_model.Nothing' cannot be imported"),
        (("sklearn.cluster.KMeans",), r"^classifier: 'sklearn.cluster.KMeans' has no predict_proba"),
        (("sklearn.svm.SVC",), r"^classifier: 'sklearn.svm.SVC' has no predict_proba"),
        (("sklearn.linear_model.LogisticRegression", {"d": 1}), r"^options: sklearn.linear_model.LogisticRegression"),
    ],
)
def test_mistakes(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ScikitLearnClassifier(*arguments)
