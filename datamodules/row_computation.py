"""How missing rows are computed: pictures decoded side by side, and a frozen network run on them in equal passes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from headstart.datamodules.activation_rows import notes_of, pack
from headstart.datamodules.near_duplicates import thumbnails
from headstart.datamodules.photos.photo_source import Pictures
from headstart.datamodules.row_policy import Means, Policy, Precision, batch_size, device_kind, pass_size, share_memory
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
from headstart.output.progress import Progress

CHUNK = 64
SEED = 0


def best_precision(device: torch.device) -> Precision:
    """Choose the precision in which a device runs a frozen backbone fastest.

    Args:
        device: Where the backbone runs.

    Returns:
        bfloat16 on a GPU of NVIDIA's Ampere generation or newer and on a processor with matrix instructions for
        it (AMX), else float32: elsewhere bfloat16 is emulated and slower.
    """
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.get_device_capability(device) >= (8, 0) else "float32"
    return "bfloat16" if device.type == "cpu" and torch.cpu.get_capabilities().get("amx_bf16") else "float32"


@dataclass(frozen=True)
class FrozenNetwork:
    """A network that turns prepared pictures into rows.

    Attributes:
        name: What it is called, for messages.
        network: From uint8 `[pictures, 3, crop, crop]` to `[pictures, columns]`, in evaluation mode; or to activations
            at a freeze boundary, `[pictures, ...]`.
        device: Where it is.
        widths: Columns of what is put side by side in a row; None of activations.
        weights: SHA-256 of its weights as they were loaded.
    """

    name: str
    network: nn.Module
    device: torch.device
    widths: list[int] | None
    weights: str


def load(spec: NetworkSpec, taps: Sequence[Tap], policy: Policy, boundary: str = "") -> FrozenNetwork:
    """Load a network for embeddings at its layers, for what enters its classifier, or for activations at a boundary.

    Args:
        spec: The network, with its preprocessing.
        taps: Where embeddings are taken; none for what enters its classifier.
        policy: Where it runs, and without taps whether its batch norm is folded.
        boundary: Module before which the network ends, for the activations that enter it.

    Returns:
        The network.

    Raises:
        UserError: The device cannot be used, the network cannot be built or run, a layer does not fit, or its weights
            are others whenever it is built.
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
            raise UserError("it has other weights whenever it is built; draw them from torch's own generator")
    widths = None if boundary else [backbone.width]
    part = cut(backbone, boundary).stem if boundary else backbone
    return FrozenNetwork(spec.name, part.folded() if policy.folded else part, backbone.device, widths, digest)


def require_device(policy: Policy) -> torch.device:
    """Give the device that a network is to run on.

    Args:
        policy: In what way it runs.

    Raises:
        UserError: torch cannot use it.
    """
    device = device_kind("auto") if policy.device == "auto" else policy.device
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # each kind of device has its own
        raise UserError(f"device: torch can use no {device} on this machine; choose another") from error


class Fault(NamedTuple):
    """Why a picture is black, and whether that lies in its bytes rather than in the system of the moment."""

    reason: str
    lasting: bool


class PreparedPictures(Dataset[tuple[int, Tensor, Fault | None]]):
    """Pictures decoded, resized and cropped, as bytes; what the loader's workers run.

    Args:
        pictures: The pictures.
        places: Which of them, in order.
        preprocessing: Size and interpolation.
    """

    def __init__(self, pictures: Pictures, places: Sequence[int], preprocessing: Preprocessing) -> None:
        self.pictures = pictures
        self.places = places
        self.preprocessing = preprocessing

    def __len__(self) -> int:
        """Give the number of pictures."""
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[int, Tensor, Fault | None]:
        """Give the index, the pixels `[3, crop, crop]`, and why they are black if the picture is unreadable."""
        try:
            return index, self.preprocessing.prepare(self.pictures.read(self.places[index])), None
        except MemoryError:
            fault = Fault("memory does not suffice for it", lasting=False)
        except OSError as error:
            # Decoders give a text alone, the system also a number.
            fault = Fault(error.strerror or str(error) or type(error).__name__, lasting=error.errno is None)
        side = self.preprocessing.crop
        return index, torch.zeros(3, side, side, dtype=torch.uint8), fault


def _collate(samples: list[tuple[int, Tensor, Fault | None]]) -> tuple[list[int], Tensor, list[Fault | None]]:
    """Stack pictures in the channels-last layout, in which they are decoded and in which backbones take them."""
    places, pixels, faults = zip(*samples, strict=True)
    batch = torch.stack([p.permute(1, 2, 0) for p in pixels])
    if get_worker_info() is not None:
        # Later, in a thread of its own, want of shared memory would be told to nobody, who would wait for ever.
        batch.share_memory_()
    return list(places), batch.permute(0, 3, 1, 2), list(faults)


def _quieten(worker: int) -> None:
    """Let the threads of a decoding process print nothing when the one that they decode for has gone."""
    print_error = sys.excepthook

    def print_others(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, ConnectionError | EOFError):
            print_error(kind, error, trace)

    sys.excepthook = print_others


