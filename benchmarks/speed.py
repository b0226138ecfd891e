"""How long the suite's parts take, and how fast photos become features."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.benchmarks.frame import SHARED, compare, run, timed
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.embedding import embed
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics import linear_cka, mean_pairwise_cka
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

PHOTOS = SHARED / "data" / "cats_and_dogs"
ANEW = ("--trainer.logger=false", "--results.overwrite=true", "--results.recompute=true")
# No accuracy above 1 exists, so that every one of 250 evaluations on 1,000 photos takes place.
DEMO = (
    "--config=configs/demo.yaml",
    "--model.methods={closed_form: headstart.modules.RecursiveLeastSquares}",
    "--data.photos.validation_size=1000",
    "--data.max_samples=250",
    "--criterion.threshold=1.0",
    *ANEW,
)
# Models, stimuli, and the widths of the narrowest and widest model.
MODELS, STIMULI, WIDTHS = 200, 1000, (384, 2048)
# Samples, features and classes of the transferability metrics.
SAMPLES, FEATURES, CLASSES = 10_000, 2048, 100
# Settings, methods, orderings, evaluations and validation photos of a large leaderboard.
SETTINGS, METHODS, ORDERINGS, EVALUATIONS, VALIDATION = 100, 10, 100, 500, 1000
# Photos that become features, in batches.
EMBEDDED, BATCH = 256, 32
WEIGHTS = SHARED / "weights" / "mobilenet_v2_imagenet.safetensors"
TABLES = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}


def orderings() -> str:
    """What do 100 orderings cost over one, on stored features, start-up included?"""
    times = _compare_training(DEMO, {"1": "--data.orderings=1", "100": "--data.orderings=100"})
    return f"{times['100']:.1f} times the time"


def cka() -> str:
    """How long does the mean CKA of 200 models on 1,000 stimuli take?"""
    drawn = _embeddings(MODELS)
    seconds = timed(partial(mean_pairwise_cka, drawn))
    # Every embedding is in one pair, so that the widths are those of the whole loop.
    pairs = timed(lambda: [linear_cka(x, y) for x, y in zip(drawn[::2], drawn[1::2], strict=True)])
    return f"{seconds:.1f} s; a loop over all pairs would take {(MODELS - 1) * pairs / seconds:.0f} times as long"


def transferability() -> str:
    """What do transferability metrics cost over one Gram product and one eigendecomposition?"""
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(SAMPLES) % CLASSES)
    x = generator.standard_normal((SAMPLES, FEATURES)) + generator.standard_normal((CLASSES, FEATURES))[labels]
    x *= 10 * np.arange(1, FEATURES + 1) ** -0.5
    centred = x - x.mean(0)

    names = [name for name in DEFAULT_METRICS if name != "n_leep"]
    calls: dict[str, Callable[[], object]] = {"floor": lambda: np.linalg.eigh(centred.T @ centred)}
    calls |= {name: partial(METRICS[name].compute, Inputs(x, labels, x[:, :1000])) for name in names}
    times = compare(calls, clock=time.process_time)
    return ", ".join(f"{METRICS[name].title} {times[name]:.1f} times" for name in names)


def leaderboard() -> str:
    """How long does `headstart leaderboard` of 100,000 traces take, and how much memory?"""
    generator = np.random.default_rng(0)
    stream_key = {"batch_size": 1, "evaluate_every": 1, "validation_size": VALIDATION, "weights_sha256": "0" * 64}
    with TemporaryDirectory() as folder:
        with Ledger(Path(folder, "stored")) as ledger:
            for setting in range(SETTINGS):
                stream = ledger.record(
                    {**stream_key, "train_photos_sha256": f"{setting:0>64}"},
                    description={"dataset": f"data {setting}", "backbone": "net", "weights": "DEFAULT"},
                )
                for method in range(METHODS):
                    kind = {"class": f"headstart.modules.Mine{method}", "hyperparameters": {}}
                    digest = ledger.record(kind, description={"name": f"method {method}" if method else "baseline"})
                    # Counts rise to 90 %, those of later methods more slowly.
                    rise = generator.uniform(25, 100, (ORDERINGS, 1)) * (1 + method / METHODS)
                    shares = 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise)
                    counts = generator.binomial(VALIDATION, shares)
                    ledger.write({TraceKey(stream, digest, k): Trace(values) for k, values in enumerate(counts)})
        command = "evaluate.py", "leaderboard", f"{folder}/stored", f"--output={folder}/out"
        return run(*command, cache=folder)


def extraction() -> str:
    """How long do features of JPEG files take, over a plain loop of the network on pictures in memory?"""
    _, backbone = build_chosen(BackboneSpec("mobilenet_v2", str(WEIGHTS)), 0, torch.device("cpu"))
    with TemporaryDirectory() as folder:
        _write_photos(folder, EMBEDDED)
        times = compare({"bare": partial(_forward, backbone), "embed": partial(_embed, folder)}, repeats=1)
    return f"{times['embed']:.2f} times the time"


def workers() -> str:
    """What do two workers of one thread save over one, start-up included?"""
    with TemporaryDirectory() as folder:
        _write_photos(folder, 2 * EMBEDDED)
        ways = {number: partial(_embed_by_command, folder, number) for number in ("2", "1")}
        times = compare(ways, repeats=1)
    return f"one takes {times['1']:.1f} times as long"


def stability() -> str:
    """How long does `headstart stability` of the paper's two tables take, and how much memory?"""
    folder, costs = (SHARED / "data" / "stable_transfer").resolve(), []
    for preset, file in TABLES.items():
        with TemporaryDirectory() as output:
            options = f"--preset={preset}", f"--output={output}/out", "--logger=false"
            costs.append(run("evaluate.py", "stability", str(folder / file), *options, cache=output))
    return " and ".join(costs)


