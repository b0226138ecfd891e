"""The page of a benchmark: 39 settings of 14 methods in 100 orderings, from the command line."""

import json
from pathlib import Path

import numpy as np

from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.metrics.sample_efficiency.curves import Curves

SETTINGS, METHODS, ORDERINGS, EVALUATIONS, VALIDATION = 39, 14, 100, 500, 1_000


def write_run(folder: Path, generator: np.random.Generator) -> None:
    """Write the files of a run that the report reads, with traces that rise to 90 %.

    Args:
        folder: Folder of the run; its name is that of the data set.
        generator: Source of randomness.
    """
    folder.mkdir(parents=True)
    methods = ["baseline", *(f"method_{number}" for number in range(1, METHODS))]
    rise = generator.uniform(10, 200, (METHODS, 1, 1)) * generator.uniform(0.7, 1.4, (METHODS, ORDERINGS, 1))
    correct = generator.binomial(VALIDATION, 0.9 - 0.4 * np.exp(-np.arange(1, EVALUATIONS + 1) / rise))

    curves = Curves(
        methods=methods,
        orderings=np.arange(ORDERINGS),
        samples_seen=np.arange(1, EVALUATIONS + 1),
        correct=correct,
        validation_size=VALIDATION,
        all_correct=VALIDATION,
        measure="accuracy",
        limit=EVALUATIONS,
        threshold=0.8,
        consecutive=10,
    )
    (folder / "curves.npz").write_bytes(curves.content())

    feed = {"dataset": folder.name, "backbone": "mobilenet_v2", "weights": "IMAGENET1K_V1", "classes": ["cats", "dogs"]}
    protocol = {**feed, "batch_size": 1, "max_samples": EVALUATIONS, "orderings": ORDERINGS, "first_ordering": 0}
    document = {"complete": True, "stopped_because": "the sample limit was reached", "protocol": protocol}
    (folder / "results.json").write_text(json.dumps(document))

    options = {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8}}
    described = {"class_path": "headstart.modules.GradientDescent", "init_args": {"optimizer": options}}
    model = {"baseline": described, "methods": dict.fromkeys(methods[1:], described)}
    data = {"init_args": {"backbone": {"name": "mobilenet_v2"}}}
    (folder / "config.yaml").write_text(json.dumps({"model": model, "data": data}, indent=1))


def main(settings: int = SETTINGS) -> None:
    """Print the seconds, the memory and the size of the page.

    Args:
        settings: Number of runs.
    """
    with temporary_folder() as folder:
        page, generator = folder / "report.html", np.random.default_rng(0)
        for setting in range(settings):
            write_run(folder / "runs" / f"photos_{setting}", generator)
        cost = run("evaluate.py", "report", str(folder / "runs"), f"--output={page}", cache=folder / "cache")
        size = page.stat().st_size / 1e6
        print(f"{settings} settings of {METHODS} methods in {ORDERINGS} orderings: {cost}, {size:.2f} MB of HTML")
