"""The cost of 16 short runs as a sweep in two workers, relative to 16 commands one after the other."""

import yaml

from headstart.benchmarks.speed.frame import Run, compare, ratios, run, temporary_folder

OPTIONS = ("--config=configs/demo.yaml", "--trainer.logger=false", "--data.orderings=5", "--data.max_samples=100")


def main(runs: int = 16, workers: int = 2) -> dict[str, float]:
    """Print both times and their ratio; photos are embedded before, for both.

    Args:
        runs: Number of runs.
        workers: Workers of the sweep.

    Returns:
        The ratios, by way.
    """
    with temporary_folder() as folder:

        def train(name: str, seed: int = 0) -> Run:
            output = f"--trainer.default_root_dir={folder / name / str(seed)}"
            return run("train.py", *OPTIONS, f"--seed_everything={seed}", output, cache=folder / "cache")

        file = folder / "sweep.yaml"
        command = ["${program}", *OPTIONS, "${args}"]
        parameters = {"seed_everything": {"values": [*range(runs)]}}
        sweep = {"program": "train.py", "method": "grid", "command": command, "parameters": parameters}
        file.write_text(yaml.safe_dump(sweep))

        options = [f"--workers={workers}", f"--output={folder / 'swept' / 'runs'}"]
        train("warm")
        ways = {
            "commands": lambda: [train("alone", seed) for seed in range(runs)],
            "sweep": lambda: run("sweep.py", str(file), *options, cache=folder / "cache"),
        }
        return ratios(compare(ways, "commands", repeats=1), "commands")
