"""How long the suite's parts take, and alternatives side by side."""

import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.benchmarks.frame import SHARED, compare, processor_time_of_commands, run, temporary_folder, timed
from headstart.datamodules.photos.picture_decoding import decode
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.metrics import biased_and_debiased_cka, calibrated_cka, cka_intervals, linear_cka, mean_pairwise_cka
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.fisher_discriminant import softmax
from headstart.metrics.transferability.inputs import Inputs
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey

PHOTOS = SHARED / "data" / "cats_and_dogs"
WEIGHTS = SHARED / "weights" / "mobilenet_v2_imagenet.safetensors"
# No accuracy above 1 exists, so that every one of 250 evaluations on 1,000 photos takes place.
DEMO = (
    "--config=configs/demo.yaml",
    "--model.methods={closed_form: headstart.modules.RecursiveLeastSquares}",
    "--trainer.logger=false",
    "--data.photos.validation_size=1000",
    "--data.max_samples=250",
    "--criterion.threshold=1.0",
    "--results.overwrite=true",
)
FINE_TUNING = (
    "--data=configs/data/cats_and_dogs_photos.yaml",
    f"--data.photos.root={PHOTOS.resolve()}",
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
)
# Models, stimuli, and the widths of the narrowest and widest model.
MODELS = 200
STIMULI = 1000
WIDTHS = (384, 2048)
# Samples, features and classes of the transferability metrics.
SAMPLES = 10_000
FEATURES = 2048
CLASSES = 100
# Settings, methods, orderings, evaluations and validation photos of a large leaderboard.
SETTINGS = 100
METHODS = 10
ORDERINGS = 100
EVALUATIONS = 500
VALIDATION = 1000
TABLES = {"scenario1": "source_datasets_table.csv", "scenario2": "source_model_architectures_table.csv"}


def orderings() -> str:
    """What do 100 orderings cost over one, on stored features, start-up included?"""
    with temporary_folder() as folder:
        runs = {n: partial(_train, folder, *DEMO, f"--data.orderings={n}") for n in (1, 100)}
        runs[1]()
        times = compare({str(n): each for n, each in runs.items()})
    return f"{times['100']:.1f} times the time"


def lazy() -> str:
    """What does lazy evaluation save, in fine-tuning from features.14 of MobileNetV2?"""
    criterion = "--criterion={{threshold: 0.8, consecutive: 10, evaluation: {}}}"
    with temporary_folder() as folder:
        runs = {way: partial(_train, folder, *FINE_TUNING, criterion.format(way)) for way in ("lazy", "every")}
        runs["lazy"]()
        times = compare(runs, repeats=1)
    return f"every evaluation takes {times['every']:.1f} times as long"


def start_up() -> str:
    """How long do `headstart --help` and `headstart list methods` take, over the bare interpreter?"""
    commands = {"python": ("-c", "pass"), "help": ("-m", "headstart", "--help")}
    commands["list"] = ("-m", "headstart", "list", "methods")
    runs = {name: partial(run, *command) for name, command in commands.items()}
    times = compare(runs, repeats=9, clock=processor_time_of_commands)
    return f"{times['help']:.0f} and {times['list']:.0f} times the processor time"


def workers() -> str:
    """What do two workers of one thread save over one, start-up included?"""

    def embed(number: int) -> None:
        with temporary_folder() as cache:
            network = "--backbone.name=mobilenet_v2", f"--backbone.weights={WEIGHTS.resolve()}"
            where = f"--workers={number}", f"--export={cache / 'rows.npz'}"
            photos = str(PHOTOS.resolve() / "validation")
            run("-m", "headstart", "embed", photos, *network, *where, cache=cache, OMP_NUM_THREADS="1")

    times = compare({str(number): partial(embed, number) for number in (2, 1)}, repeats=1)
    return f"one takes {times['1']:.1f} times as long"


def decoding() -> str:
    """How long does a photo of about 300 x 270 pixels take to decode and prepare, on one core?"""
    contents = [path.read_bytes() for path in sorted(PHOTOS.rglob("*.jpg"))[:200]]
    preprocessing = Preprocessing()
    seconds = timed(lambda: [preprocessing.prepare(decode(io.BytesIO(each))) for each in contents], time.process_time)
    return f"{1000 * seconds / len(contents):.1f} ms"


def cka() -> str:
    """How long does the mean CKA of 200 models on 1,000 stimuli take?"""
    drawn = _embeddings(MODELS)
    seconds = timed(partial(mean_pairwise_cka, drawn))
    # Every embedding is in one pair, so that the widths are those of the whole loop.
    pairs = timed(lambda: [linear_cka(x, y) for x, y in zip(drawn[::2], drawn[1::2], strict=True)])
    return f"{seconds:.1f} s; a loop over all pairs would take {(MODELS - 1) * pairs / seconds:.0f} times as long"