class ComputedRows:
    """Rows of some pictures: what a frozen network makes of them, or without one the prepared pictures, uint8.

    Decoding runs in processes of its own and ahead of the network. Every pass through the network has the same number
    of pictures, the last one filled up with black ones, and the same random numbers, so that a row does not depend on
    which pictures it is computed with.

    Args:
        pictures: The pictures.
        places: Which of them, in order.
        preprocessing: How they are prepared.
        policy: In what way the rows are computed.
        means: By what means.
        frozen: The network.

    Attributes:
        remarks: Why a picture is unreadable, whose row is that of a black one, by its place among the rows.
    """

    def __init__(
        self,
        pictures: Pictures,
        places: Sequence[int],
        preprocessing: Preprocessing,
        policy: Policy,
        means: Means,
        frozen: FrozenNetwork | None = None,
    ) -> None:
        self.pictures = pictures
        self.places = places
        self.preprocessing = preprocessing
        self.policy = policy
        self.means = means
        self.frozen = frozen
        self.size = 1 if frozen is None else pass_size(preprocessing.crop, frozen.device.type)
        self.notes: dict[str, Any] = {}
        if frozen is not None:
            self.notes = {"weights": frozen.weights, **({"widths": frozen.widths} if frozen.widths else {})}
        self.remarks: dict[int, str] = {}

    def __len__(self) -> int:
        """Give the number of rows."""
        return len(self.places)

    @property
    def chunk(self) -> int:
        """Rows that are given at once: whole passes."""
        return self.size * math.ceil(CHUNK / self.size)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the rows in chunks, with deterministic arithmetic; float32 is meant in full, without TensorFloat-32."""
        # Here rather than earlier: the code of a user's own network may have decided otherwise when it was imported.
        with deterministic():
            yield from self._chunks()

    def _chunks(self) -> Iterator[NDArray[Any]]:
        done, means = 0, self.means
        with Progress(means.title, len(self), "pictures", means.before, means.after) as progress:
            for pixels in self._gathered(self.chunk):
                yield (pixels if self.frozen is None else self._run(self.frozen, done, pixels)).numpy()
                done += len(pixels)
                progress.advance(len(pixels))

    def _gathered(self, count: int) -> Iterator[Tensor]:
        """Gather what is decoded into chunks of equal size, but for the last."""
        chunk: list[Tensor] = []
        for pixels in self._decoded():
            chunk.append(pixels)
            while sum(map(len, chunk)) >= count:
                whole = torch.cat(chunk)
                yield whole[:count]
                chunk = [whole[count:]]
        if sum(map(len, chunk)):
            yield torch.cat(chunk)

    def _decoded(self) -> Iterator[Tensor]:
        """Decode pictures in small batches and side by side, ahead of the network, and bring them to where it is."""
        device = torch.device("cpu") if self.frozen is None else self.frozen.device
        pinned, side = device.type == "cuda", self.preprocessing.crop
        size = batch_size(side)
        wanted = count_processors() if self.means.workers is None else self.means.workers
        # What is pinned or on a device is out of shared memory.
        workers, ahead = share_memory(wanted, 3 * side**2 * size, 1 if pinned else math.ceil(self.chunk / size) + 1)
        decoded = PreparedPictures(self.pictures, self.places, self.preprocessing)
        loader = DataLoader(
            decoded,
            size,
            num_workers=workers,
            collate_fn=_collate,
            worker_init_fn=_quieten,
            prefetch_factor=ahead if workers else None,
            pin_memory=pinned,
            generator=torch.Generator(),  # the loader would draw from the one that others share
        )
        for indices, pixels, faults in loader:
            for place, (index, fault) in enumerate(zip(indices, faults, strict=True)):
                if fault is not None:
                    # Once more and alone: what was short beside others may be there now.
                    _, pixels[place], fault = decoded[index]
                if fault is not None:
                    self._pass_over(index, fault)
            yield pixels.to(device, non_blocking=True)

    def _pass_over(self, index: int, fault: Fault) -> None:
        if self.policy.unreadable == "refuse":
            raise UserError(f"{self._name(index)} cannot be decoded: {fault.reason}".replace("\n", " "))
        if not fault.lasting:
            raise UserError(f"{self._name(index)} cannot be read at the moment ({fault.reason}); try again")
        self.remarks[index] = fault.reason

    def _name(self, index: int) -> str:
        return f"{self.pictures.kind} {self.pictures.names[self.places[index]]!r}"

    @torch.inference_mode()
    def _run(self, frozen: FrozenNetwork, first: int, pixels: Tensor) -> Tensor:
        """Run the network on one chunk."""
        batch = f"a pass of {self.size} pictures of {pixels.shape[-1]} x {pixels.shape[-1]} pixels"
        with (
            explain_memory_errors(f"model {frozen.name!r}: {batch}", "take a smaller crop or a smaller network"),
            torch.autocast(frozen.device.type, torch.bfloat16, enabled=self.policy.precision == "bfloat16"),
        ):
            rows = torch.cat([self._pass(frozen, part) for part in pixels.split(self.size)])
        finite = rows.isfinite().flatten(1).all(1)
        if not finite.all():
            name = self._name(first + int(finite.logical_not().nonzero()[0]))
            raise UserError(f"model {frozen.name!r} gives NaN or infinite embeddings, first for {name}")
        if frozen.widths is None:
            self.notes |= notes_of(rows)
            return pack(rows, thumbnails(pixels).cpu())
        return torch.cat([rows.float(), thumbnails(pixels).cpu()], 1) if self.policy.thumbnails else rows.float()

    def _pass(self, frozen: FrozenNetwork, pixels: Tensor) -> Tensor:
        count = len(pixels)
        if count < self.size:
            black = pixels.new_zeros(self.size - count, *pixels.shape[1:])
            pixels = torch.cat([pixels, black])
        with torch.random.fork_rng([frozen.device] if frozen.device.type == "cuda" else []):
            torch.manual_seed(SEED)
            rows: Tensor = frozen.network(pixels)
        return rows[:count].cpu()
