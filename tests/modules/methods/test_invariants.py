"""Every shipped method keeps the rules of methods."""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch

from headstart import modules
from headstart.modules.method import Method
from headstart.modules.methods import logistic_regression
from headstart.modules.methods.catalogue import METHODS
from headstart.output.errors import UserError
from headstart.tests.material.method_rules import (
    BATCH,
    CLASSES,
    SAMPLES,
    check_alone_as_among_many,
    check_any_device,
    check_deterministic,
    check_evaluations_change_nothing,
    check_leaves_the_start_alone,
    check_sees_no_label_early,
    random_stream,
    trace,
    waits_for_the_gpu,
)
from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.shipped_methods import CASES, ON_FEATURES, maker
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_samples

FROM_INITIAL_HEAD = ("GradientDescent", "LinearProbeThenFineTune", "LoRA", "Replay")
MAY_PREDICT_ANY_CLASS = (*FROM_INITIAL_HEAD, "LearnedSemanticPrior", "SemanticClassMean")
DEPENDS_ON_BATCHES = (*FROM_INITIAL_HEAD, "CosineClassifier", "LearnedSemanticPrior")
# The iterations of one end when all orderings have converged, the other computes on the processor.
WAIT = ("LogisticRegression", "ScikitLearnClassifier")

each_method = pytest.mark.parametrize("name", METHODS)
on_features = pytest.mark.parametrize("name", ON_FEATURES)
each_case = pytest.mark.parametrize(("name", "inputs"), CASES)


@each_method
def test_is_where_the_catalogue_says(name: str) -> None:
    assert getattr(modules, name).__module__ == METHODS[name].module


def test_catalogue_is_complete() -> None:
    paths = [f"headstart.modules.methods.{file.stem}" for file in (ROOT / "modules" / "methods").glob("*.py")]
    classes = {value for module in paths for value in vars(import_module(module)).values() if isinstance(value, type)}
    methods = {value.__name__ for value in classes if issubclass(value, Method) and value.__module__ in paths}
    bases = {"FineTuning"}
    assert methods == set(METHODS) | bases


def test_every_method_is_documented_and_tested() -> None:
    require_checkout()
    page = (ROOT / "docs" / "methods.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [(method.title, name) for name, method in METHODS.items()]
    for method in METHODS.values():
        assert (Path(__file__).parent / f"test_{method.name}.py").exists()


@each_case
def test_starts_from_what_all_start_from(name: str, inputs: str) -> None:
    check_leaves_the_start_alone(maker(name), inputs)


@pytest.mark.parametrize(("name", "inputs"), [case for case in CASES if case[0] in FROM_INITIAL_HEAD])
def test_first_predictions_are_those_of_the_initial_head(name: str, inputs: str) -> None:
    stream, _ = random_stream(inputs)
    start = make_start(stream, CLASSES)
    features = stream[0] if start.backbone is None else start.backbone(stream[0])
    weight, bias = start.heads()
    expected = features @ weight + bias[:, None]
    torch.testing.assert_close(begin(maker(name)(), start)(stream[0]), expected)


@each_case
def test_up_to_a_sample_the_limit_does_not_matter(name: str, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    traces = []
    for limit in (SAMPLES, 3 * SAMPLES):
        method = begin(maker(name)(), replace(make_start(stream, CLASSES), max_samples=limit))
        logits = []
        for part in batches(stream, labels, BATCH):
            adapt(method, part)
            logits.append(method(stream[0]).detach())
        traces.append(torch.stack(logits))
    torch.testing.assert_close(*traces, rtol=1e-4, atol=1e-5)


@on_features
def test_alone_as_among_many(name: str) -> None:
    check_alone_as_among_many(maker(name))


@each_case
def test_deterministic_whatever_else_draws(name: str, inputs: str) -> None:
    check_deterministic(maker(name), inputs)


@each_case
def test_sees_no_label_early(name: str, inputs: str) -> None:
    check_sees_no_label_early(maker(name), inputs)


@each_case
def test_evaluations_change_nothing(name: str, inputs: str) -> None:
    check_evaluations_change_nothing(maker(name), inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "inputs"), [case for case in CASES if case[0] not in WAIT])
def test_any_device_without_waiting_for_it(name: str, inputs: str) -> None:
    check_any_device(maker(name), inputs)


def test_logistic_regression_looks_at_the_device_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "CONJUGATE_STEPS", 2 * logistic_regression.CHECK_EVERY)
    monkeypatch.setattr(logistic_regression, "HALVINGS", 2 * logistic_regression.CHECK_EVERY)
    steps = logistic_regression.CHECK_EVERY
    waited = waits_for_the_gpu(lambda: modules.LogisticRegression(newton_steps=steps), "features")
    fits = -(-SAMPLES // BATCH)
    assert len(waited) <= fits * (1 + steps * (2 + 2))
    assert set(waited) == {"aten._local_scalar_dense.default"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each_case
def test_as_on_the_processor(name: str, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    there = trace(maker(name), stream, labels, device="cuda")
    assert there.device.type == "cuda"
    torch.testing.assert_close(there.cpu(), trace(maker(name), stream, labels), rtol=1e-3, atol=1e-3)


@on_features
def test_inputs_with_and_without_an_axis_of_orderings(name: str) -> None:
    stream, labels = random_stream("features")
    method = feed(maker(name)(), stream, labels, BATCH, CLASSES)
    torch.testing.assert_close(method(stream[0].expand_as(stream)), method(stream[0]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted({*ON_FEATURES} - {*DEPENDS_ON_BATCHES}))
def test_batch_size_is_irrelevant(name: str) -> None:
    inputs, labels = random_samples(orderings=3, samples=20, features=15, classes=CLASSES)
    logits = [feed(maker(name)(), inputs, labels, batch, CLASSES)(inputs[0]) for batch in (1, 8)]
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", sorted({*ON_FEATURES} - {*MAY_PREDICT_ANY_CLASS}))
def test_class_without_a_sample_is_not_predicted(name: str) -> None:
    inputs, labels = torch.randn(2, 5, 4), torch.tensor([[0, 0, 2, 0, 2], [1, 1, 1, 1, 1]])
    logits = feed(maker(name)(), inputs, labels, classes=CLASSES)(torch.randn(40, 4))
    assert logits.isfinite().any(-1).all()
    assert 1 not in logits[0].argmax(-1)
    assert set(logits[1].argmax(-1).tolist()) == {1}


@each_case
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 0, 0], [0, 1, 2, 2, 1, 0]], ids=["classes missing", "contradictions"])
@pytest.mark.parametrize("scale", [0, 1], ids=["zeros", "duplicates"])
def test_poor_samples_leave_predictions(name: str, inputs: str, batch: int, labels: list[int], scale: int) -> None:
    stream, _ = random_stream(inputs)
    same = scale * stream[:, :1].expand(-1, len(labels), *stream.shape[2:])
    method = feed(maker(name)(), same, torch.tensor(labels).expand(len(stream), -1), batch, CLASSES)
    logits = method(stream[0])
    assert not logits.isnan().any()
    assert logits.isfinite().any(-1).all()


@pytest.mark.parametrize(
    ("name", "inputs"),
    [(name, other) for name in METHODS for other in ("features", "photos") if (name, other) not in CASES],
)
def test_other_inputs_are_refused(name: str, inputs: str) -> None:
    stream, _ = random_stream(inputs)
    with pytest.raises(UserError):
        begin(maker(name)(), make_start(stream, CLASSES))
