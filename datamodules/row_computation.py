"""How missing rows are computed: a frozen network run on decoded pictures in equal passes."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.datamodules.decoding import BATCH_PIXELS, Decoder, Fault
from headstart.datamodules.row_request import NetworkSettings, Precision, RowRequest, pass_size
from headstart.modules.arithmetic import deterministic
from headstart.modules.memory_errors import explain_memory_errors
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.build import build
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.spec import prefix_model_errors
from headstart.modules.networks.weights import weights_digest
from headstart.output.errors import UserError
from headstart.output.processors import count_processors

# Rows that are computed at once, at least.
CHUNK = 64
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

    def notes(self, rows: Tensor) -> dict[str, Any]:
        """Return what all rows share, JSON values: of activations also their shape and type, which `unpack` needs."""
        if self.widths is not None:
            return {"weights": self.weights, "widths": self.widths}
        kind = str(rows.dtype).removeprefix("torch.")
        return {"weights": self.weights, "shape": list(rows.shape[1:]), "dtype": kind}


def load(request: RowRequest) -> FrozenNetwork | None:
    """Load the network of a request: for embeddings at its layers, inputs of its classifier, or activations.

    Args:
        request: The rows.

    Returns:
        The network; None for prepared pictures, which need none.

    Raises:
        UserError: The device cannot be used, or the network cannot be built or run. Or a layer does not fit, or the
            weights differ each time the network is built.
    """
    spec, settings = request.network, request.settings
    if spec is None:
        return None
    device = require_device(settings)
    if request.taps:
        with prefix_model_errors(spec.name):
            network, preprocessing = build(spec)
        layers = LayerEmbedding(spec.name, network, request.taps, preprocessing, spec.forward_args).to(device)
        return FrozenNetwork(spec.name, layers, layers.device, layers.widths, weights_digest(network))

    with prefix_model_errors(spec.name):
        backbone = build_backbone(spec).to(device)
        digest = backbone.digest()
        if spec.loaded_sha256 not in {None, digest}:
            raise UserError("its weights differ each time it is built; sample them from torch's own generator")
    widths = None if request.boundary else [backbone.width]
    part = cut(backbone, request.boundary).stem if request.boundary else backbone
    return FrozenNetwork(spec.name, part.folded() if settings.folded else part, backbone.device, widths, digest)


def require_device(settings: NetworkSettings) -> torch.device:
    """Return the device on which a network runs.

    Args:
        settings: The settings, of which the device is used.

    Raises:
        UserError: torch cannot use it.
    """
    device = settings.kind if settings.device == "auto" else settings.device
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # each kind of device has its own
        raise UserError(f"device: torch cannot use {device} on this machine; choose another") from error


class ComputedPart(NamedTuple):
    """Rows of some pictures.

    Attributes:
        rows: float32 or uint8, `[pictures, ...]`.
        notes: Values that all rows share: `weights` and `widths` of a network, JSON values.
        remarks: Why pictures are unreadable, by position.
    """

    rows: NDArray[Any]
    notes: dict[str, Any]
    remarks: dict[int, str]


# Receives the number of pictures whose rows are computed.
Report = Callable[[int], None]


class RowComputer:
    """Computes rows of pictures by a frozen network, or without one the prepared pictures, uint8.

    Decoding runs in processes of its own: ahead of a network on a GPU, between the passes of one on the processor.
        Every pass through the network has the same number of pictures and the same random numbers. The last one is
        filled up with black pictures. A row thus does not depend on the pictures that it is computed with.

    Args:
        request: The rows.
        workers: Processes that decode; None for one per processor that this process may use.
        frozen: The network.
    """

    def __init__(self, request: RowRequest, workers: int | None = None, frozen: FrozenNetwork | None = None) -> None:
        self.pictures, self.precision, self.frozen = request.pictures, request.settings.precision, frozen
        self.side = request.preprocessing.crop
        self.device = torch.device("cpu") if frozen is None else frozen.device
        self.size = 1 if frozen is None else pass_size(self.side, self.device.type)
        on_processor = frozen is not None and frozen.device.type == "cpu"
        if workers is None:
            count = count_processors()
            # One process would only take turns with this one.
            workers = 0 if count == 1 and self.device.type == "cpu" else count

        # Whole passes, and a batch for every process where the network waits for all of them.
        rows = max(CHUNK, workers * max(1, BATCH_PIXELS // self.side**2)) if on_processor else CHUNK
        chunk = self.size * math.ceil(rows / self.size)
        self._decoder = Decoder(self.pictures, request.preprocessing, workers, chunk, ahead=not on_processor)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, for which a network runs on a black picture."""
        if self.frozen is None:
            return 3 * self.side**2
        black = torch.zeros(1, 3, self.side, self.side, dtype=torch.uint8, device=self.device)
        with deterministic():
            row, _ = self._start(self.frozen, black)
        return row.nbytes

    def compute(self, indices: Sequence[int], report: Report = lambda count: None) -> ComputedPart:
        """Compute rows, with deterministic arithmetic and without TensorFloat-32.

        Args:
            indices: Indices of the pictures.
            report: Receives the progress, after every chunk.

        Raises:
            UserError: The network cannot run or gives a number that is not finite. Or a picture cannot be read at the
                moment.
        """
        rows, remarks, notes = list[Tensor](), dict[int, str](), dict[str, Any]()
        # A GPU computes a chunk while the next one is decoded and copied to it.
        started, decoded = deque[tuple[Tensor, Tensor | None]](), 0

        def finish() -> None:
            rows.append(self._finish(indices, sum(map(len, rows)), *started.popleft()))
            report(len(rows[-1]))

        # A custom network's module may have changed these settings when it was imported.
        with deterministic():
            for pixels, faults in self._decoder.decode(indices, self.device):
                for position, fault in faults.items():
                    remarks[decoded + position] = self._remark(indices[decoded + position], fault)
                decoded += len(pixels)
                if self.frozen is None:
                    # The decoder may use its memory again.
                    started.append((pixels.contiguous(), None))
                else:
                    computed, finite = self._start(self.frozen, pixels)
                    started.append((pack(computed) if self.frozen.widths is None else computed, finite))
                    notes = self.frozen.notes(computed)
                if len(started) > (self.device.type == "cuda"):
                    finish()
            while started:
                finish()
        return ComputedPart(torch.cat(rows).numpy(), notes, remarks)

    def _remark(self, index: int, fault: Fault) -> str:
        if not fault.lasting:
            # A reason may end in a remedy of its own.
            reason, _, remedy = fault.reason.partition("; ")
            raise UserError(f"{self._name(index)} cannot be read at the moment ({reason}); {remedy or 'try again'}")
        return fault.reason

    def _name(self, index: int) -> str:
        return f"{self.pictures.kind} {self.pictures.names[index]!r}"

    @torch.inference_mode()
    def _start(self, frozen: FrozenNetwork, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Start to compute the rows of one chunk, and which are finite; a GPU has not finished when this returns."""
        batch = f"a pass of {self.size} pictures of {pixels.shape[-1]} x {pixels.shape[-1]} pixels"
        with (
            explain_memory_errors(f"model {frozen.name!r}: {batch}", "take a smaller crop or a smaller network"),
            torch.autocast(frozen.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"),
            torch.random.fork_rng([frozen.device] if frozen.device.type == "cuda" else []),
        ):
            rows = torch.cat([self._pass(frozen, part) for part in pixels.split(self.size)])
        finite = rows.isfinite().flatten(1).all(1)
        return rows if frozen.widths is None else rows.float(), finite

    def _finish(self, indices: Sequence[int], first: int, rows: Tensor, finite: Tensor | None) -> Tensor:
        """Return the rows of a chunk when they are computed; its first picture is at a position among all."""
        if self.frozen is not None and finite is not None and not finite.all():
            name = self._name(indices[first + int(finite.logical_not().nonzero()[0])])
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


def pack(activations: Tensor) -> Tensor:
    """Return activations as rows of bytes, uint8 `[pictures, bytes]`; those of feature maps are channels-last.

    Args:
        activations: `[pictures, channels, height, width]`, `[pictures, tokens, width]` or `[pictures, values]`.
    """
    values = activations.permute(0, 2, 3, 1) if activations.dim() == 4 else activations
    return values.flatten(1).contiguous().view(torch.uint8)


def unpack(rows: Tensor, notes: Mapping[str, Any]) -> Tensor:
    """Return the activations in rows, which are not copied; maps in the channels-last layout.

    Args:
        rows: Rows of `pack`.
        notes: Notes of their part, with their shape and type.
    """
    values: Tensor = rows.view(getattr(torch, notes["dtype"]))
    shape = notes["shape"]
    if len(shape) == 3:
        channels, height, width = shape
        maps: Tensor = values.unflatten(1, (height, width, channels))
        return maps.permute(0, 3, 1, 2)
    values = values.unflatten(1, shape)
    return values
