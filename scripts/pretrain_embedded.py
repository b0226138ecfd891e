"""Pre-trains the embedded default's backbone on the drawn source task and writes its weights.

    python -m scripts.pretrain_embedded

The source task holds no cats or dogs; see docs/embedded_default.md for the accuracy and time to expect.
"""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jsonargparse import auto_cli
from safetensors.torch import save
from torch import Tensor, nn
from torchvision.models import mobilenet_v2

from datamodules.drawings.drawn_objects import SOURCE_CLASSES
from datamodules.drawings.drawn_photos import object_drawings
from modules.networks.backbone import EMBEDDED_PREPROCESSING, EMBEDDED_WEIGHTS
from modules.networks.normalization import Normalization
from output.files import replacing


def draw_pool(start: int, per_class: int, seed: int, workers: int) -> tuple[Tensor, Tensor]:
    """Draws a balanced pool in worker processes, one class after the other, from the given index of each on.

    Returns the drawings, uint8 of shape (n, 3, height, width), and their labels.
    """
    drawings = object_drawings(start, per_class * len(SOURCE_CLASSES), seed)
    places = drawings.labels.argsort(kind="stable").tolist()
    with ProcessPoolExecutor(workers) as pool:
        drawn = np.stack([np.asarray(picture) for picture in pool.map(drawings.read, places, chunksize=per_class)])
    return torch.from_numpy(drawn).permute(0, 3, 1, 2), torch.from_numpy(drawings.labels[places])


def normalise(pictures: Tensor) -> Tensor:
    """Turns uint8 pictures into the network's input, standardised per channel."""
    normal: Tensor = Normalization(EMBEDDED_PREPROCESSING)(pictures)
    return normal.contiguous(memory_format=torch.channels_last)


def augment(pictures: Tensor, generator: torch.Generator, reach: int = 4) -> Tensor:
    """Shifts the batch, mirrors half of it and permutes its channels; no class depends on any of these."""
    dx, dy = torch.randint(-reach, reach + 1, (2,), generator=generator).tolist()
    padded = nn.functional.pad(pictures.float(), (reach,) * 4, mode="reflect")
    height, width = pictures.shape[2:]
    shifted = padded[:, :, reach + dy : reach + dy + height, reach + dx : reach + dx + width]
    half = len(shifted) // 2
    mirrored = torch.cat([shifted[:half].flip(3), shifted[half:]])
    return mirrored[:, torch.randperm(3, generator=generator)]


@torch.inference_mode()
def measure_accuracy(network: nn.Module, pictures: Tensor, labels: Tensor) -> float:
    """Returns the share of pictures that the network, set to evaluation mode, classifies correctly."""
    network.eval()
    hits = [
        int((network(normalise(batch)).argmax(1) == truth).sum())
        for batch, truth in zip(torch.split(pictures, 250), torch.split(labels, 250), strict=True)
    ]
    return sum(hits) / len(labels)


def write_weights(network: nn.Module, path: Path, metadata: dict[str, str]) -> None:
    """Writes the state in half precision, without integer buffers; a crash leaves no partial file."""
    state = {
        name: tensor.to(torch.float16).contiguous()
        for name, tensor in network.state_dict().items()
        if tensor.is_floating_point()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_bytes(save(state, metadata))


def pretrain(
    output: Path = EMBEDDED_WEIGHTS,
    epochs: int = 10,
    per_class: int = 500,
    held_out_per_class: int = 50,
    batch_size: int = 64,
    learning_rate: float = 0.004,
    weight_decay: float = 0.05,
    seed: int = 0,
    workers: int = 2,
    threads: int = 1,
) -> None:
    """Trains MobileNetV2 (width 0.35) on the drawn source task and writes its weights.

    Args:
        output: Where the weights are written, as safetensors in half precision.
        epochs: Passes over the training drawings.
        per_class: Training drawings per class.
        held_out_per_class: Other drawings per class on which the accuracy is measured.
        batch_size: Drawings per step.
        learning_rate: Peak of the one-cycle schedule for AdamW.
        weight_decay: AdamW's decoupled weight decay.
        seed: Seeds initialisation, order, augmentation and the family of drawings.
        workers: Processes that draw.
        threads: Threads that train; more than one only pays on idle cores.
    """
    began = time.monotonic()
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    pictures, labels = draw_pool(held_out_per_class, per_class, seed, workers)
    held_out, held_out_labels = draw_pool(0, held_out_per_class, seed, workers)
    print(f"drew {len(pictures) + len(held_out)} pictures in {time.monotonic() - began:.0f} s", flush=True)

    network = mobilenet_v2(width_mult=0.35, num_classes=len(SOURCE_CLASSES)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=weight_decay)
    steps = math.ceil(len(pictures) / batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, epochs * steps, pct_start=0.2)
    for epoch in range(epochs):
        network.train()
        order = torch.randperm(len(pictures), generator=generator)
        for batch in torch.split(order, batch_size):
            logits = network(normalise(augment(pictures[batch], generator)))
            loss = nn.functional.cross_entropy(logits, labels[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        elapsed = time.monotonic() - began
        accuracy = measure_accuracy(network, held_out, held_out_labels)
        print(f"epoch {epoch + 1}: {elapsed:.0f} s, loss {loss.item():.3f}, held out {accuracy:.4f}", flush=True)

    metadata = {
        "architecture": "torchvision mobilenet_v2, width_mult 0.35",
        "classes": str(len(SOURCE_CLASSES)),
        "held_out_accuracy": f"{accuracy:.4f}",
        "size": str(pictures.shape[-1]),
        "seed": str(seed),
        "command": " ".join(["python -m scripts.pretrain_embedded", *sys.argv[1:]]),
    }
    write_weights(network, output, metadata)
    print(f"wrote {output} ({output.stat().st_size / 1e6:.2f} MB) after {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    auto_cli(pretrain, as_positional=False)
