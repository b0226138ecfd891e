"""The pages of the Python API: an entry for each public name, which mkdocstrings fills from its docstring."""

from collections.abc import Iterator
from importlib import import_module

from headstart.cli.commands import EVALUATIONS

FOLDER = "reference/python"
# The names of these packages are those of their `__all__`.
PACKAGES = {
    "headstart": "The functions of the package itself.",
    "headstart.modules": "Transfer methods, backbones and the comparison.",
    "headstart.datamodules": "Data sets and the streams that feed them.",
    "headstart.metrics": "Metrics over arrays. They need no file, no command and no torch.",
    "headstart.callbacks": "Callbacks of a comparison.",
}
MODULES = {
    "headstart.estimators": ("Classifiers with scikit-learn's interface.", ["HeadstartClassifier"]),
    "headstart.output.errors": ("Errors that a user can act on.", ["UserError", "UsageError"]),
}
EVALUATION = (
    "The functions of the evaluation commands. They take the same arguments and return what the JSON files hold."
)


def python_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the Python API, each as its path in docs/ and its text."""
    contents = {name: (text, list(import_module(name).__all__)) for name, text in PACKAGES.items()} | MODULES
    rows = [f"- [`{name}`]({name}.md): {text}" for name, (text, _) in contents.items()]
    rows.append(f"- [`headstart.evaluation`](headstart.evaluation.md): {EVALUATION.partition('. ')[0]}.")
    yield f"{FOLDER}/README.md", "\n".join(["# Python API", "", *rows])

    for name, (text, names) in contents.items():
        yield f"{FOLDER}/{name}.md", _page(name, text, [f"{name}.{each}" for each in names])
    yield f"{FOLDER}/headstart.evaluation.md", _page("headstart.evaluation", EVALUATION, list(_functions()))


def _functions() -> Iterator[str]:
    for command in EVALUATIONS.values():
        module, _, name = command.function.partition(":")
        yield f"headstart.{module}.{name or module.rpartition('.')[2]}"


def _page(name: str, text: str, entries: list[str]) -> str:
    return "\n\n".join([f"# `{name}`", text, *(f"::: {entry}" for entry in entries)])
