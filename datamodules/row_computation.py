"""How missing rows are computed: a frozen network run on decoded pictures in equal passes."""

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.datamodules.activation_rows import notes_of, pack
from headstart.datamodules.decoding import Fault, batch_size, decode_chunks
from headstart.datamodules.extraction_progress import DECODING, NETWORK, WRITING, Report, Step
from headstart.datamodules.photos.near_duplicates import thumbnails
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_policy import CHUNK, Policy, Precision, Resources, device_kind, pass_size
from headstart.modules.arithmetic import deterministic
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.build import build
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors
from headstart.modules.networks.taps import Tap
from headstart.modules.networks.weights import weights_digest
from headstart.output.errors import UserError
from headstart.output.processors import count_processors

SEED = 0


def best_precision(device: torch.device) -> Precision:
    """Return the precision in which a device runs a frozen backbone fastest.

    Args:
        device: Where the backbone runs.

    Returns:
        bfloat16 on a GPU of NVIDIA's Ampere generation or newer and on a processor with matrix instructions for it
        (AMX). Elsewhere float32, because bfloat16 is emulated and slower there.
    """
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.get_device_capability(device) >= (8, 0) else "float32"
    return "bfloat16" if device.type == "cpu" and torch.cpu.get_capabilities().get("amx_bf16") else "float32"


@dataclass(frozen=True)
class FrozenNetwork:
    """A network that turns prepared pictures into rows.

    Attributes:
        name: Its name, for messages.
        network: From uint8 `[pictures, 3, crop, crop]` to `[pictures, columns]`, in evaluation mode; or to activations
            at a freeze boundary, `[pictures, ...]`.
        device: Its device.
        widths: Columns of each part of a row, which are concatenated; None for activations.
        weights: SHA-256 of its weights as they were loaded.
    """

    name: str
    network: nn.Module
    device: torch.device
    widths: list[int] | None
    weights: str


def load(spec: NetworkSpec, taps: Sequence[Tap], policy: Policy, boundary: str = "") -> FrozenNetwork:
    """Load a network for embeddings at its layers, for inputs of its classifier, or for activations at a boundary.

    Args:
        spec: The network, with its preprocessing.
        taps: Layers of the embeddings; none for the inputs of its classifier.
        policy: Where it runs, and without taps whether its batch norm is folded.
        boundary: Module before which the network ends, for the activations that enter it.

    Returns:
        The network.

    Raises:
        UserError: The device cannot be used, or the network cannot be built or run. Or a layer does not fit, or the
            weights differ each time the network is built.
    """
    device = require_device(policy)
    if taps:
        with prefix_model_errors(spec.name):
            network, preprocessing = build(spec)
        assert preprocessing is not None
        layers = LayerEmbedding(spec.name, network, taps, preprocessing, spec.forward_args).to(device)
        return FrozenNetwork(spec.name, layers, layers.device, layers.widths, weights_digest(network))

    with prefix_model_errors(spec.name):
        backbone = build_backbone(spec).to(device)
        digest = backbone.digest()
        if spec.loaded not in {None, digest}:
            raise UserError("its weights differ each time it is built; sample them from torch's own generator")
    widths = None if boundary else [backbone.width]
    part = cut(backbone, boundary).stem if boundary else backbone
    return FrozenNetwork(spec.name, part.folded() if policy.folded else part, backbone.device, widths, digest)


def require_device(policy: Policy) -> torch.device:
    """Return the device on which a network runs.

    Args:
        policy: The policy with the device.

    Raises:
        UserError: torch cannot use it.
    """
    device = device_kind("auto") if policy.device == "auto" else policy.device
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # each kind of device has its own
        raise UserError(f"device: torch cannot use {device} on this machine; choose another") from error


