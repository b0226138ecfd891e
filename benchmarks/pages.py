"""The pages docs/results/speed.md and docs/results/coverage.md, which these commands measure and write whole."""

import inspect
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import headstart
from headstart.benchmarks import speed as speeds
from headstart.benchmarks.coverage import comparisons, few_labels, scores, settings, targets
from headstart.output.errors import UserError
from headstart.output.processors import count_processors

COVERAGE = (comparisons, settings, few_labels, targets, scores)
TEMPLATES = Path(__file__).with_name("templates")
Benchmark = Callable[[], Any]


def speed(only: Sequence[str] = (), output: Path = Path("docs/results/speed.md")) -> None:
    """Measure speed, and write the page.

    Args:
        only: Names of benchmarks that are printed and not written; by default all are written.
        output: The page.
    """
    write("speed.md", speeds.SECTIONS, _answers, only, output)


def coverage(only: Sequence[str] = (), output: Path = Path("docs/results/coverage.md")) -> None:
    """Count how often intervals hold and tests reject, and write the page.

    Args:
        only: As for `speed`.
        output: The page.
    """
    torch.set_num_threads(1)
    write("coverage.md", {title_of(module): module.BENCHMARKS for module in COVERAGE}, _shares, only, output)


def write(
    introduction: str,
    sections: Mapping[str, Sequence[Benchmark]],
    section: Callable[[Sequence[Benchmark]], Iterator[str]],
    only: Sequence[str],
    output: Path,
) -> None:
    """Print the sections of a page as they are measured, and write the page unless only some are wanted.

    Args:
        introduction: The template of what is above the sections.
        sections: Benchmarks by the title of their section.
        section: Yields the lines of a section.
        only: As for `speed`.
        output: The page.

    Raises:
        UserError: There is no benchmark of a name.
    """
    names = [benchmark.__name__ for benchmarks in sections.values() for benchmark in benchmarks]
    if unknown := [name for name in only if name not in names]:
        raise UserError(f"only: there is no benchmark {unknown[0]!r}; there are {', '.join(names)}")

    versions = f"Headstart {headstart.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}"
    lines = [
        (TEMPLATES / introduction).read_text(encoding="utf-8"),
        f"Measured with {versions} on {count_processors()} processors of {platform.machine()}.\n",
    ]
    for title, benchmarks in sections.items():
        if selected := [benchmark for benchmark in benchmarks if not only or benchmark.__name__ in only]:
            # Lines are printed as they are measured.
            for line in chain([f"## {title}", ""], section(selected)):
                print(line, flush=True)
                lines.append(line)
    if not only:
        output.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
        print(f"wrote {output}")


def title_of(benchmark: Benchmark | ModuleType) -> str:
    """Return the first line of a docstring, without its full stop."""
    return inspect.cleandoc(benchmark.__doc__ or "").splitlines()[0].rstrip(".")


def _answers(benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """Yield a table of the question of each benchmark, which is its docstring, and its answer."""
    yield from ("| question | benchmark | answer |", "| --- | --- | --- |")
    for benchmark in benchmarks:
        yield f"| {title_of(benchmark)} | `{benchmark.__name__}` | {benchmark()} |"


def _shares(benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """Yield a table of shares for each benchmark, whose cases have the same columns."""
    for benchmark in benchmarks:
        yield from (f"### {title_of(benchmark)}", "", f"`{benchmark.__name__}`", "")
        for index, (name, shares) in enumerate(benchmark()):
            if index == 0:
                yield from ("| case | " + " | ".join(shares) + " |", "| --- |" + " ---: |" * len(shares))
            yield f"| {name} | " + " | ".join(f"{100 * share:.1f}" for share in shares.values()) + " |"
        yield ""
