"""The pages and pictures of docs/results, from finished sweeps: `python -m headstart.benchmarks results`."""

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from headstart.benchmarks.by_source import BOOTSTRAPS, source_rows, source_sentences
from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.leaderboard.tables import budgets_over_settings_rows, over_settings_rows, stability_rows
from headstart.evaluation.report.report import report
from headstart.output.errors import UserError
from headstart.output.figures import spelled
from headstart.output.markup import escape_markdown
from headstart.output.shipped_files import find_file
from headstart.output.tables import Cells, format_estimate, markdown_table

TEMPLATES = Path(__file__).with_name("templates")
SUITE, BUDGETS = "benchmarks/local/sweep/benchmark.yaml", "benchmarks/local/sweep/label_budgets.yaml"
PER_CLASS = [1, 2, 4, 8, 16]
# Those of the table of each setting, which has a row of many columns.
SHOWN = [1, 4, 16]
FIGURES = {"over_settings": "Interquartile means of all methods", "setup_stability": "Setup stability"}


def main(
    runs: list[str] = ["runs/sweep-benchmark"],  # noqa: B006 - options of the command line
    setups: list[str] = [],  # noqa: B006 - likewise
    budgets: str | None = None,
    sweep: str = SUITE,
    budgets_sweep: str = BUDGETS,
    tuned: str = "configs/evaluation/benchmark.yaml",
    output: str = "docs/results",
) -> None:
    """Write benchmark.md, k_shot.md, leaderboard.csv and the pictures.

    Args:
        runs: Folders of the sweep's runs.
        setups: Folders of further runs, for the setup stability alone.
        budgets: Folder of the runs with balanced orderings; without one k_shot.md is not written.
        sweep: The sweep file of the runs, for the page.
        budgets_sweep: The sweep file of the runs with balanced orderings, for the page.
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
        whole = leaderboard([*runs, *setups], output=f"{scratch}/setups") if setups else document
        report([*runs, *setups], f"{scratch}/report.html", f"{scratch}/figures", ["png"])
        for name in FIGURES:
            for figure in sorted(Path(scratch, "figures").glob(f"*{name}.png"))[:1]:
                shutil.copy(figure, folder / f"{name}.png")
        shutil.copy(Path(scratch, "leaderboard", "leaderboard.csv"), folder)

        sources = dict[str, Any]()
        for name, weights in {_names(each)[1]: str(each["weights"]) for each in document["settings"]}.items():
            one = leaderboard(runs, output=f"{scratch}/{weights}", tuned=tuned_methods, where={"weights": weights})
            if one["over_settings"]:
                sources[name] = one["over_settings"]
        _write(
            folder / "benchmark.md",
            commands=_commands(runs, setups, sweep),
            made_with=made_with(document, sweep),
            by_source=_table(source_rows(document, sources)),
            by_source_sentences=source_sentences(sources),
            bootstraps=BOOTSTRAPS,
            over=_table(over_settings_rows(document)),
            over_title=FIGURES["over_settings"],
            settings=_table(setting_rows(document["settings"])),
            stability=_table(stability_rows(whole)) if whole["setup_stability"] else "There are too few setups.",
            stability_title=FIGURES["setup_stability"],
        )

        if budgets is not None:
            labelled = leaderboard(budgets, output=f"{scratch}/budgets", tuned=tuned_methods, per_class=PER_CLASS)
            _write(
                folder / "k_shot.md",
                commands=f"headstart sweep {budgets_sweep} --workers 2\n"
                f"python -m headstart.benchmarks results --budgets {budgets}",
                made_with=made_with(labelled, budgets_sweep),
                over=_table(budgets_over_settings_rows(labelled["label_budgets"], with_intervals=False)),
                settings=_table(budget_rows(labelled["settings"])),
            )


def _write(page: Path, **parts: Any) -> None:
    """Write a page from the template of its name."""
    page.write_text((TEMPLATES / page.name).read_text(encoding="utf-8").format(**parts), encoding="utf-8")
    print(f"wrote {page}")


def _commands(runs: Sequence[str], setups: Sequence[str], sweep: str) -> str:
    """Return the commands that lead to the page, the last of which wrote it."""
    # The usual output of a sweep is runs/sweep- and the file's name.
    sweeps = [sweep, *(Path(sweep).with_stem(Path(folder).name.removeprefix("sweep-")) for folder in setups)]
    folders = f"--runs '{json.dumps([*runs])}'" + (f" --setups '{json.dumps([*setups])}'" if setups else "")
    commands = [f"headstart sweep {file} --workers 2" for file in sweeps]
    return "\n".join([*commands, f"python -m headstart.benchmarks results {folders} --sweep {sweep}"])


def made_with(document: Mapping[str, Any], sweep: str) -> str:
    """Return when and with which versions, on which material and how large the measurements of a leaderboard are.

    Args:
        document: The content of `leaderboard.json`.
        sweep: The sweep file.
    """
    settings = document["settings"]
    files = [Path(folder, "results.json") for setting in settings for folder in setting["folders"]]
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    environments = [{**each["protocol"], **each["environment"]} for each in documents]
    ended = datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)
    versions = [
        f"{title} {' and '.join(sorted({str(each.get(key, 'of an unknown version')) for each in environments}))}"
        for key, title in (("headstart", "Headstart"), ("torch", "PyTorch"), ("python", "Python"))
    ]
    traces = sum(each["orderings"] for setting in settings for each in setting["methods"])
    local = "benchmarks/local" in sweep
    material = "the local suite, with photos and weights beside the checkout" if local else "the public suite"
    public = " [The public suite](../sweeps.md#the-public-suite) needs downloads only." if local else ""
    return (
        f"Measured by {ended.day} {ended:%B %Y} with {', '.join(versions)}. "
        f"The material is {material} ([{sweep}](../../{sweep})). There are "
        f"{len(settings)} settings of {len({each['dataset'] for each in settings})} targets, with {traces:,} traces."
        + public
    )


def setting_rows(settings: Sequence[Mapping[str, Any]]) -> Cells:
    """Return a table with a row for each setting: its criterion, its best methods and its baseline.

    Args:
        settings: `settings` of `leaderboard.json`.
    """
    rows = [["target", "source", "threshold, limit", "tied for first", "samples", "baseline", "improvement [95 %]"]]
    for setting in settings:
        methods = {each["name"]: each for each in setting["methods"]}
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


def budget_rows(settings: Sequence[Mapping[str, Any]]) -> Cells:
    """Return a table with the best method of each setting after each number of labels per class.

    Args:
        settings: `settings` of `leaderboard.json`, with budgets.
    """
    rows = [["target", "source", *(title for count in SHOWN for title in (f"{count} per class", "baseline"))]]
    for setting in settings:
        cells = []
        for count in SHOWN:
            methods = {
                name: entry
                for name, entries in setting["label_budgets"].items()
                for entry in entries
                if entry["per_class"] == count
            }
            best = max(methods, key=lambda name: methods[name]["accuracy"]) if methods else ""
            tied = sum("a" in each.get("group", "") for each in methods.values()) - 1
            baseline = methods.get(setting["baseline"])
            cells.append(
                f"{100 * methods[best]['accuracy']:.1f} `{best}`" + f" + {tied}" * (tied > 0) if methods else ""
            )
            cells.append("" if baseline is None else f"{100 * baseline['accuracy']:.1f}")
        rows.append([*_names(setting), *cells])
    return rows


def _names(setting: Mapping[str, Any]) -> list[str]:
    """Return a target and a source as a person writes them: the source by its weights, if these name the network."""
    network = str(setting["backbone"]).removeprefix("timm/")
    weights = PurePath(str(setting["weights"])).stem
    source = weights.removeprefix(f"{network}_") if weights.startswith(f"{network}_") else f"{network}, {weights}"
    return [
        escape_markdown(spelled(str(name))) for name in (setting["dataset"], network if weights == "model" else source)
    ]


def _table(rows: Cells) -> str:
    return "\n".join(markdown_table(rows))
