"""`headstart fit`: a classifier for photos with few labels, and how accurate it will be."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.datamodules.embedding import Embedded, embed_readable
from headstart.datamodules.photos.near_duplicates import read_thumbnails
from headstart.datamodules.photos.photo_source import Photos, PictureFiles
from headstart.evaluation.classifiers.answer import describe, markdown_page, photo_table, print_answer
from headstart.evaluation.classifiers.assessment import assess
from headstart.evaluation.classifiers.folder import JSON, ONNX, TENSORS, Classifier, onnx_writer, require_onnx
from headstart.evaluation.classifiers.heads import head_of
from headstart.evaluation.classifiers.labelled_photos import LabelledPhotos, read_photos, select
from headstart.evaluation.classifiers.left_out import Labelled, fit_all
from headstart.evaluation.embeddings import prefix_extraction
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import EMBEDDED, BackboneSpec, without_digest
from headstart.modules.networks.spec import WEIGHT_FILES
from headstart.output.errors import UserError
from headstart.output.files import write_together
from headstart.output.printable import say
from headstart.output.processors import require_memory
from headstart.output.results_folder import ResultsFolder
from headstart.output.seeds import Seed
from headstart.store.cache import cache_folder

FOLDER = "classifier"
# Bytes of an ordering for each photo: its place, and the random number that it is sorted by.
BYTES_PER_PHOTO = 16
# What the description of the classifier has of the results, by its names there.
ABOUT = {"method": "method", "labels": "photos", "expected_accuracy": "expected_accuracy"}
FILES = ("results.json", "report.md", "photos.csv", f"{FOLDER}/{JSON}", f"{FOLDER}/{TENSORS}")


@dataclass(frozen=True)
class Features:
    """How features are computed.

    Args:
        precision: Arithmetic of the backbones. `auto` uses bfloat16 if the hardware supports it, else float32.
        device: Device of the backbones. `auto` uses a GPU if there is one.
        num_workers: Number of processes that decode photos. The default is one per processor.
        cache_dir: Folder of stored features. The default is HEADSTART_CACHE, or else a folder in the user's cache
            directory.
        workers: Number of processes that compute missing features. Each uses its share of the processors, or a GPU of
            its own. By default the command computes them itself.
        ray: Address of the Ray cluster that computes missing features; `auto` is the cluster of this machine.
    """

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    num_workers: NonNegativeInt | None = None
    cache_dir: str | None = None
    workers: PositiveInt | None = None
    ray: str | None = None


def fit(
    photos: str | None = None,
    demo: bool = False,
    backbones: list[BackboneSpec | str] | None = None,
    orderings: PositiveInt = 100,
    seed: Seed = 0,
    features: Features = Features(),
    near_duplicates: bool = False,
    onnx: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Fit a classifier to photos with few labels, and say how accurate it will be, without a validation set.

    Every recommended method is tried on photos that it has not learnt. Writes results.json, report.md, photos.csv and
    the folder classifier/, which `headstart predict` takes.

    Args:
        photos: A folder with one folder of photos per class. A CSV file with the columns path and label, or a data set
            of the Hugging Face Hub, `hf://owner/name`, also works.
        demo: Use drawn cats and dogs and the embedded backbone. No network is needed.
        backbones: Networks to try, such as `[resnet18]` or `[{name: resnet18, weights: FILE}]`. The default is
            MobileNetV2 pre-trained on ImageNet. The first one is kept unless another is better by a standard error.
        orderings: Number of orderings of the learning curve.
        seed: Seed of folds, orderings, bootstraps and random weights.
        features: How features are computed.
        near_duplicates: Also count photos of a class once that look alike, such as copies of another size. Equal files
            always count once.
        onnx: Also write backbone and head as one file, model.onnx.
        **options: Options of `ResultsFolder`.

    Returns:
        The content of results.json.
    """
    start = time.perf_counter()
    results = ResultsFolder("runs/fit", FILES, **options)
    if onnx:
        require_onnx()

    labelled = read_photos(photos, demo, cache_folder(features.cache_dir))
    _require_apart(results.path, photos, labelled.photos)
    listed = len(labelled.photos)
    require_memory("orderings", f"{orderings:,} orderings of {listed:,} photos", BYTES_PER_PHOTO * orderings * listed)
    specs = [_spec(option) for option in backbones or ()] or [BackboneSpec(weights=EMBEDDED if demo else "DEFAULT")]
    labelled, embedded, samples = _embed(labelled, specs, features, int(seed), near_duplicates)

    made_from = {
        "photos_sha256": labelled.photos.fingerprint(),
        "weights_sha256": [embedding.digest for embedding in embedded],
        "orderings": int(orderings),
        "seed": int(seed),
        "near_duplicates": near_duplicates,
    }
    results.check_configuration(made_from)

    assessment = assess(samples, int(orderings), int(seed))
    document = {
        "schema_version": 1,
        **describe(labelled, assessment, _names(specs)),
        **made_from,
        "backbones": [asdict(spec) for spec in specs],
        "seconds": time.perf_counter() - start,
    }

    index, method = assessment.best
    classifier = Classifier(
        labelled.photos.classes,
        specs[index],
        embedded[index].digest,
        embedded[index].precision,
        head_of(fit_all(method.name, samples[index]), samples[index].offset),
        assessment.temperature,
        {name: document[key] for name, key in ABOUT.items()},
        int(seed),
    )
    _write_classifier(results, classifier, embedded[index].backbone if onnx else None)
    results.write(document, {"photos": photo_table(labelled, assessment)}, {"report.md": markdown_page(document)})
    say(f"to predict: headstart predict {results.path / FOLDER} PHOTOS --output predictions.csv")

    print_answer(document)
    results.print_written()
    return document


