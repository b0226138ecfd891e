"""Streams of random samples, and methods that are fed with them."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.fx import symbolic_trace

from headstart.modules.method import Method, MethodStart
from headstart.modules.networks.trainable_backbone import TrainableBackbone

WIDTH = 6
# Features of the staged network.
STAGED_WIDTH = 5
PHOTO = (3, 2, 2)


def random_samples(orderings: int, samples: int, features: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    """Draw features `[orderings, samples, features]` around one centre per class, and labels."""
    generator = torch.Generator().manual_seed(orderings + samples)
    centres = 0.5 * torch.randn(classes, features, generator=generator)
    labels = torch.randint(classes, (orderings, samples), generator=generator)
    return torch.rand(orderings, samples, features, generator=generator) + centres[labels], labels


def random_photos(samples: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    """Draw photos `[1, samples, 3, 2, 2]` and labels."""
    features, labels = random_samples(1, samples, 12, classes)
    return features.unflatten(-1, PHOTO), labels


def tiny_backbone() -> nn.Module:
    """Build a backbone for drawn photos, always the same."""
    backbone = nn.Sequential(nn.Flatten(), nn.utils.skip_init(nn.Linear, 12, WIDTH), nn.LayerNorm(WIDTH), nn.Tanh())
    generator = torch.Generator().manual_seed(2)
    for parameter in backbone.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    return backbone


def staged() -> nn.Module:
    """Build a network of three stages within one module, as torchvision's have them."""
    torch.manual_seed(0)
    stages = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        nn.Sequential(nn.Conv2d(4, 4, 1), nn.Tanh()),
        nn.Sequential(nn.Flatten(), nn.Linear(16, STAGED_WIDTH), nn.LayerNorm(STAGED_WIDTH)),
    )
    return nn.Sequential(stages, nn.Identity()).eval()


def tail() -> TrainableBackbone:
    """Build a backbone for drawn photos of which batch norm is trained and dropout is on, always the same."""
    layers = nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Dropout(0.3), nn.Flatten(), nn.Linear(32, WIDTH)
    generator = torch.Generator().manual_seed(3)
    for layer in layers:
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    # A graph module, as cutting a network returns it.
    network = symbolic_trace(nn.Sequential(*layers).eval())
    return TrainableBackbone(network, batch_norm="trained", dropout=True)


def make_start(inputs: Tensor, classes: int = 2, first_ordering: int = 0) -> MethodStart:
    """Build the start of a stream of features, or of photos for a trainable backbone."""
    backbone = tiny_backbone() if inputs.dim() == 5 else None
    features = WIDTH if backbone else inputs.shape[-1]
    generator = torch.Generator().manual_seed(1)
    return MethodStart(
        features,
        classes,
        range(first_ordering, first_ordering + len(inputs)),
        max_samples=inputs.shape[1],
        seed=0,
        backbone=backbone,
        source_head=torch.randn(20, features, generator=generator),
        source_bias=torch.randn(20, generator=generator),
        samples=None if backbone else inputs.flatten(0, 1),
    )


def begin(method: Method, start: MethodStart) -> Method:
    """Call a method's `setup` as a comparison does."""
    method.begin(start)
    method.build_optimizers()
    return method


Batch = tuple[Tensor, Tensor, Tensor]


def batches(inputs: Tensor, labels: Tensor, size: int) -> Iterator[Batch]:
    """Split a stream into batches with their positions, as a comparison is fed; the last is smaller if need be."""
    indices = torch.arange(labels.numel(), device=labels.device).view_as(labels)
    return zip(inputs.split(size, 1), labels.split(size, 1), indices.split(size, 1), strict=True)


def adapt(method: Method, batch: Batch) -> None:
    """Adapt a method on a batch as a comparison does."""
    inputs, labels, method.indices = batch
    method.adapt(inputs, labels)


def feed(method: Method, inputs: Tensor, labels: Tensor, batch: int = 1, classes: int = 2) -> Method:
    """Begin a method and feed it a stream in batches."""
    begin(method, make_start(inputs, classes))
    for part in batches(inputs, labels, batch):
        adapt(method, part)
    return method


def begin_on(method: Method, backbone: nn.Module | None) -> Method:
    """Begin a method on a staged backbone, or on its features."""
    return begin(method, MethodStart(STAGED_WIDTH, 2, range(1), max_samples=50, seed=0, backbone=backbone))


def weights(method: Method) -> dict[str, Tensor]:
    """Copy the weights of a method's backbone, by name."""
    assert method.backbone is not None
    return {name: value.detach().clone() for name, value in method.backbone.named_parameters()}


def moved(method: Method, samples: int) -> set[str]:
    """Feed a method samples one by one; name the weights of the backbone that have changed."""
    before = weights(method)
    photos, labels = random_photos(samples)
    for index in range(samples):
        method.adapt(photos[:, index : index + 1], labels[:, index : index + 1])
    return {name for name, value in weights(method).items() if not torch.equal(value, before[name])}
