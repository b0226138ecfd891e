"""Every shipped method keeps the rules of methods."""

import pickle
import random
import re
from copy import deepcopy
from dataclasses import fields, replace
from importlib import import_module
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.catalogue import METHODS
from headstart.output.errors import UserError
from headstart.tests.material.root import ROOT, require_checkout
from headstart.tests.material.shipped_methods import CASES, ON_FEATURES, Make, maker
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_photos, random_samples

CLASSES, SAMPLES = 3, 20
BATCH = 3  # leaves a smaller last batch
FROM_INITIAL_HEAD = ("GradientDescent", "LinearProbeThenFineTune", "LoRA", "Replay")
MAY_PREDICT_ANY_CLASS = (*FROM_INITIAL_HEAD, "LearnedSemanticPrior", "SemanticClassMean")
DEPENDS_ON_BATCHES = (*FROM_INITIAL_HEAD, "CosineClassifier", "LearnedSemanticPrior")

on_features = pytest.mark.parametrize("name", ON_FEATURES)
each_case = pytest.mark.parametrize(("name", "inputs"), CASES)


def random_stream(inputs: str) -> tuple[Tensor, Tensor]:
    return random_photos(SAMPLES, CLASSES) if inputs == "photos" else random_samples(4, SAMPLES, 12, CLASSES)


def trace(make: Make, inputs: Tensor, labels: Tensor, device: str = "cpu", evaluations: int = 1) -> Tensor:
    """Return the logits at the start and after every batch, `[evaluations, orderings, samples, classes]`."""
    method = make()
    inputs, labels = inputs.to(device), labels.to(device)
    method.begin(replace(make_start(inputs, CLASSES), device=device))
    method.to(device).build_optimizers()
    logits = [method(inputs[0]).detach()]
    for part in batches(inputs, labels, BATCH):
        adapt(method, part)
        logits.append([method(inputs[0]).detach() for _ in range(evaluations)][-1])
    return torch.stack(logits)


def snapshot(start: MethodStart) -> list[Any]:
    values = [getattr(start, field.name) for field in fields(start)]
    states = [list(value.state_dict().values()) for value in values if isinstance(value, nn.Module)]
    return deepcopy([*states, *(value for value in values if isinstance(value, Tensor))])


def test_the_catalogue_has_all_methods_as_docs_do() -> None:
    paths = [f"headstart.modules.methods.{file.stem}" for file in (ROOT / "modules" / "methods").glob("*.py")]
    classes = {value for module in paths for value in vars(import_module(module)).values() if isinstance(value, type)}
    methods = {value.__name__: value.__module__ for value in classes if issubclass(value, Method)}
    methods = {name: module for name, module in methods.items() if module in paths and name != "FineTuning"}
    assert methods == {name: method.module for name, method in METHODS.items()}
    require_checkout()
    rows = re.findall(r"^\| ([^|]+) \| `(\w+)` \|", (ROOT / "docs" / "methods.md").read_text(), re.MULTILINE)
    assert rows == [(method.title, name) for name, method in METHODS.items()]


@each_case
def test_starts_from_what_all_start_from(name: str, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    start = make_start(stream, CLASSES)
    before = snapshot(start)
    method = begin(maker(name)(), start)
    for part in batches(stream, labels, BATCH):
        adapt(method, part)
    torch.testing.assert_close(snapshot(start), before, rtol=0, atol=0)


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
    inputs, labels = random_stream("features")
    many = trace(maker(name), inputs, labels)
    for ordering in (0, 2):
        method = begin(maker(name)(), make_start(inputs[ordering][None], CLASSES, ordering))
        for after, part in enumerate(batches(inputs[ordering][None], labels[ordering][None], BATCH), start=1):
            adapt(method, part)
            torch.testing.assert_close(method(inputs[0])[0], many[after, ordering], rtol=1e-3, atol=1e-4)


@each_case
def test_deterministic_whatever_else_draws(name: str, inputs: str) -> None:
    traces = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = pickle.dumps((random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()))
        traces.append(trace(maker(name), *random_stream(inputs)))
        after = pickle.dumps((random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()))
        assert after == before, "drew from a generator that all share"
    assert torch.equal(*traces)


@each_case
def test_sees_no_label_early(name: str, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    logits = trace(maker(name), stream, labels)
    for evaluation, seen in enumerate(range(0, SAMPLES, BATCH)):
        other, other_labels = stream.clone(), labels.clone()
        other[:, seen:] *= -1
        other_labels[:, seen:] = (other_labels[:, seen:] + 1) % CLASSES
        method = begin(maker(name)(), make_start(stream, CLASSES))
        for part in islice(batches(other, other_labels, BATCH), evaluation):
            adapt(method, part)
        assert torch.equal(method(stream[0]), logits[evaluation])


@each_case
def test_evaluations_change_nothing(name: str, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    assert torch.equal(trace(maker(name), stream, labels), trace(maker(name), stream, labels, evaluations=3))
    never = feed(maker(name)(), stream, labels, BATCH, CLASSES)
    assert torch.equal(trace(maker(name), stream, labels)[-1], never(stream[0]))


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
def test_zeros_repeated_samples_and_contradictions_leave_predictions(name: str, inputs: str) -> None:
    stream, _ = random_stream(inputs)
    for batch, labels, scale in product((1, 4), ([0, 0, 0, 0, 0, 0], [0, 1, 2, 2, 1, 0]), (0, 1)):
        same = scale * stream[:, :1].expand(-1, len(labels), *stream.shape[2:])
        logits = feed(maker(name)(), same, torch.tensor(labels).expand(len(stream), -1), batch, CLASSES)(stream[0])
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
