"""What 16 short runs cost as a sweep in two workers, over 16 commands one after the other."""

from __future__ import annotations

import yaml

from headstart.benchmarks.speed.frame import run, temporary_folder

RUNS, WORKERS = 16, 2
OPTIONS = ("--config=configs/demo.yaml", "--trainer.logger=false", "--data.orderings=5", "--data.max_samples=100")


def main() -> None:
    """Print both times and their ratio; photos are embedded before, for both."""
    with temporary_folder() as folder:
        cache = folder / "cache"
        run("train.py", *OPTIONS, f"--trainer.default_root_dir={folder / 'before' / 'run'}", cache=cache)
        alone = 0.0
        for seed in range(RUNS):
            chosen = f"--seed_everything={seed}", f"--trainer.default_root_dir={folder / 'alone' / str(seed)}"
            alone += run("train.py", *OPTIONS, *chosen, cache=cache).seconds
        sweep = {
            "program": "train.py",
            "method": "grid",
            "command": ["${program}", *OPTIONS, "${args}"],
            "parameters": {"seed_everything": {"values": [*range(RUNS)]}},
        }
        file = folder / "sweep.yaml"
        file.write_text(yaml.safe_dump(sweep))
        chosen = f"--workers={WORKERS}", f"--output={folder / 'swept' / 'runs'}"
        together = run("sweep.py", str(file), *chosen, cache=cache).seconds
    print(f"{RUNS} commands {alone:.1f} s, a sweep in {WORKERS} workers {together:.1f} s: ratio {together / alone:.2f}")


if __name__ == "__main__":
    main()
