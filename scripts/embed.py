"""`headstart embed`: compute features of pictures once, and write them to a file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import NonNegativeInt

from headstart.datamodules.embedding import Embedded, embed_readable
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import find_source, read_pictures
from headstart.datamodules.photos.photo_source import Photos
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError, prefix_errors
from headstart.output.printable import print_written, say
from headstart.output.seeds import Seed
from headstart.output.version import describe_version
from headstart.scripts.feature_files import FeatureColumns, feature_file
from headstart.store.cache import cache_folder
from headstart.store.feature_table import StoreError

# Unreadable pictures that a line names.
QUOTED = 5


def embed(
    pictures: str,
    backbone: BackboneSpec = BackboneSpec(),  # noqa: B008 - frozen
    export: str | None = None,
    overwrite: bool = False,
    on_bad_image: Literal["skip", "stop"] = "skip",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
    seed: Seed = 0,
    num_workers: NonNegativeInt | None = None,
    cache_dir: str | None = None,
    **options: Any,
) -> dict[str, int]:
    """Compute features of pictures with a frozen network: the input of its classifier.

    Features are kept in the cache, where all commands find them. `--export` also writes them to a file.

    Args:
        pictures: A folder of pictures, or of folders of pictures; a picture; a CSV file with the column path; a data
            set of the Hugging Face Hub, `hf://owner/name`; or tar shards or Parquet files, by a path or URL with
            wildcards.
        backbone: The network.
        export: File for the features, whose ending chooses the format: .npz, .safetensors or .parquet. By default no
            file is written.
        overwrite: Replace the file if it exists.
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
        Number of pictures that were `computed` and `reused`.
    """
    engines = EngineOptions(**options)
    path = None if export is None else feature_file(export, overwrite)
    photos = read_pictures(pictures, cache_folder(cache_dir), "pictures")
    settings = (precision, device, num_workers, cache_dir, int(seed), engines.workers, engines.ray)
    try:
        with prefix_errors("pictures"):
            photos.packed_digests(cache_folder(cache_dir))
        # Rows are read when they are written.
        embedded = embed_readable(photos, backbone, *settings, copied=0)
    except StoreError as error:
        raise UserError(f"cache_dir: {error}") from error

    columns, computed = FeatureColumns(photos, find_root(pictures), embedded.stored), embedded.stored.computed
    summary = {"computed": computed, "reused": len(photos) - computed}
    count = f"{len(photos):,} picture{'s' * (len(photos) != 1)}"
    say(f"{count}: {summary['computed']:,} computed, {summary['reused']:,} reused")
    if isinstance(photos, Photos):
        report_left_out(photos.left_out, "pictures")
    report_unreadable(columns, on_bad_image)
    if path is not None:
        columns.write(path, describe(backbone, embedded, int(seed)))
        print_written([path])
    return summary


def find_root(pictures: str) -> str:
    """Return what the names of pictures in a folder begin with; those of a data set have names of their own."""
    path = Path(pictures).expanduser().absolute()
    return f"{path if path.is_dir() else path.parent}/" if find_source(pictures) is None else ""


def report_unreadable(columns: FeatureColumns, on_bad_image: Literal["skip", "stop"]) -> None:
    """Name pictures that cannot be decoded in one line, which is an error where they are not skipped."""
    unreadable = columns.stored.remarks
    if not unreadable:
        return
    quoted = ", ".join(f"{columns.name(index)} ({unreadable[index]})" for index in [*unreadable][:QUOTED])
    quoted += f" and {len(unreadable) - QUOTED:,} more" if len(unreadable) > QUOTED else ""
    line = f"{len(unreadable):,} of {len(columns.pictures):,} cannot be decoded: {quoted}"
    if on_bad_image == "stop":
        raise UserError(f"pictures: {line}; repair or remove them, or skip them with --on_bad_image=skip")
    say(f"WARNING: {line}; their features are NaN in exported files")


def describe(backbone: BackboneSpec, embedded: Embedded, seed: int) -> dict[str, Any]:
    """Return what decides the features of a picture, for the file."""
    return {
        "headstart": describe_version().removeprefix("headstart "),
        "backbone": asdict(backbone),
        "seed": seed,
        "weights_sha256": embedded.digest,
        "preprocessing": asdict(embedded.backbone.preprocessing),
        "precision": embedded.precision,
        "device": embedded.device.partition(":")[0],
    }