def _compare_training(options: Sequence[str], ways: Mapping[str, str], repeats: int = 3) -> dict[str, float]:
    """Compare the times of `headstart train` with one more option or another, after the features were computed."""
    with TemporaryDirectory() as folder:
        command = "train.py", *options, f"--trainer.default_root_dir={folder}/run"
        runs = {way: partial(run, *command, option, cache=f"{folder}/cache") for way, option in ways.items()}
        next(iter(runs.values()))()
        return compare(runs, repeats)


def _embeddings(models: int) -> list[NDArray[np.float32]]:
    """Return embeddings of different widths that have something in common, `[stimuli, width]` each."""
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((STIMULI, 100)) * np.geomspace(1, 0.05, 100)
    return [
        (shared @ generator.standard_normal((100, width)) + generator.standard_normal((STIMULI, width))).astype("f4")
        for width in generator.permutation(np.linspace(*WIDTHS, models).astype(int))
    ]


def _write_photos(folder: str, count: int) -> None:
    """Write so many JPEG files of cats and dogs; bytes behind the end of a picture tell copies apart."""
    files = sorted(PHOTOS.rglob("*.jpg"))
    for index in range(count):
        content = files[index % len(files)].read_bytes()
        Path(folder, f"{index}.jpg").write_bytes(content + index.to_bytes(4, "big"))


@torch.inference_mode()
def _forward(backbone: Backbone) -> None:
    """Run the network as often as for all photos, on one batch in memory."""
    batch = torch.rand(BATCH, 3, 224, 224)
    for _ in range(0, EMBEDDED, BATCH):
        backbone(batch)


def _embed(folder: str) -> None:
    with TemporaryDirectory() as cache:
        embed(folder, BackboneSpec("mobilenet_v2", str(WEIGHTS)), cache_dir=cache)


def _embed_by_command(folder: str, number: str) -> None:
    options = f"--backbone={{name: mobilenet_v2, weights: {WEIGHTS.resolve()}}}", f"--workers={number}"
    with TemporaryDirectory() as cache:
        command = "-m", "headstart", "embed", folder, *options
        run(*command, f"--export={cache}/rows.npz", cache=cache, OMP_NUM_THREADS="1")


SECTIONS = {
    "How long the suite's parts take, and alternatives side by side": (orderings, cka, transferability, leaderboard),
    "How fast photos become features, and studies of tables end": (extraction, workers, stability),
}
