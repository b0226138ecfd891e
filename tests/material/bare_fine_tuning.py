"""Fine-tuning of a small source in a bare loop of PyTorch, to compare `headstart train` with."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.datamodules import ClassFolders
from headstart.datamodules.orderings import sample_seed, sample_selection
from headstart.datamodules.photo_batches import EpochBatches
from headstart.modules.method import sample_head
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.photo_training import epoch_seed
from headstart.tests.material.prepared_pictures import stack

BATCH, EPOCHS = 5, 3


def load(root: Path, backbone: Backbone) -> dict[str, tuple[Tensor, Tensor]]:
    source = ClassFolders(str(root))
    results = {}
    for split, photos in (("train", source.train()), ("validation", source.validation())):
        pixels = [backbone.preprocessing.prepare(photos.read(index)) for index in range(len(photos))]
        results[split] = stack(pixels), torch.from_numpy(photos.labels)
    return results


def plain_accuracies(
    root: Path, trained: str, seed: int, ordering: int, share: float = 0, frozen: int = 0
) -> list[float]:
    """Fine-tune in a bare loop of PyTorch; the first modules of `features` stay frozen."""
    small = Preprocessing(32, 32)
    backbone = build_backbone(BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, small).network(seed))
    photos = load(root, backbone)
    if share:
        inputs, labels = photos["train"]
        selected = np.isin(np.arange(24), sample_selection(labels.numpy(), np.arange(24), share, seed))
        for split, mask in (("selection", selected), ("train", ~selected)):
            photos[split] = inputs[mask], labels[mask]

    head = nn.Linear(backbone.width, 2)
    weight, bias = sample_head(backbone.width, 2, seed, ordering)
    head.load_state_dict({"weight": weight.T, "bias": bias})
    network: nn.Module = nn.Sequential(backbone.normalize, backbone.network, head)
    if trained == "head":
        with torch.inference_mode():
            photos = {split: (backbone(pixels), labels) for split, (pixels, labels) in photos.items()}
        network = head
    network.train()
    for number in range(frozen):
        backbone.network.get_submodule(f"features.{number}").requires_grad_(False).eval()

    inputs, labels = photos["train"]
    drawn = sample_seed(ordering, seed)
    batches = EpochBatches(len(labels), BATCH, drawn)
    steps = EPOCHS * len(batches)
    optimizer = torch.optim.AdamW((p for p in network.parameters() if p.requires_grad), lr=0.001, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.001, steps, pct_start=round(0.2 * steps) / steps)

    for epoch in range(EPOCHS):
        batches.set_epoch(epoch)
        torch.manual_seed(epoch_seed(drawn, epoch))
        for indices in batches:
            optimizer.zero_grad()
            functional.cross_entropy(network(inputs[indices].clone()), labels[indices]).backward()
            optimizer.step()
            schedule.step()

    with torch.inference_mode():
        return [
            float((network.eval()(inputs.clone()).argmax(1) == labels).float().mean())
            for inputs, labels in (photos[split] for split in ("validation", "selection") if split in photos)
        ]
