"""Checks of the rules that every method keeps."""

import pickle
import random
from copy import deepcopy
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headstart.modules.method import MethodStart
from headstart.tests.material.absent_gpu import GPU, absent_gpu, to_gpu
from headstart.tests.material.shipped_methods import Make
from headstart.tests.material.streams import adapt, batches, begin, feed, make_start, random_photos, random_samples

CLASSES = 3
SAMPLES = 20
BATCH = 3  # leaves a smaller last batch


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


def check_alone_as_among_many(make: Make) -> None:
    inputs, labels = random_stream("features")
    many = trace(make, inputs, labels)
    for ordering in (0, 2):
        method = begin(make(), make_start(inputs[ordering][None], CLASSES, ordering))
        for after, part in enumerate(batches(inputs[ordering][None], labels[ordering][None], BATCH), start=1):
            adapt(method, part)
            torch.testing.assert_close(method(inputs[0])[0], many[after, ordering], rtol=1e-3, atol=1e-4)


def snapshot(start: MethodStart) -> list[Any]:
    values = [getattr(start, field.name) for field in fields(start)]
    states = [list(value.state_dict().values()) for value in values if isinstance(value, nn.Module)]
    return deepcopy([*states, *(value for value in values if isinstance(value, Tensor))])


def check_leaves_the_start_alone(make: Make, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    start = make_start(stream, CLASSES)
    before = snapshot(start)
    method = begin(make(), start)
    for part in batches(stream, labels, BATCH):
        adapt(method, part)
    torch.testing.assert_close(snapshot(start), before, rtol=0, atol=0)


def global_generators() -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()))


def check_deterministic(make: Make, inputs: str) -> None:
    traces = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = global_generators()
        traces.append(trace(make, *random_stream(inputs)))
        assert global_generators() == before, "drew from a generator that all share"
    assert torch.equal(*traces)


def check_sees_no_label_early(make: Make, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    logits = trace(make, stream, labels)
    for evaluation, seen in enumerate(range(0, SAMPLES, BATCH)):
        other, other_labels = stream.clone(), labels.clone()
        other[:, seen:] *= -1
        other_labels[:, seen:] = (other_labels[:, seen:] + 1) % CLASSES
        method = begin(make(), make_start(stream, CLASSES))
        for part in islice(batches(other, other_labels, BATCH), evaluation):
            adapt(method, part)
        assert torch.equal(method(stream[0]), logits[evaluation])


def check_evaluations_change_nothing(make: Make, inputs: str) -> None:
    stream, labels = random_stream(inputs)
    assert torch.equal(trace(make, stream, labels), trace(make, stream, labels, evaluations=3))
    never = feed(make(), stream, labels, BATCH, CLASSES)
    assert torch.equal(trace(make, stream, labels)[-1], never(stream[0]))


def waits_for_the_gpu(make: Make, inputs: str) -> list[str]:
    """Run on a GPU that is not there, where tensors of the processor are refused; give what is waited for."""
    stream, labels = random_stream(inputs)
    start = make_start(stream, CLASSES)
    with absent_gpu() as waits:
        if start.backbone is not None:
            to_gpu(start.backbone)
        tensors: dict[str, Any] = {
            name: value.to(GPU) for name, value in vars(start).items() if isinstance(value, Tensor)
        }
        method = make()
        method.begin(replace(start, device=GPU, **tensors))
        to_gpu(method)
        method.build_optimizers()
        elsewhere = stream.to(GPU), labels.to(GPU)
        waits.noted.clear()
        for part in batches(*elsewhere, BATCH):
            adapt(method, part)
            assert method(elsewhere[0][0]).device == GPU
    return waits.noted


def check_any_device(make: Make, inputs: str) -> None:
    waited = waits_for_the_gpu(make, inputs)
    assert not waited, f"waits for the GPU: {waited}"