@dataclass
class ComputedRows:
    """Rows that a frozen network computes of pictures, or without a network the prepared pictures, uint8.

    Decoding runs in processes of its own: ahead of a network on a GPU, between the passes of one on the processor.
        Every pass through the network has the same number of pictures and the same random numbers. The last one is
        filled up with black pictures. A row thus does not depend on the pictures that it is computed with.

    Attributes:
        pictures: The pictures.
        indices: Which of them, in order.
        preprocessing: How they are prepared.
        policy: Settings that change the rows.
        resources: Decoding processes.
        frozen: The network.
        report: Receives the progress, after every chunk.
        size: Pictures of a pass.
        notes: Values that all rows share: `weights` and `widths` of a network, JSON values.
        remarks: Why a picture is unreadable and its row that of a black one, by position among the rows.
    """

    pictures: Pictures
    indices: Sequence[int]
    preprocessing: Preprocessing
    policy: Policy
    resources: Resources
    frozen: FrozenNetwork | None = None
    report: Report = lambda _: None
    size: int = field(default=1, init=False)
    notes: dict[str, Any] = field(default_factory=dict, init=False)
    remarks: dict[int, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Set what follows from the network."""
        if self.frozen is not None:
            widths = {"widths": self.frozen.widths} if self.frozen.widths else {}
            self.notes = {"weights": self.frozen.weights, **widths}
            self.size = pass_size(self.preprocessing.crop, self.frozen.device.type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indices)

    @property
    def on_processor(self) -> bool:
        """Whether a network runs on the processor, all of which it uses."""
        return self.frozen is not None and self.frozen.device.type == "cpu"

    @property
    def workers(self) -> int:
        """Processes that decode."""
        if self.resources.workers is not None:
            return self.resources.workers
        count = count_processors()
        # One process would only take turns with this one.
        return 0 if count == 1 and (self.frozen is None or self.on_processor) else count

    @property
    def chunk(self) -> int:
        """Rows of a chunk: whole passes, and a batch for every process where the network waits for all of them."""
        rows = max(CHUNK, self.workers * batch_size(self.preprocessing.crop)) if self.on_processor else CHUNK
        return self.size * math.ceil(rows / self.size)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Compute the rows in chunks, with deterministic arithmetic and without TensorFloat-32."""
        done = unreadable = 0
        seconds = {DECODING: 0.0, NETWORK: 0.0, WRITING: 0.0}
        clock = time.perf_counter()

        def passed() -> float:
            nonlocal clock
            before, clock = clock, time.perf_counter()
            return clock - before

        # A GPU computes a chunk while the next one is decoded and copied to it.
        ahead = 1 if self.frozen is not None and self.frozen.device.type == "cuda" else 0
        started = deque[tuple[Tensor, Tensor | None]]()
        # A custom network's module may have changed these settings when it was imported.
        with deterministic():
            for pixels in chain(self._decoded_chunks(), [None] * ahead):
                seconds[DECODING] += passed()
                if pixels is not None:
                    started.append((pixels, None) if self.frozen is None else self._start(self.frozen, pixels))
                    if len(started) <= ahead:
                        continue
                rows = self._finish(done, *started.popleft()).numpy()
                seconds[NETWORK] += passed()
                yield rows
                seconds[WRITING] += passed()
                done += len(rows)
                self.report(Step(len(rows), len(self.remarks) - unreadable, dict(seconds)))
                seconds, unreadable = dict.fromkeys(seconds, 0.0), len(self.remarks)

    def _decoded_chunks(self) -> Iterator[Tensor]:
        """Decode the pictures in chunks of equal size, except for the last."""
        chunks = decode_chunks(
            self.pictures,
            self.indices,
            self.preprocessing,
            self.workers,
            torch.device("cpu") if self.frozen is None else self.frozen.device,
            self.chunk,
            ahead=not self.on_processor,
        )
        for pixels, faults in chunks:
            for position, fault in faults.items():
                self._remark(position, fault)
            yield pixels

    def _remark(self, position: int, fault: Fault) -> None:
        if self.policy.unreadable == "refuse":
            raise UserError(f"{self._name(position)} cannot be decoded: {fault.reason}".replace("\n", " "))
        if not fault.lasting:
            raise UserError(f"{self._name(position)} cannot be read at the moment ({fault.reason}); try again")
        self.remarks[position] = fault.reason

    def _name(self, position: int) -> str:
        return f"{self.pictures.kind} {self.pictures.names[self.indices[position]]!r}"

    @torch.inference_mode()
    def _start(self, frozen: FrozenNetwork, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Start to compute the rows of one chunk, and which are finite; a GPU has not finished when this returns."""
        batch = f"a pass of {self.size} pictures of {pixels.shape[-1]} x {pixels.shape[-1]} pixels"
        with (
            explain_memory_errors(f"model {frozen.name!r}: {batch}", "take a smaller crop or a smaller network"),
            torch.autocast(frozen.device.type, torch.bfloat16, enabled=self.policy.precision == "bfloat16"),
            torch.random.fork_rng([frozen.device] if frozen.device.type == "cuda" else []),
        ):
            rows = torch.cat([self._pass(frozen, part) for part in pixels.split(self.size)])

        finite = rows.isfinite().flatten(1).all(1)
        if frozen.widths is None:
            self.notes |= notes_of(rows)
            return pack(rows, thumbnails(pixels)), finite
        rows = rows.float()
        return torch.cat([rows, thumbnails(pixels)], 1) if self.policy.thumbnails else rows, finite

    def _finish(self, first: int, rows: Tensor, finite: Tensor | None) -> Tensor:
        """Return the rows of a chunk when they are computed; its first picture is at a position among all."""
        if self.frozen is not None and finite is not None and not finite.all():
            name = self._name(first + int(finite.logical_not().nonzero()[0]))
            raise UserError(f"model {self.frozen.name!r} returns NaN or infinite embeddings, first for {name}")
        return rows.cpu()

    def _pass(self, frozen: FrozenNetwork, pixels: Tensor) -> Tensor:
        count = len(pixels)
        if count < self.size:
            black = pixels.new_zeros(self.size - count, *pixels.shape[1:])
            pixels = torch.cat([pixels, black])
        # torch.manual_seed notes, for GPUs that are not in use yet, who called it, which takes 0.2 ms.
        (torch.default_generator if frozen.device.type == "cpu" else torch).manual_seed(SEED)
        rows: Tensor = frozen.network(pixels)
        return rows[:count]
