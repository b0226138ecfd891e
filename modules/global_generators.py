"""The global generators of Python, NumPy and torch, one state of them for every method."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class GlobalGenerators:
    """A state of the global generators: the random numbers of a method do not depend on what runs beside it.

    Args:
        seed: Seed of all of them.
        device: The device; where it is an accelerator, its generator is one of them.
    """

    def __init__(self, seed: int, device: torch.device | str) -> None:
        self.device = torch.device(device)
        accelerator = None
        if self.device.type == "cuda":
            accelerator = torch.Generator(self.device).manual_seed(seed).get_state()
        cpu = torch.Generator().manual_seed(seed).get_state()
        self._states: tuple[Any, ...] = random.Random(seed).getstate(), np.random.MT19937(seed), cpu, accelerator

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Continue the global generators from this state within, and leave them as they were before."""
        others = self._exchange(self._states)
        try:
            yield
        finally:
            self._states = self._exchange(others)

    def fingerprint(self) -> str:
        """Return a digest of the state, which stays the same as long as nothing is sampled."""
        python, numpy, *tensors = self._states
        words = numpy.state["state"]
        values = [b"" if tensor is None else tensor.numpy().tobytes() for tensor in tensors]
        states = python, words["key"].tobytes(), words["pos"], *values
        return hashlib.sha256(repr(states).encode()).hexdigest()

    def _exchange(self, states: tuple[Any, ...]) -> tuple[Any, ...]:
        """Set the states of the generators, and return those that they had."""
        python, numpy, cpu, accelerator = states
        before = random.getstate(), np.random.get_bit_generator(), torch.get_rng_state()  # type: ignore[attr-defined]
        random.setstate(python)
        np.random.set_bit_generator(numpy)  # type: ignore[attr-defined]
        torch.set_rng_state(cpu)
        if accelerator is None:
            return *before, None

        other = torch.cuda.get_rng_state(self.device)
        torch.cuda.set_rng_state(accelerator, self.device)
        return *before, other
