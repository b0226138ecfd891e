"""The key of a run: everything that determines its counts, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from headstart.modules.arithmetic import TENSOR_FLOAT_32
from headstart.modules.provenance import versions
from headstart.modules.running_code import SUITE
from headstart.store.json_digest import digest_of
from headstart.store.ledger_file import TraceKey


@dataclass(frozen=True)
class RunKey:
    """Everything that determines the traces of one method on one stream, or the result of one training.

    Equal keys give equal counts, so results are stored under the key's digest and reused. All values are JSON.

    Attributes:
        stream: What is fed: contents, split and order of the photos, seed, batch size, network with its weights,
            preprocessing, precision; and when and how predictions are counted.
        method: The method: its class, hyperparameters, declared files and variables, and the sample limit where it
            depends on that.
        code: Digest of the suite, and SHA-256 of the own modules that are loaded where they can touch the method.
        device: Kind of device.
        threads: Threads of torch, by which sums are rounded.
        versions: Versions of the packages that can touch a count.
    """

    stream: Mapping[str, Any]
    method: Mapping[str, Any]
    code: Mapping[str, str]
    device: str
    threads: int = field(default_factory=torch.get_num_threads)
    versions: Mapping[str, str] = field(default_factory=versions)

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return the key in two halves, as results.json, the dashboard and the ledger show it.

        Returns:
            `stream`, which methods must share to be compared, and `method`.
        """
        place = {"device": self.device, "threads": self.threads, "tensor_float_32": TENSOR_FLOAT_32}
        return {
            "stream": {**self.stream, **place, **self.versions, SUITE: self.code[SUITE]},
            "method": {**self.method, "code": dict(self.code)},
        }

    def digest(self) -> str:
        """Return the digest that names what the key determines."""
        return digest_of(self.describe())

    def trace(self, ordering: int) -> TraceKey:
        """Return the name of a trace: the digests of both halves, and the ordering.

        Args:
            ordering: Number of the ordering.
        """
        halves = self.describe()
        return TraceKey(digest_of(halves["stream"]), digest_of(halves["method"]), ordering)