def nulls() -> str:
    """What do nulls and intervals cost over the CKA matrix of 200 models?"""
    drawn = _embeddings(MODELS)
    calls: dict[str, Callable[[], object]] = {
        "matrix": partial(biased_and_debiased_cka, drawn),
        "nulls": partial(calibrated_cka, drawn),
        "intervals": partial(cka_intervals, drawn),
    }
    times = compare(calls, clock=time.process_time)
    return f"{times['nulls']:.1f} and {times['intervals']:.1f} times the processor time"


def similarity() -> str:
    """What do other measures of similarity cost over linear CKA, on 8 models?"""
    drawn = _embeddings(8)
    # The plain CCAs need more stimuli than the dimensions of two models together.
    names = [name for name in SIMILARITY_MEASURES if name not in {"cca", "pwcca", DEFAULT_MEASURE}]
    calls = {name: partial(SIMILARITY_MEASURES[name].pairwise, drawn) for name in (DEFAULT_MEASURE, *names)}
    times = compare(calls, repeats=1)
    return ", ".join(f"{name} {times[name]:.0f} times" for name in names)


def transferability() -> str:
    """What do transferability metrics cost over one Gram product and one eigendecomposition?"""
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(SAMPLES) % CLASSES)
    x = generator.standard_normal((SAMPLES, FEATURES)) + generator.standard_normal((CLASSES, FEATURES))[labels]
    x *= 10 * np.arange(1, FEATURES + 1) ** -0.5
    probabilities = softmax(x[:, :1000].copy())
    centred = x - x.mean(0)

    names = [name for name in DEFAULT_METRICS if name != "n_leep"]
    calls: dict[str, Callable[[], object]] = {"floor": lambda: np.linalg.eigh(centred.T @ centred)}
    calls |= {name: partial(METRICS[name].compute, Inputs(x, labels, probabilities)) for name in names}
    times = compare(calls, clock=time.process_time)
    return ", ".join(f"{METRICS[name].title} {times[name]:.1f} times" for name in names)


def leaderboard() -> str:
    """How long does `headstart leaderboard` of 100,000 traces take?"""
    generator = np.random.default_rng(0)
    fed = {"batch_size": 1, "evaluate_every": 1, "validation_size": VALIDATION, "weights_sha256": "0" * 64}
    with temporary_folder() as folder:
        with Ledger(folder / "stored") as ledger:
            for setting in range(SETTINGS):
                stream = ledger.record(
                    {**fed, "train_photos_sha256": f"{setting:0>64}"},
                    description={"dataset": f"data {setting}", "backbone": "net", "weights": "DEFAULT"},
                )
                for method in range(METHODS):
                    kind = {"class": f"headstart.modules.Mine{method}", "hyperparameters": {}}
                    digest = ledger.record(kind, description={"name": f"method {method}" if method else "baseline"})
                    # Counts rise to 90 %, those of later methods more slowly.
                    rise = generator.uniform(25, 100, (ORDERINGS, 1)) * (1 + method / METHODS)
                    shares = 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise)
                    counts = generator.binomial(VALIDATION, shares)
                    ledger.write({TraceKey(stream, digest, k): Trace(each) for k, each in enumerate(counts)})
        command = "evaluate.py", "leaderboard", str(folder / "stored"), f"--output={folder / 'out'}"
        return f"{timed(partial(run, *command, cache=folder)):.0f} s"


def stability() -> str:
    """How long does `headstart stability` of the paper's two tables take?"""
    times = []
    for preset, file in TABLES.items():
        with temporary_folder() as folder:
            table = f"--table={(SHARED / 'data' / 'stable_transfer' / file).resolve()}", f"--preset={preset}"
            command = "evaluate.py", "stability", *table, f"--output={folder / 'out'}", "--logger=false"
            times.append(timed(partial(run, *command, cache=folder)))
    return " and ".join(f"{seconds:.0f} s" for seconds in times)


def _train(folder: Path, *options: str) -> None:
    """Run train.py with its options, with its run and cache in a folder; nothing stored is reused but features."""
    where = f"--trainer.default_root_dir={folder / 'run'}"
    run("train.py", *options, where, "--results.recompute=true", cache=folder / "cache")


def _embeddings(models: int) -> list[NDArray[np.float32]]:
    """Return embeddings of different widths that have something in common, `[stimuli, width]` each."""
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((STIMULI, 100)) * np.geomspace(1, 0.05, 100)
    return [
        (shared @ generator.standard_normal((100, width)) + generator.standard_normal((STIMULI, width))).astype("f4")
        for width in generator.permutation(np.linspace(*WIDTHS, models).astype(int))
    ]


BENCHMARKS = (
    orderings,
    lazy,
    start_up,
    workers,
    decoding,
    cka,
    nulls,
    similarity,
    transferability,
    leaderboard,
    stability,
)
