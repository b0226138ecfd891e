"""How fast photos become features, fine-tuning evaluates, and studies of tables end."""

from functools import partial
from pathlib import Path

import torch

from headstart.benchmarks.frame import SHARED, compare, run, temporary_folder
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.embedding import embed
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec

PHOTOS = 256
BATCH = 32
PETS = SHARED / "data" / "cats_and_dogs"
WEIGHTS = SHARED / "weights" / "mobilenet_v2_imagenet.safetensors"
FINE_TUNING = (
    "--data=configs/data/cats_and_dogs_photos.yaml",
    f"--data.photos.root={PETS.resolve()}",
    "--data.photos.download=false",
    "--data.backbone.name=mobilenet_v2",
    f"--data.backbone.weights={WEIGHTS.resolve()}",
    "--data.trainable_from=features.14",
    "--data.orderings=1",
    "--data.batch_size=4",
    "--data.max_samples=200",
    "--data.validation_size=500",
    "--model.methods={}",
    "--model.baseline={class_path: headstart.modules.GradientDescent, init_args: "
    "{optimizer: {class_path: torch.optim.Adam, init_args: {lr: 0.0001}}}}",
    "--trainer.logger=false",
    "--results.overwrite=true",
    "--results.recompute=true",
)
TABLES = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}


def lazy() -> str:
    """What does lazy evaluation save, in fine-tuning from features.14 of MobileNetV2?"""
    criterion = "--criterion={{threshold: 0.8, consecutive: 10, evaluation: {}}}"
    with temporary_folder() as folder:
        command = "train.py", *FINE_TUNING, f"--trainer.default_root_dir={folder / 'run'}"
        ways = {way: partial(run, *command, criterion.format(way), cache=folder / "cache") for way in ("lazy", "every")}
        ways["lazy"]()
        times = compare(ways, repeats=1)
    return f"every evaluation takes {times['every']:.1f} times as long"


def extraction() -> str:
    """How long do features of JPEG files take, over a plain loop of the network on pictures in memory?"""
    _, backbone = build_chosen(BackboneSpec("mobilenet_v2", str(WEIGHTS)), 0, torch.device("cpu"))
    with temporary_folder() as folder:
        _write_photos(folder / "photos", PHOTOS)
        times = compare({"bare": partial(_forward, backbone), "embed": partial(_embed, folder)}, repeats=1)
    return f"{times['embed']:.2f} times the time"


def workers() -> str:
    """What do two workers of one thread save over one, start-up included?"""
    with temporary_folder() as folder:
        _write_photos(folder / "photos", 2 * PHOTOS)
        ways = {number: partial(_embed_by_command, folder, number) for number in ("2", "1")}
        times = compare(ways, repeats=1)
    return f"one takes {times['1']:.1f} times as long"


def stability() -> str:
    """How long does `headstart stability` of the paper's two tables take, and how much memory?"""
    folder, costs = (SHARED / "data" / "stable_transfer").resolve(), []
    for preset, file in TABLES.items():
        with temporary_folder() as output:
            options = f"--preset={preset}", f"--output={output / 'out'}", "--logger=false"
            costs.append(run("evaluate.py", "stability", str(folder / file), *options, cache=output))
    return " and ".join(map(str, costs))


def _write_photos(folder: Path, count: int) -> None:
    """Write so many JPEG files of cats and dogs; bytes behind the end of a picture tell copies apart."""
    files = sorted(PETS.rglob("*.jpg"))
    folder.mkdir()
    for index in range(count):
        content = files[index % len(files)].read_bytes()
        (folder / f"{index}.jpg").write_bytes(content + index.to_bytes(4, "big"))


@torch.inference_mode()
def _forward(backbone: Backbone) -> None:
    """Run the network as often as for all photos, on one batch in memory."""
    batch = torch.rand(BATCH, 3, 224, 224)
    for _ in range(0, PHOTOS, BATCH):
        backbone(batch)


def _embed(folder: Path) -> None:
    with temporary_folder() as cache:
        embed(str(folder / "photos"), BackboneSpec("mobilenet_v2", str(WEIGHTS)), cache_dir=str(cache))


def _embed_by_command(folder: Path, number: str) -> None:
    options = f"--backbone={{name: mobilenet_v2, weights: {WEIGHTS.resolve()}}}", f"--workers={number}"
    with temporary_folder() as cache:
        command = "-m", "headstart", "embed", str(folder / "photos"), *options
        run(*command, f"--export={cache / 'rows.npz'}", cache=cache, OMP_NUM_THREADS="1")


BENCHMARKS = (lazy, extraction, workers, stability)
