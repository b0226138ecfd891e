"""Two further methods beside seven that are stored, against the two alone; and a comparison of which all is stored."""

from __future__ import annotations

import yaml

from headstart.benchmarks.speed.frame import EMBEDDED, ROOT, run, temporary_folder

FURTHER = ("recursive_least_squares", "semantic_class_mean")
OPTIONS = [*EMBEDDED, "--data.orderings=100"]


def main() -> None:
    """Time train.py, features in place, from the command line."""
    model = yaml.safe_load((ROOT / "configs" / "model" / "all_methods.yaml").read_text())
    stored = {name: method for name, method in model["methods"].items() if name not in FURTHER}
    further = {name: model["methods"][name] for name in FURTHER}
    with temporary_folder() as folder:

        def seconds(ledger: str, label: str, baseline: object, methods: dict[str, object]) -> float:
            config = folder / f"{label}.yaml"
            config.write_text(yaml.safe_dump({"model": {"baseline": baseline, "methods": methods}}))
            options = [*OPTIONS, f"--config={config}", f"--results.ledger={folder / ledger}"]
            options += [f"--trainer.default_root_dir={folder / label}"]
            return run("train.py", *options, cache=folder / "cache").seconds

        seconds("warm", "warm", model["baseline"], {})
        seven = seconds("shared", "seven", model["baseline"], stored)
        added = seconds("shared", "nine", model["baseline"], {**stored, **further})
        first, second = further.values()
        alone = seconds("alone", "two", first, {FURTHER[1]: second})
        nothing = seconds("shared", "again", model["baseline"], {**stored, **further})
        started = run("train.py", "--trainer.help", cache=folder / "cache").seconds
    print(
        f"seven methods {seven:.1f} s, two more beside them {added:.1f} s, the two alone {alone:.1f} s, "
        f"ratio {added / alone:.2f}; nothing missing {nothing:.1f} s, the help alone {started:.1f} s"
    )


if __name__ == "__main__":
    main()
