"""The card beside exported features: what they are, as JSON and as a page that the Hugging Face Hub shows."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import yaml

from headstart.datamodules.photos.folder_listing import list_kinds
from headstart.output.markup import escape_markdown
from headstart.output.version import describe_version
from headstart.scripts.exported_features import count_pictures

JSON, PAGE = "card.json", "README.md"
# Unreadable pictures that the page names.
NAMED = 20
# Packages on which rows depend, or which read them.
PACKAGES = ("torch", "torchvision", "timm", "pillow", "numpy")
SIZES = {10**3: "n<1K", 10**4: "1K<n<10K", 10**5: "10K<n<100K", 10**6: "100K<n<1M", 10**7: "1M<n<10M"}
LARGER = "n>10M"
LOADING = {
    "npy": """import csv, numpy
features = numpy.load("features.npy", mmap_mode="r")
index = list(csv.DictReader(open("index.csv", encoding="utf-8", newline="")))""",
    "safetensors": """import glob, numpy
from safetensors.numpy import load_file
features = numpy.concatenate([load_file(name)["features"] for name in sorted(glob.glob("features-*.safetensors"))])""",
    "parquet": """import pyarrow.parquet
table = pyarrow.parquet.read_table("features.parquet")
features = table["features"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)""",
}


def versions() -> dict[str, str]:
    """Return the versions of the suite, of Python and of the packages on which rows depend."""
    found = {"headstart": describe_version().removeprefix("headstart "), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def card_page(card: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        card: What card.json holds.
    """
    count, backbone, prepared = card["pictures"], card["backbone"], card["preprocessing"]
    title = f"Features of {count_pictures(count)} by {backbone['name']}"

    header = {
        "pretty_name": title,
        "task_categories": ["image-feature-extraction"],
        "tags": ["headstart", "features"],
        "size_categories": [next((name for size, name in SIZES.items() if count < size), LARGER)],
    }

    origin = f"registry {backbone['registry']}" if backbone["registry"] else f"weights {backbone['weights']}"
    facts = {
        "pictures": f"{count:,}" + (f" of {len(card['classes'])} classes" if card["classes"] else ""),
        "features": f"{card['width']:,} of each picture, {card['dtype']}",
        "network": f"{backbone['name']}, {origin}",
        "SHA-256 of the weights": card["weights_sha256"],
        "preprocessing": ", ".join(f"{name} {value}" for name, value in prepared.items()),
        "arithmetic": f"{card['precision']} on {card['device']}",
        "seed": str(card["seed"]),
        "versions": ", ".join(f"{name} {each}" for name, each in card["versions"].items()),
        "SHA-256 of the pictures": card["pictures_sha256"],
    }
    rows = [f"| {name} | {_cell(text)} |" for name, text in facts.items()]

    page = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---",
        f"# {escape_markdown(title)}",
        "What enters the classifier of a frozen network, one row a picture. `card.json` holds the same for programs.",
        "\n".join(["| | |", "| --- | --- |", *rows]),
        f"```python\n{LOADING[card['format']]}\n```",
        *_remarks(card),
        "Written by:",
        f"```\n{card['command']}\n```",
    ]
    return "\n\n".join(page) + "\n"


def _remarks(card: Mapping[str, Any]) -> Sequence[str]:
    remarks = []
    if card["left_out"]:
        remarks.append(f"Files beside the pictures that are left out: {_cell(list_kinds(card['left_out']))}.")
    if card["dtype"] == "float16":
        remarks.append("Features are computed in float32 and rounded to float16: to 11 significant bits.")
    if unreadable := card["unreadable"]:
        named = [f"- {_cell(name)}: {_cell(reason)}" for name, reason in [*unreadable.items()][:NAMED]]
        more = len(unreadable) - len(named)
        named += [f"- and {more} more, which card.json names"] if more else []
        title = f"**{count_pictures(len(unreadable))} cannot be decoded, with NaN as features:**"
        remarks += [title, "\n".join(named)]
    return remarks


def _cell(text: str) -> str:
    return escape_markdown(text).replace("|", "\\|")
