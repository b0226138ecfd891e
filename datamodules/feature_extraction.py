"""Features of pictures by a frozen backbone: in this process, in workers, or on a cluster, always from one store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.pieces import compute_missing, needs_of
from headstart.datamodules.row_policy import Policy, Precision, Resources, device_kind
from headstart.datamodules.row_request import RowRequest
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.engines.tasks import Needs, Task, run_tasks
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import prefix_errors
from headstart.output.processors import processors
from headstart.store.row_store import StoredRows

if TYPE_CHECKING:
    from headstart.modules.networks.backbone import Backbone


@dataclass(frozen=True)
class Described:
    """A backbone as it was loaded.

    Attributes:
        network: The network, with its preprocessing and the SHA-256 of its weights.
        width: Number of features.
        precision: Arithmetic in which it runs.
        device: Kind of its device.
    """

    network: NetworkSpec
    width: int
    precision: Precision
    device: str


@dataclass(frozen=True)
class Choice:
    """A backbone and how it runs.

    Attributes:
        backbone: The options that choose it.
        precision: Its arithmetic; `auto` takes bfloat16 where the processor or GPU gains from it.
        device: Where it runs; `auto` takes a GPU where there is one.
        seed: Seed of random weights.
    """

    backbone: BackboneSpec
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Extracted:
    """Features of pictures.

    Attributes:
        backbone: The backbone.
        stored: Features and thumbnails of 64 columns, `[pictures, width + 64]`, float32, read when they are indexed. A
            picture that cannot be decoded has those of a black picture, and a remark.
    """

    backbone: Described
    stored: StoredRows


def extract(pictures: Pictures, choice: Choice, resources: Resources, engines: EngineOptions) -> Extracted:
    """Compute the features of pictures: what enters the classifier of a backbone.

    Args:
        pictures: The pictures.
        choice: The backbone.
        resources: Cache, decoding processes and progress.
        engines: Where missing rows are computed. Unless that is this process, it imports no torch.

    Raises:
        UserError: The backbone cannot be built or run, or a picture cannot be read at the moment.
        StoreError: The cache folder cannot be read or written.
    """
    if engines.is_serial:
        described, _ = describe(choice)
        _digest(pictures, resources)
        return Extracted(described, find(request_of(pictures, described), resources, copied=0))

    needs = needs_of(resources, engines, on_gpu=device_kind(choice.device) == "cuda")
    described = _describe_there(choice, engines, needs)
    _digest(pictures, resources)
    request = request_of(pictures, described)
    computed = compute_missing({resources.title: request}, resources, engines)
    stored = find(request, replace(resources, engines=None), copied=0)
    return Extracted(described, replace(stored, computed=stored.computed + sum(computed.values())))


def _digest(pictures: Pictures, resources: Resources) -> None:
    """Digest pictures; errors name the argument."""
    with prefix_errors("pictures"):
        pictures.digests(resources.cache)


def request_of(pictures: Pictures, described: Described) -> RowRequest:
    """Return the request for the features of pictures by a backbone, with thumbnails."""
    policy = Policy(described.precision, folded=True, unreadable="remark", device=described.device, thumbnails=True)
    network = described.network
    assert network.preprocessing is not None
    return RowRequest(pictures, network.preprocessing, policy, network)


def describe(choice: Choice) -> tuple[Described, Backbone]:
    """Build a backbone and run it on one picture; this imports torch.

    Args:
        choice: The backbone.

    Returns:
        The backbone as it was loaded, for requests, and the network itself.

    Raises:
        UserError: There is no such device or backbone, or it cannot take pictures.
    """
    from headstart.datamodules.chosen_backbone import build_chosen
    from headstart.datamodules.row_computation import best_precision, require_device
    from headstart.modules.arithmetic import settle_arithmetic

    settle_arithmetic()
    target = require_device(Policy(device=choice.device))
    with prefix_errors("backbone"):
        network, backbone = build_chosen(choice.backbone, choice.seed, target)
    precision = best_precision(target) if choice.precision == "auto" else choice.precision
    return Described(network, backbone.width, precision, str(target)), backbone


def describe_task(argument: tuple[Choice, int]) -> Described:
    """Describe a backbone as a task.

    Args:
        argument: The backbone, and the processors that the task may use.
    """
    choice, processors_each = argument
    with processors(processors_each):
        described, _ = describe(choice)
    # It is computed once, here: that of a custom network imports its module, and with it torch.
    _ = described.network.identity
    return described


def _describe_there(choice: Choice, engines: EngineOptions, needs: Needs) -> Described:
    """Describe a backbone where it will run."""
    task = Task("backbone", f"{__name__}:describe_task", (choice, needs.cpus or 1))
    (outcome,) = run_tasks([task], engines, needs=needs)
    described: Described = outcome.require()
    return described
