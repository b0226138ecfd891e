"""Two further methods beside seven that are stored, against the two alone; and a comparison of which all is stored."""

import yaml

from headstart.benchmarks.speed.frame import EMBEDDED, ROOT, run, temporary_folder

FURTHER = ("recursive_least_squares", "semantic_class_mean")


def main(orderings: int = 100) -> None:
    """Time train.py, features in place, from the command line.

    Args:
        orderings: Number of orderings.
    """
    model = yaml.safe_load((ROOT / "configs" / "model" / "all_methods.yaml").read_text())
    methods, baseline = model["methods"], model["baseline"]
    stored = {name: method for name, method in methods.items() if name not in FURTHER}
    first, second = (methods[name] for name in FURTHER)
    # Ledger, baseline and methods of runs one after the other.
    cases: dict[str, tuple[str, object, dict[str, object]]] = {
        "baseline, features computed": ("warm", baseline, {}),
        "seven methods": ("shared", baseline, stored),
        "two more beside them": ("shared", baseline, methods),
        "the two alone": ("alone", first, {FURTHER[1]: second}),
        "nothing missing": ("shared", baseline, methods),
    }

    with temporary_folder() as folder:
        for name, (ledger, first_method, others) in cases.items():
            config = folder / "methods.yaml"
            config.write_text(yaml.safe_dump({"model": {"baseline": first_method, "methods": others}}))
            options = [*EMBEDDED, f"--config={config}", f"--results.ledger={folder / ledger}"]
            options += [f"--data.orderings={orderings}", f"--trainer.default_root_dir={folder / 'run'}"]
            print(f"{name}: {run('train.py', *options, cache=folder / 'cache')}", flush=True)
        print(f"the help alone: {run('train.py', '--trainer.help', cache=folder / 'cache')}")
