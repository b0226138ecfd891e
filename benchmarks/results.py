"""The pages and pictures of docs/results, from finished sweeps: `python -m headstart.benchmarks results`."""

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas
import yaml
from matplotlib.figure import Figure

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.leaderboard.tables import over_settings_rows
from headstart.output.errors import UserError
from headstart.output.figures import GRID, INK, PALE, drawing, save, spelled, titles
from headstart.output.markup import escape_markdown
from headstart.output.shipped_files import find_file
from headstart.output.tables import Cells, format_estimate, markdown_table

TEMPLATES = Path(__file__).with_name("templates")
BOOTSTRAPS = 10_000
FIGURE = "over_settings.png"


def main(
    runs: list[str] = ["runs/sweep-benchmark"],  # noqa: B006 - options of the command line
    tuned: str = "configs/evaluation/benchmark.yaml",
    output: str = "docs/results",
) -> None:
    """Write benchmark.md, leaderboard.csv and the picture.

    Args:
        runs: Folders of the sweep's runs.
        tuned: Configuration of the leaderboard, with the tuned methods.
        output: Folder of the pages.
    """
    tuned_methods = yaml.safe_load(find_file(tuned).read_text(encoding="utf-8"))["tuned"]
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)

    with TemporaryDirectory() as scratch:
        document = leaderboard(runs, output=f"{scratch}/leaderboard", tuned=tuned_methods)
        if document["over_settings"] is None:
            raise UserError(f"runs: nothing to compare over settings in {', '.join(runs)}; give a sweep of two or more")
        save(plot_over_settings(document["over_settings"]), folder / FIGURE)
        shutil.copy(Path(scratch, "leaderboard", "leaderboard.csv"), folder)

        sources = dict[str, Any]()
        for name, weights in {_names(setting)[1]: str(setting["weights"]) for setting in document["settings"]}.items():
            one = leaderboard(runs, output=f"{scratch}/{weights}", tuned=tuned_methods, where={"weights": weights})
            if one["over_settings"]:
                sources[name] = one["over_settings"]

        _write(
            folder / "benchmark.md",
            made_with=made_with(document),
            by_source=_table(source_rows(document, sources)),
            by_source_sentences=source_sentences(sources),
            bootstraps=BOOTSTRAPS,
            over=_table(over_settings_rows(document)),
            settings=_table(setting_rows(document["settings"])),
        )


def _write(page: Path, **parts: Any) -> None:
    """Write a page from the template of its name."""
    page.write_text((TEMPLATES / page.name).read_text(encoding="utf-8").format(**parts), encoding="utf-8")
    print(f"wrote {page}")


def made_with(document: Mapping[str, Any]) -> str:
    """Return when, with which versions and on how many settings the runs of a leaderboard were measured.

    Args:
        document: The content of `leaderboard.json`.
    """
    settings = document["settings"]
    files = [Path(folder, "results.json") for setting in settings for folder in setting["folders"]]
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    environments = [{**document["protocol"], **document["environment"]} for document in documents]
    ended = datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)
    versions = [
        f"{title} {' and '.join(sorted({str(run.get(key, 'of an unknown version')) for run in environments}))}"
        for key, title in (("headstart", "Headstart"), ("torch", "PyTorch"), ("python", "Python"))
    ]
    traces = sum(method["orderings"] for setting in settings for method in setting["methods"])
    return (
        f"Measured by {ended.day} {ended:%B %Y} with {', '.join(versions)}. There are "
        f"{len(settings)} settings of {len({row['dataset'] for row in settings})} targets, with {traces:,} traces."
    )


def source_rows(document: Mapping[str, Any], sources: Mapping[str, Any]) -> list[list[str]]:
    """Return a table of the methods by source, with an interval over targets.

    Args:
        document: The content of `leaderboard.json`.
        sources: `over_settings` of the leaderboard of each source alone, by the source's name.
    """
    ranked = {
        source: {method["name"]: (rank, method) for rank, method in enumerate(over["methods"], 1)}
        for source, over in sources.items()
    }
    rows = [["method", *ranked, "over targets"]]
    for name, (mean, low, high) in over_targets(document).items():
        cells = []
        for methods in ranked.values():
            rank, method = methods[name]
            cells.append(f"{method['interquartile_mean']:.2f} ({rank})")
        rows.append([name, *cells, f"{mean:.2f} [{low:.2f}, {high:.2f}]"])
    return rows


