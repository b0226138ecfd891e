"""The global generators of Python, NumPy and torch, one state of them for every method."""

from __future__ import annotations

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
        self._python = random.Random(seed).getstate()
        self._numpy: np.random.BitGenerator = np.random.MT19937(seed)
        self._torch = torch.Generator().manual_seed(seed).get_state()
        self._accelerator = None
        if self.device.type == "cuda":
            self._accelerator = torch.Generator(self.device).manual_seed(seed).get_state()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Continue the global generators from this state within, and leave them as they were before."""
        others = self._exchange((self._python, self._numpy, self._torch, self._accelerator))
        try:
            yield
        finally:
            self._python, self._numpy, self._torch, self._accelerator = self._exchange(others)

    def fingerprint(self) -> str:
        """Return a digest of the state, which stays the same as long as nothing is sampled."""
        numpy = self._numpy.state["state"]
        states = self._python, numpy["key"].tobytes(), numpy["pos"], self._torch.numpy().tobytes()
        accelerator = b"" if self._accelerator is None else self._accelerator.numpy().tobytes()
        return hashlib.sha256(repr((*states, accelerator)).encode()).hexdigest()

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
