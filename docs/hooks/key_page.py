"""The page of the keys of files: settings, rules, sweeps, registries and catalogs, from the types that read them."""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from docstring_parser import parse
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from headstart.contract.challenge import BlueRules, ByTeam, Challenge, Count, RedRules, ScoreRules
from headstart.contract.schema import ModelEntry, ModelRegistry, Preprocess, Stimulus
from headstart.evaluation.embeddings import Extraction
from headstart.portal.settings import Settings
from headstart.sweeps.sweep_file import KEY_MEANINGS

PATH = "reference/keys.md"
RULES: dict[str, type[Any]] = {
    "": Challenge,
    "teams": ByTeam,
    "teams.blue": BlueRules,
    "teams.red": RedRules,
    "teams.*.count": Count,
    "score": ScoreRules,
}
# Headings, how each file is given, and the types of the file and of its parts by their keys.
FILES: dict[str, tuple[str, dict[str, type[Any]]]] = {
    "Settings of a portal": (
        "`headstart portal --config portal.yaml`; the guide is [portal.md](../portal.md).",
        {"": Settings, "extraction": Extraction},
    ),
    "Rules of a challenge": (
        "`--challenge rules.yaml`; the guide is [challenge.md](../challenge.md).",
        RULES,
    ),
    "Model registry": (
        "`--registry registry.json`; the guide is [evaluation_contract.md](../evaluation_contract.md).",
        {"": ModelRegistry, "models": ModelEntry, "models.*.preprocess": Preprocess},
    ),
    "Stimuli catalog": ("`--catalog catalog.jsonl`, with one JSON object a line.", {"": Stimulus}),
}
INTRODUCTION = """\
# Configuration keys

Each option of a command is a key of its configuration file, with dots as levels: `--data.batch_size=8` is
`batch_size: 8` below `data:`. The pages of the [commands](commands/README.md) list the options. A class is named by
`class_path`, and its arguments are below `init_args`; the [Python API](python/README.md) lists them.

## Sweep file

`headstart sweep FILE`; the guide is [sweeps.md](../sweeps.md).
"""


def key_page() -> str:
    """Return the page, in Markdown."""
    lines = [INTRODUCTION, "| key | meaning |", "| --- | --- |"]
    lines += [f"| `{key}` | {_cell(text)} |" for key, text in KEY_MEANINGS.items()]
    for title, (guide, parts) in FILES.items():
        lines += ["", f"## {title}", "", guide, ""]
        for key, kind in parts.items():
            lines += ["", f"### `{key}`", ""] if key else []
            lines += ["| key | default | meaning |", "| --- | --- | --- |"]
            lines += [f"| `{name}` | {default} | {_cell(text)} |" for name, default, text in _keys(kind)]
    return "\n".join(lines) + "\n"


def _keys(kind: Any) -> Iterator[tuple[str, str, str | None]]:  # noqa: ANN401 - a dataclass or a model
    """Yield the keys of a type with their defaults and meanings."""
    if is_dataclass(kind):
        meanings = {each.arg_name: each.description for each in parse(kind.__doc__ or "").params}
        for field in fields(kind):
            made = field.default_factory() if field.default_factory is not MISSING else field.default
            yield field.name, _default(made), meanings.get(field.name)
        return
    for name, model in kind.model_fields.items():
        yield name, _default({} if model.default_factory else model.default), model.description


def _default(value: object) -> str:
    if value in (MISSING, PydanticUndefined):
        return "required"
    return "" if value is None or isinstance(value, BaseModel) or is_dataclass(value) else f"`{value}`"


def _cell(text: str | None) -> str:
    """Return text as a cell: on one line, its bars escaped."""
    return " ".join((text or "").split()).replace("|", "\\|")
