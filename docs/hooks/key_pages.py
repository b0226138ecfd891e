"""The page of the keys of files: settings, rules, sweeps, registries and catalogs, from the types that read them."""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from docstring_parser import parse
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from headstart.contract.challenge import BlueRules, ByTeam, Challenge, Count, RedRules, ScoreRules
from headstart.contract.schema import ModelEntry, ModelRegistry, Preprocess, Stimulus
from headstart.docs.hooks.option_tables import cell, code, default_text, table, type_name
from headstart.evaluation.embeddings import Extraction
from headstart.portal.settings import Settings
from headstart.sweeps.sweep_file import KEY_MEANINGS

PATH = "reference/keys.md"
HEAD = ("key", "type", "default", "meaning")
# Headings, the guide to each file, and the types of the file and of its parts by their keys.
FILES: tuple[tuple[str, str, dict[str, type[Any]]], ...] = (
    (
        "Settings of a portal",
        "`headstart portal --config portal.yaml` reads this file. The guide is [portal.md](../portal.md).",
        {"": Settings, "extraction": Extraction},
    ),
    (
        "Rules of a challenge",
        "`--challenge rules.yaml` names this file. The guide is [challenge.md](../challenge.md).",
        {
            "": Challenge,
            "teams": ByTeam,
            "teams.blue": BlueRules,
            "teams.red": RedRules,
            "teams.*.count": Count,
            "score": ScoreRules,
        },
    ),
    (
        "Model registry",
        "`--registry registry.json` names this file. The guide is [evaluation_contract.md](../evaluation_contract.md).",
        {"": ModelRegistry, "models": ModelEntry, "models.*.preprocess": Preprocess},
    ),
    (
        "Stimuli catalog",
        "`--catalog catalog.jsonl` names this file. Each line is one JSON object with these keys.",
        {"": Stimulus},
    ),
)
INTRODUCTION = """\
# Configuration keys

## Configuration of a command

Each option of a command is a key of its configuration file. Dots become levels:

```yaml
data:
  batch_size: 8        # --data.batch_size=8
  photos:
    class_path: DrawnPets
```

The pages of the [commands](commands/README.md) list the options. [`headstart train`](commands/train.md) lists those of
all tasks. A class is named by `class_path`, and its arguments are below `init_args`. The
[Python API](python/README.md) lists the arguments of each class.
"""
SWEEP = "`headstart sweep FILE` reads this file. The guide is [sweeps.md](../sweeps.md)."


def key_page() -> str:
    """Return the page, in Markdown."""
    lines = [INTRODUCTION, "## Sweep file", "", SWEEP, ""]
    lines += table(("key", "meaning"), ([code(key), cell(text)] for key, text in KEY_MEANINGS.items()))
    for title, guide, parts in FILES:
        lines += [f"## {title}", "", guide, ""]
        for key, kind in parts.items():
            lines += [f"### `{key}`", ""] if key else []
            lines += table(HEAD, _of_dataclass(kind) if is_dataclass(kind) else _of_model(kind))
    return "\n".join(lines)


def _of_dataclass(kind: Any) -> Iterator[list[str]]:  # noqa: ANN401 - a dataclass
    meanings = {each.arg_name: each.description for each in parse(kind.__doc__ or "").params}
    for field in fields(kind):
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        default = "required" if made is MISSING else "" if is_dataclass(made) else code(default_text(made))
        yield [code(field.name), code(type_name(field.type)), default, cell(meanings.get(field.name))]


def _of_model(kind: type[BaseModel]) -> Iterator[list[str]]:
    for name, field in kind.model_fields.items():
        default = field.get_default(call_default_factory=True) if field.default_factory is None else {}
        shown = "" if isinstance(default, BaseModel) else code(default_text(default))
        shown = "required" if default is PydanticUndefined else shown
        yield [code(name), code(type_name(field.annotation)), shown, cell(field.description)]
