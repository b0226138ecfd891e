"""Processor time of a first run, of a repeat that has nothing to do, and of `import torch`, side by side."""

from functools import partial

from headstart.benchmarks.speed.frame import compare, processor_time_of_commands, run, temporary_folder


def main(rounds: int = 5) -> None:
    """Run the demo once, then repeat it in turn with `import torch`; print the least times and their ratio.

    Args:
        rounds: How often each is run.
    """
    with temporary_folder() as folder:
        options = ["--config=configs/demo.yaml", f"--trainer.default_root_dir={folder / 'run'}"]
        demo = partial(run, "train.py", *options, cache=folder / "cache")
        results = folder / "run" / "results.json"

        print(f"the first run: {demo().processor_seconds:.3g} s")
        written = results.stat().st_mtime_ns
        commands = {"import torch": partial(run, "-c", "import torch"), "the same command again": demo}
        compare(commands, "import torch", rounds, summary=min, clock=processor_time_of_commands)
        if results.stat().st_mtime_ns != written:
            raise SystemExit("the repeat was no repeat: it wrote its results again")
