"""Every method of the suite agrees with its copy from a checkpoint, and does not notice the comparison."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from headstart import modules
from headstart.modules.counted import Counted
from headstart.modules.method import Method
from headstart.modules.resume_check import ResumeCheck
from headstart.tests.material.shipped_methods import CASES, SETTINGS
from headstart.tests.material.streams import adapt, batches
from headstart.tests.modules.test_method_state import begin, draw


def evaluate(method: Method, inputs: Tensor) -> Counted:
    counted = Counted(torch.zeros(2, 1, dtype=torch.int64), [])
    with torch.inference_mode():
        counted.add(method(inputs), torch.zeros(len(inputs), dtype=torch.int64), None)
    return counted


@pytest.mark.parametrize(("name", "inputs"), CASES)
def test_methods_of_the_suite_agree_with_their_copies(name: str, inputs: str) -> None:
    make: Callable[[], Method] = partial(getattr(modules, name), **SETTINGS.get(name, {}))
    samples, labels = draw(inputs)
    validation = draw(inputs)[0][0, :9]
    undisturbed, _ = begin(make, samples)
    method, state = begin(make, samples)
    check, compared = ResumeCheck(state), 0

    for batch in batches(samples, labels, 2):
        check.begin_if_due()
        for each in (undisturbed, method):
            adapt(each, batch)
        check.repeat(partial(adapt, method, batch))
        compared += check.is_pending

        counted = evaluate(method, validation)
        check.count(partial(evaluate, method, validation), counted)
        assert check.problem == ""
        assert torch.equal(counted.predictions[0][0], evaluate(undisturbed, validation).predictions[0][0])
    assert compared == 4
    assert check.is_checked
