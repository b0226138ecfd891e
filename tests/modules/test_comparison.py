"""Every method of a comparison starts from the same and sees the same."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.modules.arithmetic import settle_arithmetic
from headstart.modules.comparison import Comparison
from headstart.modules.method import Method, Start
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.output.errors import UserError


def set_up(comparison: Comparison, start: Start) -> None:
    stream = SimpleNamespace(start=lambda: start, feed=lambda numbers, seen: None, orderings=start.numbers, held=dict)
    comparison.trainer = SimpleNamespace(datamodule=stream)  # type: ignore[assignment]
    comparison.setup("fit")


@pytest.mark.parametrize("trainable", [False, True])
def test_all_methods_start_from_equal_but_separate_copies(trainable: bool) -> None:
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(12, 6)) if trainable else None
    comparison = Comparison(GradientDescent(), {"a": GradientDescent(), "b": GradientDescent()})
    set_up(comparison, Start(6, 3, range(2), max_samples=9, seed=0, backbone=backbone))
    states = [method.state_dict(keep_vars=True) for method in comparison]
    assert len(states) == 3
    for name, value in states[0].items():
        for other in states[1:]:
            assert torch.equal(other[name], value)
            assert other[name].data_ptr() != value.data_ptr()
    if backbone is not None:
        assert {"backbone.1.weight", "backbone.1.bias"} < set(states[0])
        own = {parameter.data_ptr() for parameter in backbone.parameters()}
        assert not own & {value.data_ptr() for state in states for value in state.values()}


def test_name_of_the_baseline_is_taken() -> None:
    with pytest.raises(UserError, match="the name 'baseline' is the baseline's own"):
        Comparison(GradientDescent(), {"baseline": GradientDescent()})


@pytest.mark.parametrize("custom", [None, {}, {"z": GradientDescent(), "a": GradientDescent()}])
def test_names_in_the_order_given(custom: dict[str, Method] | None) -> None:
    assert Comparison(GradientDescent(), custom).names == ["baseline", *(custom or {})]


class Constant(Method):
    """Predicts one class per ordering, and keeps what it is fed.

    Args:
        predictions: The class of every ordering.
    """

    def __init__(self, predictions: list[int]) -> None:
        super().__init__()
        self.predictions = predictions
        self.fed: list[tuple[Tensor, Tensor]] = []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.fed.append((inputs, labels))

    def forward(self, inputs: Tensor) -> Tensor:
        one_hot = torch.eye(3)[self.predictions]
        return one_hot[:, None].expand(-1, len(inputs), -1)


def test_batches_are_fed_to_all_and_counted() -> None:
    methods = Constant([0, 1]), Constant([2, 2])
    comparison = Comparison(methods[0], {"other": methods[1]})
    set_up(comparison, Start(4, 3, range(2), max_samples=9, seed=0))
    for size in (4, 4, 1):
        comparison.training_step((torch.randn(2, size, 4), *torch.zeros(2, 2, size, dtype=torch.int64)), 0)
    assert comparison.samples_seen == 9
    assert [len(method.fed) for method in methods] == [3, 3]
    assert all(
        torch.equal(ours, theirs) and ours.data_ptr() != theirs.data_ptr()
        for a, b in zip(methods[0].fed, methods[1].fed, strict=True)
        for ours, theirs in zip(a, b, strict=True)
    )


def test_correct_predictions_are_counted_afresh_at_every_evaluation() -> None:
    comparison = Comparison(Constant([0, 1]), {"other": Constant([2, 0])})
    set_up(comparison, Start(4, 3, range(2), max_samples=9, seed=0))
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 0])
    for _ in range(2):
        comparison.on_validation_epoch_start()
        for part in labels.split(3):
            comparison.validation_step([(torch.zeros(len(part), 4), part)], 0)
        assert comparison.counts.tolist() == [[[2, 2], [3, 2]], [[0, 0], [0, 0]]]


def test_a_correct_prediction_counts_what_its_class_weighs() -> None:
    comparison = Comparison(Constant([0, 1]), {"other": Constant([2, 0])})
    set_up(comparison, Start(4, 3, range(2), max_samples=9, seed=0))
    comparison.weigh(np.array([10, 20, 50]))
    comparison.on_validation_epoch_start()
    for part in torch.tensor([0, 1, 1, 2, 2, 2, 0]).split(3):
        comparison.validation_step([(torch.zeros(len(part), 4), part)], 0)
    now = comparison.snapshot()
    assert now.correct.tolist() == [[20, 40], [150, 20]]
    assert now.samples_validated == 7
    assert not now.not_finite.any()


@pytest.mark.parametrize(
    ("features", "classes", "max_samples"),
    [(1280, 2, 500), (2048, 1000, 500), (512, 10, 5000), (200_000, 1000, 50_000)],
)
@pytest.mark.parametrize("methods", [2, 9])
def test_as_many_orderings_at_once_as_the_states_of_methods_fit(
    features: int, classes: int, max_samples: int, methods: int
) -> None:
    start = Start(features, classes, range(1), max_samples, seed=0)
    orderings = Comparison(Constant([0])).orderings_at_once(start, methods)
    # Adam holds four heads; recursive least squares a row of features per sample, or a matrix of features by features.
    held = 4 * (4 * features * classes + min(max_samples, features) * features)
    assert orderings == 1 or orderings * methods * held <= 4 * 2**30
    assert orderings >= (100 if features == 1280 else 1)


def test_optimisers_of_all_methods_are_known() -> None:
    comparison = Comparison(GradientDescent(), {"closed": Constant([0]), "other": GradientDescent()})
    set_up(comparison, Start(4, 3, range(1), max_samples=9, seed=0))
    assert len(comparison.configure_optimizers()) == 2


def compared(method: Method, orderings: int = 2) -> Comparison:
    comparison = Comparison(Constant([0] * orderings), {"mine": method})
    set_up(comparison, Start(4, 3, range(orderings), max_samples=9, seed=0))
    comparison.on_validation_epoch_start()
    return comparison


@pytest.mark.parametrize("hook", ["training_step", "configure_optimizers", "on_train_batch_end", "on_fit_start"])
def test_a_method_that_defines_what_is_never_called_is_refused(hook: str) -> None:
    method = type("Mine", (GradientDescent,), {hook: lambda self, *_: None})()
    with pytest.raises(UserError, match=rf"^model\.methods\.mine: Mine defines {hook}, which is never called"):
        Comparison(GradientDescent(), {"mine": method})


def test_logged_values_are_means_over_orderings() -> None:
    class Talks(Constant):
        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.log("loss", torch.tensor([1.0, 4.0]), prog_bar=True)
            self.log_dict({"steps": 3})

    comparison = compared(Talks([0, 0]))
    comparison.training_step((torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64)), 0)
    assert comparison.logged() == {"mine/loss": 2.5, "mine/steps": 3}


class Logits(Constant):
    """Gives logits as they are."""

    def __init__(self, logits: object) -> None:
        super().__init__([])
        self.logits = logits

    def forward(self, inputs: Tensor) -> Any:
        return self.logits


@pytest.mark.parametrize(
    "logits",
    [torch.zeros(5, 3), torch.zeros(2, 1, 3), torch.zeros(1, 5, 3), torch.zeros(2, 5, 4), torch.zeros(2, 5), None],
)
def test_logits_of_another_shape_are_refused_by_the_methods_name(logits: object) -> None:
    with pytest.raises(UserError, match=r"^model\.methods\.mine: gives .*here \[2, 5, 3\]"):
        compared(Logits(logits)).validation_step([(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64))], 0)


def test_predictions_that_are_not_finite_are_counted_and_but_for_plus_infinity_wrong() -> None:
    inf, nan = torch.inf, torch.nan
    rows = [[0.0, -inf, -inf], [nan, nan, nan], [1.0, nan, 0.0], [inf, 0.0, 0.0], [-inf, -inf, -inf], [2.0, 1.0, 0.0]]
    comparison = compared(Logits(torch.tensor([rows, [[1.0, 0.0, 0.0]] * 6])))
    comparison.validation_step([(torch.zeros(6, 4), torch.zeros(6, dtype=torch.int64))], 0)
    correct, not_finite = comparison.counts[:, 1]
    assert correct.tolist() == [3, 6]
    assert not_finite.tolist() == [4, 0]


class Spoils(Constant):
    """Changes a tensor that it shares with others.

    Args:
        change: Changes inputs and labels in place.
        learning: While it learns, else while it predicts.
    """

    def __init__(self, change: Callable[[Tensor, Tensor], object], learning: bool) -> None:
        super().__init__([0, 0])
        self.change, self.learning = change, learning

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        if self.learning:
            self.change(inputs, labels)

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.learning:
            self.change(inputs, inputs)
        return super().forward(inputs)


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs, labels: inputs.zero_(),
        lambda inputs, labels: inputs[..., 0].add_(1),
        lambda inputs, labels: torch.nn.functional.relu(inputs.view(-1), inplace=True),
        lambda inputs, labels: torch.add(inputs, 1, out=inputs),
        lambda inputs, labels: labels.__setitem__(slice(None), 1),
    ],
)
@pytest.mark.parametrize("learning", [True, False])
def test_a_method_that_changes_what_others_see_is_named(change: Callable[..., object], learning: bool) -> None:
    comparison = compared(Spoils(change, learning))
    step: Callable[..., None] = comparison.training_step if learning else comparison.validation_step
    inputs, labels = torch.ones(2, 1, 4), torch.zeros(2, 1, dtype=torch.int64)
    batch = (inputs, labels, torch.zeros_like(labels)) if learning else [(inputs[0], labels[0])]
    with torch.inference_mode(not learning), pytest.raises(UserError, match=r"^model\.methods\.mine: changes its inp"):
        step(batch, 0)


class Rounds(Constant):
    """Asks for products in bfloat16 whenever it is called."""

    def begin(self, start: Start) -> None:
        torch.set_float32_matmul_precision("medium")
        super().begin(start)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        torch.set_float32_matmul_precision("medium")

    def forward(self, inputs: Tensor) -> Tensor:
        torch.set_float32_matmul_precision("medium")
        return super().forward(inputs)


class Notes(Constant):
    """Notes in what precision products of float32 are when it is called."""

    def begin(self, start: Start) -> None:
        self.noted = [torch.get_float32_matmul_precision()]
        super().begin(start)

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self.noted.append(torch.get_float32_matmul_precision())

    def forward(self, inputs: Tensor) -> Tensor:
        self.noted.append(torch.get_float32_matmul_precision())
        return super().forward(inputs)


def test_no_method_decides_on_the_arithmetic_of_another() -> None:
    notes = Notes([0, 0])
    comparison = Comparison(Rounds([0, 0]), {"notes": notes})
    set_up(comparison, Start(4, 3, range(2), max_samples=9, seed=0))
    comparison.training_step((torch.randn(2, 1, 4), torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1)), 0)
    comparison.on_validation_epoch_start()
    comparison.validation_step([(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))], 0)
    settle_arithmetic()
    assert notes.noted == ["highest"] * 3


class Takes(Constant):
    """Changes something behind torch's back, while it does something.

    Args:
        doing: The function in which it does.
        change: Given the method and what the function is given.
    """

    def __init__(self, doing: str, change: Callable[[Method, Any], object]) -> None:
        super().__init__([0, 0])
        self.doing, self.change = doing, change

    def begin(self, start: Start) -> None:
        super().begin(start)
        self._do("begin", start)

    def build_optimizers(self) -> list[torch.optim.Optimizer]:
        self._do("build_optimizers", None)
        return []

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        self._do("adapt", inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        self._do("forward", inputs)
        return super().forward(inputs)

    def _do(self, doing: str, argument: Any) -> None:
        if doing == self.doing:
            self.change(self, argument)


def _start() -> Start:
    torch.manual_seed(0)
    backbone = nn.Linear(4, 4)
    head, bias = torch.randn(5, 4), torch.randn(5)
    start = Start(4, 3, range(2), max_samples=9, seed=0, samples=torch.randn(6, 4), backbone=backbone)
    return replace(start, source_head=head, source_bias=bias)


@pytest.mark.parametrize(
    ("doing", "change", "what"),
    [
        ("begin", lambda mine, start: start.samples.zero_(), "start.samples"),
        ("begin", lambda mine, start: start.samples.data.div_(2), "start.samples"),
        ("begin", lambda mine, start: start.source_head.numpy().fill(1), "start.source_head"),
        ("begin", lambda mine, start: start.source_bias.neg_(), "start.source_bias"),
        ("begin", lambda mine, start: start.backbone.weight.data.neg_(), "start.backbone"),
        ("build_optimizers", lambda mine, _: mine.start.samples.mul_(2), "start.samples"),
        ("adapt", lambda mine, inputs: mine.start.samples.data.copy_(mine.start.samples.flip(0)), "start.samples"),
        ("forward", lambda mine, inputs: inputs.data.zero_(), "the validation inputs"),
        ("forward", lambda mine, inputs: inputs.numpy().fill(0), "the validation inputs"),
        ("forward", lambda mine, _: mine.trainer.datamodule.held()["the validation labels"].data.neg_(), "labels"),
    ],
)
def test_changes_that_torch_does_not_know_of_are_found(
    doing: str, change: Callable[[Method, Any], object], what: str
) -> None:
    comparison = Comparison(Constant([0, 0]), {"mine": Takes(doing, change), "other": Constant([0, 0])})
    held = {"the validation inputs": torch.ones(5, 4), "the validation labels": torch.ones(5, dtype=torch.int64)}
    start = _start()
    stream = SimpleNamespace(start=lambda: start, feed=lambda *_: None, orderings=range(2), held=lambda: held)
    comparison.trainer = SimpleNamespace(datamodule=stream)  # type: ignore[assignment]

    def run() -> None:
        comparison.setup("fit")
        comparison.configure_optimizers()
        comparison.training_step((torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64)), 0)
        comparison.on_validation_epoch_start()
        with torch.inference_mode():
            comparison.validation_step([(held["the validation inputs"], held["the validation labels"])], 0)
        comparison.require_shared_unchanged()

    with pytest.raises(UserError, match=rf"^model\.methods\.mine: changes .*{what}.*, which all methods share"):
        run()


def test_a_late_change_is_found_without_its_name() -> None:
    start = _start()
    comparison = Comparison(Constant([0, 0]))
    set_up(comparison, start)
    comparison.require_shared_unchanged()
    assert start.samples is not None
    start.samples.numpy()[3, 1] += 1e-6
    with pytest.raises(UserError, match=r"^model: one of baseline changes start\.samples,"):
        comparison.require_shared_unchanged()


def test_nobody_sees_what_another_makes_of_its_batch() -> None:
    other = Constant([0, 0])
    comparison = Comparison(Takes("adapt", lambda mine, inputs: inputs.numpy().fill(7)), {"other": other})
    set_up(comparison, _start())
    batch = (torch.ones(2, 1, 4), *torch.zeros(2, 2, 1, dtype=torch.int64))
    comparison.training_step(batch, 0)
    assert torch.equal(other.fed[0][0], batch[0])
    assert torch.equal(batch[0], torch.ones(2, 1, 4))


def test_attributes_that_cannot_be_copied_stay_and_functions_are_the_same() -> None:
    class Keeps(Constant):
        def __init__(self) -> None:
            super().__init__([0, 0])
            self.lock, self.locks = threading.Lock(), [threading.Lock()]
            self.make = partial(torch.optim.SGD, lr=0.1)
            self.own = self.forward
            self.nested: dict[str, list[list[int]]] = {"a": [[]]}

        def begin(self, start: Start) -> None:
            super().begin(start)
            self.nested["a"][0].append(1)
            self.locks.append(self.locks[0])

    method = Keeps()
    lock, make = method.lock, method.make
    comparison = Comparison(method)
    for _ in range(2):
        set_up(comparison, _start())
        assert (method.lock, method.make, method.nested, len(method.locks)) == (lock, make, {"a": [[1]]}, 2)
        assert method.own == method.forward


class Rounded(Constant):
    """Notes whether products are rounded where it predicts."""

    def forward(self, inputs: Tensor) -> Tensor:
        self.noted = torch.is_autocast_enabled(inputs.device.type)
        return super().forward(inputs)


def test_the_precision_of_training_is_none_of_evaluations() -> None:
    method = Rounded([0, 0])
    comparison = Comparison(method)
    set_up(comparison, Start(4, 3, range(2), max_samples=9, seed=0))
    comparison.on_validation_epoch_start()
    with torch.autocast("cpu", torch.bfloat16):
        comparison.validation_step([(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))], 0)
    assert method.noted is False


@pytest.mark.parametrize(("value", "is_fine"), [(-torch.inf, True), (torch.inf, False), (torch.nan, False)])
def test_a_class_may_be_barred(value: float, is_fine: bool) -> None:
    class Bars(GradientDescent):
        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.bias.data[:, 2] = value

    start = Start(4, 3, range(1), max_samples=9, seed=0, backbone=nn.Sequential(nn.Flatten(), nn.Linear(12, 4)))
    comparison = Comparison(Bars())
    set_up(comparison, start)
    comparison.on_validation_epoch_start()
    comparison.training_step((torch.zeros(1, 1, 3, 2, 2), torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1)), 0)
    comparison.validation_step([(torch.zeros(5, 3, 2, 2), torch.zeros(5, dtype=torch.int64))], 0)
    with nullcontext() if is_fine else pytest.raises(UserError, match="turned NaN or infinite"):
        comparison.snapshot()


def test_a_network_that_diverges_is_named_wherever_the_method_keeps_it() -> None:
    class Elsewhere(GradientDescent):
        def begin(self, start: Start) -> None:
            super().begin(start)
            self.backbone, self.network = None, self.backbone

        def forward(self, inputs: Tensor) -> Tensor:
            return super().forward(torch.zeros(len(inputs), 4))

        def adapt(self, inputs: Tensor, labels: Tensor) -> None:
            self.weight.data.fill_(float("nan"))

    comparison = Comparison(Elsewhere())
    set_up(
        comparison, Start(4, 3, range(1), max_samples=9, seed=0, backbone=nn.Sequential(nn.Flatten(), nn.Linear(12, 4)))
    )
    comparison.on_validation_epoch_start()
    comparison.training_step((torch.zeros(1, 1, 3, 2, 2), torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1)), 0)
    comparison.validation_step([(torch.zeros(5, 3, 2, 2), torch.zeros(5, dtype=torch.int64))], 0)
    with pytest.raises(
        UserError, match=r"^model\.baseline: its loss turned NaN or infinite.* by 1 samples of ordering 0"
    ):
        comparison.snapshot()