def _embed(
    labelled: LabelledPhotos, specs: Sequence[BackboneSpec], features: Features, seed: int, near_duplicates: bool
) -> tuple[LabelledPhotos, list[Embedded], list[Labelled]]:
    """Compute the features of all backbones, and leave out rows that are no samples."""
    embedded, thumbnails = [], None
    with prefix_extraction("features"):
        for spec in specs:
            with _naming_backbones(spec):
                embedded.append(embed_readable(labelled.photos, spec, seed=seed, **asdict(features)))
        if near_duplicates:
            preprocessing = embedded[0].backbone.preprocessing
            thumbnails = read_thumbnails(labelled.photos, preprocessing, features.num_workers, "photos")

    labelled, remaining = select(labelled, thumbnails, embedded[0].unreadable)
    labels, classes = torch.from_numpy(labelled.photos.labels), len(labelled.photos.classes)
    samples = []
    for rows in embedded:
        vectors, head, bias = torch.from_numpy(rows.features), rows.backbone.source_head, rows.backbone.source_bias
        samples.append(Labelled(vectors[remaining], labels, classes, head, bias, seed).without_offset())
    return labelled, embedded, samples


def _require_apart(output: Path, given: str | None, photos: Photos) -> None:
    """Raise a UserError if results would lie among the photos, of which the next command would find them."""
    folder, root = output.resolve(), Path(given or "").expanduser()
    within = given is not None and root.is_dir() and folder.is_relative_to(root.resolve())
    files = (Path(photos.path(index)) for index in range(len(photos))) if isinstance(photos, PictureFiles) else ()
    if within or any(file.is_relative_to(folder) for file in files):
        raise UserError(f"output: {str(output)!r} has photos in it, or lies in their folder; give another folder")


def _spec(option: BackboneSpec | str) -> BackboneSpec:
    """Return a backbone; the parser hands mappings that are none on as text."""
    if isinstance(option, BackboneSpec):
        return option
    content = yaml.safe_load(option)
    content = content[0] if isinstance(content, list) and len(content) == 1 else content
    if not isinstance(content, str):
        raise UserError(f"backbones: {option!r} is no network; give a name, or '{{name: resnet18, weights: FILE}}'")
    return BackboneSpec(content)


@contextmanager
def _naming_backbones(spec: BackboneSpec) -> Iterator[None]:
    """Raise a mistake in a backbone by the option's name in this command."""
    try:
        yield
    except UserError as error:
        text = str(error)
        if not text.startswith("backbone."):
            raise
        is_named = not text.startswith("backbone.weights: ") or Path(spec.weights).suffix in WEIGHT_FILES
        form = "" if is_named else f", as --backbones='[{{name: {spec.name}, weights: FILE}}]'"
        raise UserError(f"backbones: {text.partition(': ')[2]}{form}") from error


def _names(specs: Sequence[BackboneSpec]) -> list[str]:
    """Return names of backbones; those of one name and weights are numbered by their order."""
    names = [f"{spec.name}, {Path(without_digest(spec.weights)).name}" for spec in specs]
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]


def _write_classifier(results: ResultsFolder, classifier: Classifier, backbone: Backbone | None) -> None:
    """Write the classifier, with a file in ONNX if its backbone is given."""
    writers, folder = classifier.writers(), results.path / FOLDER
    if backbone is not None:
        writers = {**onnx_writer(backbone, classifier), **writers}
    with results.writable():
        if backbone is None:
            # That of an earlier classifier, which is overwritten.
            (folder / ONNX).unlink(missing_ok=True)
        results.written += write_together(folder, writers)
