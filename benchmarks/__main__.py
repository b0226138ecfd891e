"""The command `python -m headstart.benchmarks NAME`: a benchmark, by the name of its file."""

import json
import sys
from importlib import import_module
from pathlib import Path

import jsonargparse

FRAME_FILES = ("__init__", "frame", "laws", "register")


def find_benchmarks() -> dict[str, str]:
    """Return the modules of the benchmarks, by their names."""
    files = [path for path in sorted(Path(__file__).parent.glob("*/*.py")) if path.stem not in FRAME_FILES]
    return {path.stem: f"headstart.benchmarks.{path.parent.name}.{path.stem}" for path in files}


def main() -> None:
    """Run the `main` of a benchmark, whose parameters are its options, and print what it returns as JSON."""
    modules = find_benchmarks()
    name, *options = sys.argv[1:] or [""]
    if name not in modules:
        raise SystemExit(f"python -m headstart.benchmarks NAME [options], where NAME is one of {', '.join(modules)}")
    benchmark = import_module(modules[name]).main
    figures = jsonargparse.auto_cli(benchmark, args=options, prog=f"headstart.benchmarks {name}")
    if figures is not None:
        print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