def over_targets(document: Mapping[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Return the geometric mean of each method's relative samples over settings, and its interval over targets.

    Args:
        document: The content of `leaderboard.json`.
    """
    names = [method["name"] for method in document["over_settings"]["methods"]]
    settings = [setting for setting in document["settings"] if setting["name"] in document["over_settings"]["settings"]]
    means = [{method["name"]: method["restricted_mean"] for method in setting["methods"]} for setting in settings]
    logarithms = np.log([[row[name] for name in names] for row in means])
    logarithms -= logarithms.mean(1, keepdims=True)

    targets = np.array([setting["dataset"] for setting in settings])
    of_targets = np.array([logarithms[targets == target].mean(0) for target in dict.fromkeys(targets)])
    drawn = np.random.default_rng(0).integers(len(of_targets), size=(BOOTSTRAPS, len(of_targets)))
    ends = np.percentile(of_targets[drawn].mean(1), (2.5, 97.5), axis=0)
    means_and_ends = np.exp([of_targets.mean(0), *ends]).T
    return dict(zip(names, map(tuple, means_and_ends.tolist()), strict=True))


def source_sentences(sources: Mapping[str, Any]) -> str:
    """Return which methods are below or above the mean of all methods with every source, and how alike the orders are.

    Args:
        sources: As for `source_rows`.
    """
    means = {
        source: {method["name"]: method["interquartile_mean"] for method in over["methods"]}
        for source, over in sources.items()
    }
    frame = pandas.DataFrame(means)
    below = [f"`{name}`" for name in frame.index[(frame < 1).all(axis=1)]]
    above = [f"`{name}`" for name in frame.index[(frame > 1).all(axis=1)]]
    tau = frame.corr(method="kendall")
    pairs = [f"{one} and {other} {tau.loc[one, other]:.2f}" for one, other in combinations(means, 2)]
    return (
        f"Fewer samples than the mean of all methods with every source: {', '.join(below) or 'none'}. More with every "
        f"source: {', '.join(above) or 'none'}. Kendall's tau between the orders of two sources: "
        f"{', '.join(pairs) or 'there is one'}."
    )


def setting_rows(settings: Sequence[Mapping[str, Any]]) -> Cells:
    """Return a table with a row for each setting: its criterion, its best methods and its baseline.

    Args:
        settings: `settings` of `leaderboard.json`.
    """
    rows = [["target", "source", "threshold, limit", "tied for first", "samples", "baseline", "improvement [95 %]"]]
    for setting in settings:
        methods = {method["name"]: method for method in setting["methods"]}
        best, baseline = methods[setting["tied_for_first"][0]], methods.get(setting["baseline"])
        gained, ends = best["relative_improvement"], best["relative_improvement_interval"]
        rows.append(
            [
                *_names(setting),
                f"{setting['threshold']:.0%}, {setting['restricted_at']}",
                ", ".join(f"`{name}`" for name in setting["tied_for_first"]),
                f"{best['restricted_mean']:.1f}",
                "" if baseline is None else f"{baseline['restricted_mean']:.1f} ({baseline['reached']})",
                "" if gained is None else f"{format_estimate(gained, ends, '.0f')} %",
            ]
        )
    return rows


def _names(setting: Mapping[str, Any]) -> list[str]:
    """Return a target and a source as a person writes them: the source by its weights, if these name the network."""
    network = str(setting["backbone"]).removeprefix("timm/")
    weights = PurePath(str(setting["weights"])).stem
    source = weights.removeprefix(f"{network}_") if weights.startswith(f"{network}_") else f"{network}, {weights}"
    return [
        escape_markdown(spelled(str(name))) for name in (setting["dataset"], network if weights == "model" else source)
    ]


@drawing()
def plot_over_settings(over: Mapping[str, Any]) -> Figure:
    """Plot the interquartile mean of each method over settings with its interval, the best method on top.

    Args:
        over: `over_settings` of `leaderboard.json`.
    """
    methods = over["methods"]
    figure = Figure(figsize=(7, 1.2 + 0.3 * len(methods)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1, color=PALE, linewidth=1)
    for row, method in enumerate(methods):
        axes.plot(method["interquartile_mean_interval"], [row, row], color=INK, linewidth=2)
        axes.plot([method["interquartile_mean"]], [row], "o", color=INK)

    axes.set_yticks(range(len(methods)), titles([method["name"] for method in methods]))
    axes.invert_yaxis()
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    axes.set_xlabel("Samples to criterion, 1 being the mean of all methods")
    axes.set_title(f"Interquartile mean, with its 95 % interval\nOver {over['of']}", loc="left")
    return figure


def _table(rows: Cells) -> str:
    return "\n".join(markdown_table(rows))
