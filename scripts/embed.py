"""`headstart embed`: compute features of pictures once, and write them to files."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import NonNegativeInt

from headstart.datamodules.feature_extraction import Choice, Described, Extracted, extract
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import find_source, read_pictures
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_policy import Resources, device_kind
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.arguments import as_arguments
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.scripts.exported_features import Dtype, ExportedFeatures, count_pictures
from headstart.scripts.feature_folder import FeatureFolder
from headstart.scripts.feature_formats import Format
from headstart.store.cache import cache_folder
from headstart.store.segments import StoreError

# Unreadable pictures that a line names.
QUOTED = 5


def embed(
    pictures: str,
    backbone: BackboneSpec = BackboneSpec(),  # noqa: B008 - frozen
    export: str | None = None,
    format: Format = "npy",  # noqa: A002 - name of the option
    dtype: Dtype = "float32",
    overwrite: bool = False,
    on_bad_image: Literal["skip", "stop"] = "skip",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    seed: NonNegativeInt = 0,
    num_workers: NonNegativeInt | None = None,
    cache_dir: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Compute features of pictures with a frozen network: the input of its classifier.

    Features are kept in the store, where all commands find them. `--export` also writes them to files, with an index of
    the pictures and a card that describes how they were made.

    Args:
        pictures: A folder of pictures, or of folders of pictures; a picture; a CSV file with the column path; a data
            set of the Hugging Face Hub, `hf://owner/name`; or tar shards or Parquet files, by a path or URL with
            wildcards.
        backbone: The network.
        export: Folder for the files. By default no files are written.
        format: `npy` writes features.npy and index.csv. `safetensors` writes files of a gigabyte and index.csv.
            `parquet` writes one table, features.parquet.
        dtype: Type of the numbers in the files. float16 takes half the space and keeps 11 significant bits.
        overwrite: Replace other features in the folder.
        on_bad_image: `skip` reports pictures that cannot be decoded and writes NaN as their features. `stop` raises an
            error after all others are computed.
        precision: Arithmetic of the network. `auto` uses bfloat16 if the hardware supports it, else float32.
        device: Device of the network. `auto` uses a GPU if there is one.
        seed: Seed of random weights.
        num_workers: Number of processes that decode pictures. The default is one per processor, and one in a task of a
            Ray cluster.
        cache_dir: Folder of stored features. The default is HEADSTART_CACHE, or else a folder in the user's cache
            directory.
        **options: Options of `EngineOptions`.

    Returns:
        Number of pictures that were `computed` and `reused`; and what card.json holds if it was written.
    """
    engines = EngineOptions(**options)
    folder = None
    if export is not None:
        folder = FeatureFolder(export, format, overwrite)
    elif (format, dtype, overwrite) != ("npy", "float32", False):
        raise UserError("export: --format, --dtype and --overwrite need a folder; give one")

    choice = Choice(backbone, precision, device, int(seed))
    resources = Resources(cache_folder(cache_dir), "pictures", num_workers, engines=engines)
    given = read_pictures(pictures, resources.cache, "pictures")
    extracted = compute(given, choice, resources, engines)
    stored = extracted.stored

    exported = ExportedFeatures(
        given,
        find_root(pictures),
        given.digests(resources.cache),
        stored.rows,
        extracted.backbone.width,
        stored.remarks,
        dtype,
    )

    summary = {"computed": stored.computed, "reused": len(exported) - stored.computed}
    say(f"{count_pictures(len(exported))}: {summary['computed']:,} computed, {summary['reused']:,} reused")
    if isinstance(given, Photos):
        report_left_out(given.left_out, "pictures")
    report_unreadable(exported, on_bad_image)
    if folder is None:
        return summary

    files = {"on_bad_image": on_bad_image, "export": export, "format": format, "dtype": dtype}
    about = {**describe_origin(choice, extracted.backbone), "command": describe_command(pictures, choice, files)}
    return {**summary, **folder.write_features(exported, about)}


def find_root(pictures: str) -> str:
    """Return what the names of pictures in a folder begin with; those of a data set have names of their own."""
    path = Path(pictures).expanduser().absolute()
    return f"{path if path.is_dir() else path.parent}/" if find_source(pictures) is None else ""


def compute(given: Pictures, choice: Choice, resources: Resources, engines: EngineOptions) -> Extracted:
    """Compute the features that are not stored yet; errors of the store name the option."""
    try:
        return extract(given, choice, resources, engines)
    except StoreError as error:
        raise UserError(f"cache_dir: {error}; choose another folder") from error


def _quote(quoted: Sequence[str], count: int) -> str:
    """List the first of some texts, and how many more there are."""
    return ", ".join(quoted) + (f" and {count - len(quoted):,} more" if count > len(quoted) else "")


def report_unreadable(exported: ExportedFeatures, on_bad_image: Literal["skip", "stop"]) -> None:
    """Name pictures that cannot be decoded in one line, which is an error where they are not skipped."""
    unreadable = exported.unreadable
    if not unreadable:
        return
    quoted = [f"{exported.name(index)} ({unreadable[index]})" for index in [*unreadable][:QUOTED]]
    line = f"{len(unreadable):,} of {len(exported):,} cannot be decoded: {_quote(quoted, len(unreadable))}"
    if on_bad_image == "stop":
        raise UserError(f"pictures: {line}; repair or remove them, or skip them with --on_bad_image=skip")
    say(f"WARNING: {line}; their features are NaN in exported files")


def describe_origin(choice: Choice, backbone: Described) -> dict[str, Any]:
    """Return what decides the features of a picture, for the card."""
    assert backbone.network.preprocessing is not None
    return {
        "backbone": asdict(choice.backbone),
        "seed": choice.seed,
        "weights_sha256": backbone.network.loaded,
        "preprocessing": asdict(backbone.network.preprocessing),
        "precision": backbone.precision,
        "device": device_kind(backbone.device),
    }


def describe_command(pictures: str, choice: Choice, files: Mapping[str, Any]) -> str:
    """Return the command line that writes the same files."""
    of_backbone = {f"backbone.{name}": value for name, value in asdict(choice.backbone).items() if value}
    of_choice = {name: getattr(choice, name) for name in ("precision", "device", "seed")}
    return shlex.join(["headstart", "embed", pictures, *as_arguments({**of_backbone, **of_choice, **files})])
