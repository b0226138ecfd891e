"""`headstart cka-registry`: registries made from names of the libraries' models, and checked."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headstart.contract.documents import Registry, read_registry, registry_path
from headstart.contract.versions import VERSIONS
from headstart.evaluation.alignment.registry_entries import make_entry
from headstart.evaluation.embeddings import choose_taps
from headstart.modules.networks.build import build
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.spec import prefix_model_errors
from headstart.output.errors import UserError, require_different
from headstart.output.files import output_file, write_text
from headstart.output.printable import printable, say


def cka_registry(
    make: list[str] | str | None = None,
    check: bool = False,
    registry: str | None = None,
    models: list[str] | None = None,
    output: str | None = None,
    overwrite: bool = False,
    random_weights: bool = False,
    allow_modules: list[str] | None = None,
) -> dict[str, Any]:
    """Make a model registry from names of the libraries' models, or check every entry.

    Args:
        make: Names of models of timm, torchvision and open_clip, separated by spaces or commas, such as
            `resnet50.a1_in1k` or `torchvision:resnet50`. Entries are written from the libraries' own data
            configuration, without a download.
        check: Run every entry's network twice on one picture. It must build, call its layer once, and return the same
            embedding both times, with output_dim columns.
        registry: Model registry to check; by default the file in HACKATHON_MODEL_REGISTRY, else
            configs/model_registry.json.
        models: Entries to check; by default all of them.
        output: File to write a new registry to.
        overwrite: Replace an existing registry.
        random_weights: Whether to run networks with random weights, if pre-trained ones are not available. Widths and
            layers do not depend on the weights.
        allow_modules: Python modules that models of source `custom` may come from; none by default.

    Returns:
        Columns of the embedding by name of each entry that was run, in this order.

    Raises:
        UserError: No step is chosen; an entry cannot be made; or entries fail, after all have been run.
    """
    texts = [make] if isinstance(make, str) else make or []
    names_made = [name for text in texts for name in text.replace(",", " ").split()]
    if not (names_made or check):
        raise UserError("make, check: neither is given; give names of models, or --check=true")
    path = _write_made(names_made, registry, output, overwrite) if names_made else registry_path(registry)
    if output is not None and not names_made:
        raise UserError(f"output: {output!r} is given without make; a check writes no file")

    recorded = read_registry(path)
    names = list(recorded.entries) if models is None else models
    recorded.require("models", names)
    require_different("models", names)
    if not check:
        return {}

    widths, failures = _run_all(recorded, names, random_weights, allow_modules or [])
    if failures:
        listed = ", ".join(map(printable, failures))
        raise UserError(f"registry: {len(failures)} of {len(names)} entries of {str(path)!r} fail: {listed}")
    return widths


def _write_made(names: Sequence[str], registry: str | None, output: str | None, overwrite: bool) -> Path:
    if registry is not None:
        raise UserError(f"registry: {registry!r} is given with make; give the new file as output")
    if output is None:
        raise UserError("output: is missing; give the file to write the registry to")
    path = output_file("output", output)
    require_different("make", names)

    entries = [make_entry(name) for name in names]
    counts = Counter(entry.model_name for entry in entries)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise UserError(f"make: two models have the name {twice[0]!r}; append a dot and a tag of weights to one")

    models = [entry.model_dump(mode="json", exclude_unset=True) for entry in entries]
    document = {"contract_version": VERSIONS[-1], "models": models}
    write_text(path, json.dumps(document, indent=2) + "\n", overwrite)
    for entry in entries:
        width = "" if entry.output_dim is None else f", {entry.output_dim} columns"
        say(f"made {entry.model_name}: {entry.source}, {entry.weights}, layer {entry.layer}{width}")
    say(f"wrote {path}")
    return path


def _run_all(
    known: Registry, names: Sequence[str], random_weights: bool, allowed: Sequence[str]
) -> tuple[dict[str, int], list[str]]:
    """Run networks one after the other, and return their widths, and the names of those that fail."""
    widths, failures = {}, []
    for number, name in enumerate(names, 1):
        shown = f"{number}/{len(names)} {printable(name)}"
        try:
            widths[name] = _run(known, name, random_weights, allowed)
        except UserError as error:
            failures.append(name)
            say(f"{shown}: fails: {error}")
        else:
            entry = known.entries[name]
            say(f"{shown}: layer {printable(entry.layer)}, {widths[name]} columns, the same in two passes")
    return widths, failures


def _run(known: Registry, name: str, random_weights: bool, allowed: Sequence[str]) -> int:
    entry = known.entries[name]
    spec = known.networks([name], seed=0, allowed_modules=allowed, random_weights=random_weights)[name]
    with prefix_model_errors(name):
        network, preprocessing = build(spec)
    (width,) = LayerEmbedding(name, network, choose_taps(entry), preprocessing, spec.forward_args).widths
    return width
