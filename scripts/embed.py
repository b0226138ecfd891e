"""`headstart embed`: features of pictures, computed once, kept in the store and written as files."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import NonNegativeInt

from headstart.datamodules.embedding import read_pictures, store_features
from headstart.datamodules.photos.photo_source import Pictures
from headstart.engines.options import EngineOptions
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.arguments import as_arguments
from headstart.output.errors import UserError
from headstart.output.printable import say
from headstart.scripts.exported_features import Dtype, ExportedFeatures
from headstart.scripts.feature_folder import FeatureFolder
from headstart.scripts.feature_formats import Format
from headstart.store.cache import cache_folder
from headstart.store.row_store import StoredRows
from headstart.store.segments import StoreError

# Unreadable pictures that a line names.
QUOTED = 5


class Computing(EngineOptions):
    """How features are computed.

    Args:
        precision: Arithmetic of the network; `auto` takes bfloat16 where the processor or GPU gains from it.
        device: Where it runs; `auto` takes a GPU where there is one.
        seed: Seed of random weights.
        num_workers: Processes that decode pictures; by default one per processor.
        cache_dir: Folder of stored features; by default that in HEADSTART_CACHE, else one in the user's cache
            directory.
        **options: Options of `EngineOptions`.
    """

    def __init__(
        self,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
        seed: NonNegativeInt = 0,
        num_workers: NonNegativeInt | None = None,
        cache_dir: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.chosen: dict[str, Any] = {"precision": precision, "device": device, "seed": int(seed)}
        self.num_workers, self.cache_dir = num_workers, cache_dir


@dataclass(frozen=True)
class Computed:
    """Features of pictures in the store.

    Attributes:
        stored: Features, and then thumbnails, `[pictures, width + 64]`; remarks on unreadable pictures.
        width: Number of features.
        about: What they depend on, for the card: `weights_sha256`, `preprocessing`, `precision` and `device`.
    """

    stored: StoredRows
    width: int
    about: dict[str, Any]


def embed(
    pictures: str,
    backbone: BackboneSpec = BackboneSpec(),  # noqa: B008 - frozen
    export: str | None = None,
    format: Format = "npy",  # noqa: A002 - name of the option
    dtype: Dtype = "float32",
    on_bad_image: Literal["skip", "stop"] = "skip",
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Compute features of pictures with a frozen network: what enters its classifier.

    They are kept in the store, where all commands find them. With `--export` they are written as files, too, beside
    what is known of each picture and a card that says how they were made.

    Args:
        pictures: A folder, whose pictures come first, then those of its folders, each in the order of their names.
        backbone: The network.
        export: Folder for the files; by default none are written.
        format: `npy` for features.npy and index.csv; `safetensors` for files of a gigabyte and index.csv; `parquet` for
            features.parquet, with all in one table.
        dtype: Type of the numbers in the files. float16 takes half the space and keeps 11 significant bits.
        on_bad_image: What happens if pictures cannot be decoded: `skip` names them and writes NaN as their features,
            `stop` raises an error when all others are computed.
        overwrite: Replace other features in the folder.
        **options: Options of `Computing`.

    Returns:
        Number of pictures that were `computed` and `reused`; and what card.json holds if it was written.
    """
    computing = Computing(**options)
    folder = None
    if export is not None:
        folder = FeatureFolder(export, format, overwrite)
    elif (format, dtype, overwrite) != ("npy", "float32", False):
        raise UserError("export: without a folder, --format, --dtype and --overwrite have no effect; name one")

    given = read_given(pictures)
    computed = compute(given, backbone, computing)
    stored = computed.stored
    exported = ExportedFeatures(
        given,
        f"{Path(pictures).expanduser().absolute()}/",
        given.digests(cache_folder(computing.cache_dir)),
        stored.rows,
        computed.width,
        stored.remarks,
        dtype,
    )
    summary = {"computed": stored.computed, "reused": len(exported) - stored.computed}
    say(f"{len(exported):,} pictures: {summary['computed']:,} computed, {summary['reused']:,} reused")
    report_unreadable(exported, on_bad_image)
    if folder is None:
        return summary

    chosen = {**computing.chosen, "on_bad_image": on_bad_image, "export": export, "format": format, "dtype": dtype}
    about = {
        "backbone": asdict(backbone),
        "seed": computing.chosen["seed"],
        **computed.about,
        "command": describe_command(pictures, backbone, chosen),
    }
    return {**summary, **folder.write_features(exported, about)}


def read_given(pictures: str) -> Pictures:
    """List the pictures that the command was given."""
    try:
        return read_pictures(pictures)
    except UserError as error:
        # From Python, the argument is called otherwise.
        raise UserError(str(error).replace("photos: ", "pictures: ", 1)) from error


def compute(given: Pictures, backbone: BackboneSpec, computing: Computing) -> Computed:
    """Compute the features that are not stored yet.

    Raises:
        UserError: The network cannot be built or run, a picture cannot be read at the moment, or the store cannot be
            read or written.
    """
    try:
        found = store_features(
            given, backbone, num_workers=computing.num_workers, cache_dir=computing.cache_dir, **computing.chosen
        )
    except StoreError as error:
        raise UserError(f"cache_dir: {error}; choose another folder") from error
    assert found.network.preprocessing is not None
    about = {
        "weights_sha256": found.network.loaded,
        "preprocessing": asdict(found.network.preprocessing),
        "precision": found.precision,
        "device": found.device,
    }
    return Computed(found.stored, found.backbone.width, about)


def report_unreadable(exported: ExportedFeatures, on_bad_image: Literal["skip", "stop"]) -> None:
    """Name pictures that cannot be decoded in one line, which is an error where they are not skipped."""
    unreadable = exported.unreadable
    if not unreadable:
        return
    quoted = ", ".join(f"{exported.name(index)} ({unreadable[index]})" for index in [*unreadable][:QUOTED])
    more = f" and {len(unreadable) - QUOTED:,} more" if len(unreadable) > QUOTED else ""
    line = f"{len(unreadable):,} of {len(exported):,} cannot be decoded: {quoted}{more}"
    if on_bad_image == "stop":
        raise UserError(f"pictures: {line}; mend or remove them, or take --on_bad_image=skip")
    say(f"WARNING: {line}; their features are NaN in exported files")


def describe_command(pictures: str, backbone: BackboneSpec, chosen: Mapping[str, Any]) -> str:
    """Return the command line that writes the same files."""
    of_backbone = {f"backbone.{name}": value for name, value in asdict(backbone).items() if value}
    return shlex.join(["headstart", "embed", pictures, *as_arguments({**of_backbone, **chosen})])
