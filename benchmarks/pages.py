"""The pages docs/results/speed.md and docs/results/coverage.md, which these commands measure and write whole."""

import inspect
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import headstart
from headstart.output.errors import UserError
from headstart.output.processors import count_processors

SPEED = ("comparisons", "features", "measures", "reports")
COVERAGE = ("comparisons", "settings", "few_labels", "targets", "scores")
SPEED_PAGE = """\
# Speed and memory

How long does it take, and how much memory does it need? Alternatives are timed side by side in one run. Ratios differ
less between machines than times do. `python -m headstart.benchmarks speed` measures all of it and writes this page;
`--only '[orderings]'` prints one answer.

"""
COVERAGE_PAGE = """\
# How often do intervals hold?

These benchmarks draw data whose truth is known, or leave photos out, and count. Cells are multiplied by 100: shares of
intervals that hold the truth, unless a column is a width, an error or a ratio. Intervals promise 95 % where nothing
else is said. `python -m headstart.benchmarks coverage` counts all of it and writes this page; `--only '[ranking]'`
prints one table.

"""


def speed(only: Sequence[str] = (), output: Path = Path("docs/results/speed.md")) -> None:
    """Measure speed and memory, and write the page.

    Args:
        only: Names of benchmarks that are printed and not written; by default all are written.
        output: The page.
    """
    _write("speed", SPEED, SPEED_PAGE + _measured() + "\n", _answers, only, output)


def coverage(only: Sequence[str] = (), output: Path = Path("docs/results/coverage.md")) -> None:
    """Count how often intervals hold and tests reject, and write the page.

    Args:
        only: As for `speed`.
        output: The page.
    """
    torch.set_num_threads(1)
    _write("coverage", COVERAGE, COVERAGE_PAGE + _measured() + "\n", _shares, only, output)


def modules(room: str, names: Sequence[str]) -> dict[ModuleType, list[Callable[..., Any]]]:
    """Return the modules of a page with their benchmarks.

    Args:
        room: Folder of the modules.
        names: Their names.
    """
    found = [import_module(f"headstart.benchmarks.{room}.{name}") for name in names]
    return {module: list(module.BENCHMARKS) for module in found}


def _write(
    room: str,
    names: Sequence[str],
    text: str,
    section: Callable[[ModuleType, Sequence[Callable[..., Any]]], Iterator[str]],
    only: Sequence[str],
    output: Path,
) -> None:
    sections = modules(room, names)
    known = [each.__name__ for benchmarks in sections.values() for each in benchmarks]
    if unknown := [name for name in only if name not in known]:
        raise UserError(f"only: there is no benchmark {unknown[0]!r}; there are {', '.join(known)}")

    lines = []
    for module, benchmarks in sections.items():
        if chosen := [each for each in benchmarks if not only or each.__name__ in only]:
            for line in section(module, chosen):
                print(line, flush=True)
                lines.append(line)
    if not only:
        output.write_text(text + "\n".join(lines).rstrip() + "\n", encoding="utf-8")
        print(f"wrote {output}")


def _measured() -> str:
    """Return with what the page was made."""
    versions = f"Headstart {headstart.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"
    return f"Measured with {versions} on {count_processors()} processors of {platform.machine()}.\n"


def title_of(benchmark: Callable[..., Any] | ModuleType) -> str:
    """Return the first line of a docstring, without its full stop."""
    return inspect.cleandoc(benchmark.__doc__ or "").splitlines()[0].rstrip(".")


def _answers(module: ModuleType, benchmarks: Sequence[Callable[..., Any]]) -> Iterator[str]:
    """Yield a section of the speed page: the question of each benchmark, which is its docstring, and its answer."""
    yield from (f"## {title_of(module)}", "", "| question | benchmark | answer |", "| --- | --- | --- |")
    for benchmark in benchmarks:
        yield f"| {title_of(benchmark)} | `{benchmark.__name__}` | {benchmark()} |"
    yield ""


def _shares(module: ModuleType, benchmarks: Sequence[Callable[..., Any]]) -> Iterator[str]:
    """Yield a section of the coverage page: a table of shares for each benchmark, or several of other columns."""
    yield from (f"## {title_of(module)}", "")
    for benchmark in benchmarks:
        yield from (f"### {title_of(benchmark)}", "", f"`{benchmark.__name__}`", "")
        for columns, cases in groupby(benchmark(), lambda case: tuple(case[1])):
            yield "| case | " + " | ".join(columns) + " |"
            yield "| --- |" + " ---: |" * len(columns)
            for name, shares in cases:
                yield f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in shares.values()) + " |"
            yield ""
