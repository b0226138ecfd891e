"""The commands of `headstart`, by the question that they answer. Reading this list imports none of them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        summary: What it does, in a few words.
        function: Its module in the suite; `module:function` if the function is not called like the module.
        extra: The optional extra that it needs.
        preset: Options that come before the user's.
    """

    summary: str
    function: str
    extra: str = ""
    preset: tuple[str, ...] = ()


TRAIN = "train:main"
COMMANDS = {
    "How few samples does a transfer method need?": {
        "demo": Command("compare three methods on drawings, offline", TRAIN, preset=("--config=demo.yaml",)),
        "train": Command("compare transfer methods, or train one model", TRAIN),
        "sweep": Command("run many comparisons", "sweep:main"),
        "sample-efficiency": Command("score a run by another criterion", "evaluation.sample_efficiency"),
        "verify": Command("measure stored traces again, and compare", "cli.verify"),
        "leaderboard": Command("rank methods over many runs", "evaluation.leaderboard.leaderboard"),
        "forecast": Command("forecast how many labels you need", "evaluation.forecast.forecast"),
        "report": Command("write a page about runs", "evaluation.report.report", "report"),
        "dashboard-view": Command("save a W&B view of averages over seeds", "scripts.dashboard_view", "workspaces"),
    },
    "How accurate is a classifier from few labelled photos?": {
        "fit": Command("fit a classifier to photos in class folders", "evaluation.classifiers.fit"),
        "predict": Command("predict the classes of photos", "evaluation.classifiers.predict"),
    },
    "How similar are the representations of two models?": {
        "cka": Command("compare models on stimuli, or score a submission", "evaluation.alignment.cka"),
        "cka-search": Command("search for a submission with a high score", "evaluation.alignment.cka_search"),
        "cka-registry": Command("write a model registry", "evaluation.alignment.cka_registry"),
        "validate": Command("validate a submission", "scripts.validate_submission:validate"),
        "challenge-bundle": Command(
            "write a challenge for Codabench or EvalAI", "evaluation.challenge_bundle.challenge_bundle"
        ),
        "submit": Command("submit a document to a portal; see also submissions", "portal.client:submit"),
        "submissions": Command("", "portal.client:list_submissions"),
        "portal": Command("serve a challenge; see also portal worker, portal admin", "portal.serve:main", "portal"),
        "portal worker": Command("", "portal.worker:main", "portal"),
        "portal admin": Command("", "portal.admin:main", "portal"),
    },
    "Which source model transfers best, and how stable is the answer?": {
        "transferability": Command(
            "score sources on targets with transferability metrics", "evaluation.sources.transferability"
        ),
        "target-selection": Command("score targets for one source", "evaluation.target_selection.target_selection"),
        "performances": Command("collect the accuracies of runs in one table", "evaluation.performances"),
        "stability": Command("measure how stable rankings are", "evaluation.stability.stability"),
        "published": Command("audit tables from published studies", "evaluation.published.published"),
        "audit": Command("audit a table of metric scores and accuracies", "evaluation.audit.audit"),
    },
    "Look up, store and convert": {
        "list": Command("list methods, data sets, models, metrics, ...", "evaluation.listing:list_choices"),
        "cache": Command("show and delete stored data; see also cache verify", "cli.cache"),
        "cache verify": Command("", "cli.cache_verify"),
        "embed": Command("compute features of pictures and write them to files", "scripts.embed"),
        "write-photos": Command("write the photos of a data set to files", "scripts.write_photos"),
        "write-catalog": Command("write a stimuli catalog", "scripts.write_catalog"),
    },
}

COMMAND_BY_NAME = {name: command for group in COMMANDS.values() for name, command in group.items()}
# Commands whose required options are given without their names.
POSITIONAL = {"sample-efficiency", "validate", "verify", "leaderboard", "forecast", "report", "performances", "list"}
POSITIONAL |= {"dashboard-view", "embed", "write-photos", "write-catalog", "cache verify", "predict"}
# An option of a command that may come first without its name, beside others that are required, or not required itself.
FIRST_OPTION = {"fit": "photos", "published": "name", "submit": "file", "audit": "table", "stability": "table"}
# The commands of `evaluate.py`.
EVALUATIONS = {name: command for name, command in COMMAND_BY_NAME.items() if command.function.startswith("evaluation.")}

COMPARISON = "comparison"
# The command line of each task of `headstart train`.
TASKS = {
    COMPARISON: "headstart.cli.comparison:ComparisonCLI",
    "source_training": "headstart.cli.source_training:SourceTrainingCLI",
    "target_accuracy": "headstart.cli.target_accuracy:TargetAccuracyCLI",
}


def help_lines(commands: Mapping[str, Command], prog: str) -> list[str]:
    """List commands, those of each question together.

    Args:
        commands: The commands.
        prog: The program that runs them.
    """
    lines = [f"usage: {prog} COMMAND [OPTIONS] | COMMAND --help | --version"]
    for question, group in COMMANDS.items():
        listed = [f"  {name:18}  {each.summary}" for name, each in group.items() if name in commands and each.summary]
        lines += [question, *listed, ""] if listed else []
    return lines[:-1]
