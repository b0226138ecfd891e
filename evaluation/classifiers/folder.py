"""Classifiers as folders: a head in safetensors, JSON that names its backbone and its classes, and a file in ONNX."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from headstart.datamodules.embedding import embed_readable
from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import Picture, read_pictures
from headstart.datamodules.photos.pictures import Pictures
from headstart.evaluation.classifiers.heads import REPRESENTATIONS, Head
from headstart.metrics.few_labels.calibration import probabilities
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import WEIGHT_FILES
from headstart.output.errors import UserError, other_schema, reason_of
from headstart.store.cache import cache_folder

JSON, TENSORS = "classifier.json", "head.safetensors"
SCHEMA = 1
ONNX = "model.onnx"
# Largest difference of a probability by ONNX Runtime that rounding explains.
TOLERANCE = 1e-3
# What the file says of its input, beside the classes, the size, the crop, the mean and the standard deviation.
INPUT = "RGB bytes [photos, 3, crop, crop] of resized photos; the model itself applies mean and std"


@dataclass(frozen=True)
class Classifier:
    """A head on a frozen backbone.

    Attributes:
        classes: Names of the classes.
        backbone: The backbone.
        weights_sha256: SHA-256 of its weights; other weights would make the head meaningless.
        precision: Arithmetic of the backbone when the head was fitted.
        head: The head.
        temperature: Divides its logits before the softmax.
        about: How it was fitted: method, labels, expected accuracy.
        seed: Seed of random weights.
    """

    classes: Sequence[str]
    backbone: BackboneSpec
    weights_sha256: str
    precision: str
    head: Head
    temperature: float
    about: Mapping[str, Any]
    seed: int = 0

    def predict(self, photos: str | Path | Sequence[Picture] | Pictures, **options: Any) -> NDArray[np.str_]:
        """Predict the classes of photos.

        Args:
            photos: As for `headstart.embed`.
            **options: `device`, `num_workers` and `cache_dir` of `headstart.embed`.

        Returns:
            Names of classes, `[photos]`.
        """
        best = self.predict_probabilities(photos, **options).argmax(1)
        return np.array([self.classes[index] for index in best])

    def predict_probabilities(
        self, photos: str | Path | Sequence[Picture] | Pictures, **options: Any
    ) -> NDArray[np.float64]:
        """Return calibrated probabilities of the classes, `[photos, classes]`; arguments as for `predict`.

        Raises:
            UserError: A photo cannot be decoded, or the backbone has other weights now.
        """
        pictures = read_pictures(photos, cache_folder(options.get("cache_dir")))
        report_left_out(getattr(pictures, "left_out", {}), "photos")
        shares, unreadable = self.predict_readable(pictures, **options)
        if unreadable:
            index, reason = next(iter(unreadable.items()))
            raise UserError(f"photos: {pictures.names[index]} cannot be decoded ({reason}); leave it out")
        return shares

    def predict_readable(self, pictures: Pictures, **options: Any) -> tuple[NDArray[np.float64], dict[int, str]]:
        """Return probabilities `[photos, classes]`, and why photos cannot be decoded, by index.

        Args:
            pictures: The photos.
            **options: As for `predict`.
        """
        embedded = embed_readable(pictures, self.backbone, seed=self.seed, **{"precision": self.precision, **options})
        if embedded.digest != self.weights_sha256:
            raise UserError(
                f"classifier: {self.backbone.weights!r} now holds other weights of {self.backbone.name} than those "
                "that the head was fitted to; restore them, or name the file with --weights=FILE"
            )
        with torch.no_grad():
            logits = self.head(torch.from_numpy(embedded.features)).double().numpy()
        return probabilities(logits, self.temperature), embedded.unreadable

    def writers(self) -> dict[str, Callable[[Path], object]]:
        """Return what writes the files of the classifier, by name."""
        tensors = {name: value.contiguous() for name, value in self.head.state_dict().items()}
        network = asdict(self.backbone)
        if Path(self.backbone.weights).suffix in WEIGHT_FILES:
            network["weights"] = str(Path(self.backbone.weights).expanduser().resolve())
        document = {
            "schema_version": SCHEMA,
            "classes": list(self.classes),
            "backbone": {**network, "weights_sha256": self.weights_sha256, "precision": self.precision},
            "seed": self.seed,
            "head": {"file": TENSORS, "representation": self.head.representation},
            "temperature": self.temperature,
            **self.about,
        }
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        return {
            TENSORS: partial(Path.write_bytes, data=save(tensors)),
            JSON: partial(Path.write_text, data=text, encoding="utf-8", newline=""),
        }


def load_classifier(folder: str | Path, weights: str | None = None) -> Classifier:
    """Load a classifier that `headstart fit` has written; nothing in its files is run as code.

    Args:
        folder: The folder that holds `classifier.json`, or the one above it.
        weights: File of the backbone's weights, where it has moved since.

    Raises:
        UserError: There is none, or its files are damaged.
    """
    root = Path(folder).expanduser()
    if not (root / JSON).is_file() and (root / "classifier" / JSON).is_file():
        root = root / "classifier"
    try:
        document = json.loads((root / JSON).read_text(encoding="utf-8"))
        if document["schema_version"] != SCHEMA:
            raise other_schema(f"classifier: {root / JSON}", document["schema_version"], SCHEMA)
        backbone = dict(document["backbone"])
        digest, precision = backbone.pop("weights_sha256"), backbone.pop("precision")
        if backbone["preprocessing"] is not None:
            backbone["preprocessing"] = Preprocessing(**backbone["preprocessing"])

        classes, temperature = [str(name) for name in document["classes"]], float(document["temperature"])
        head = _read_head(document["head"]["representation"], root / TENSORS, len(classes))
        spec = BackboneSpec(**{**backbone, **({"weights": weights} if weights else {})})
    except UserError:
        raise
    # Damaged files raise errors of many unrelated kinds.
    except Exception as error:
        raise UserError(
            f"classifier: {root} holds no classifier that can be read ({reason_of(error)}); see headstart fit"
        ) from error

    file = Path(spec.weights)
    if file.suffix in WEIGHT_FILES and not file.is_file():
        raise UserError(f"weights: there is no file {str(file)!r} any more; name it with --weights=FILE")
    about = {key: document[key] for key in ("method", "labels", "expected_accuracy") if key in document}
    return Classifier(classes, spec, digest, precision, head, temperature, about, int(document.get("seed", 0)))


def _read_head(representation: str, file: Path, classes: int) -> Head:
    """Read a head; a ValueError where its tensors do not belong together."""
    head = Head(representation, **load_file(file))
    shapes = head.weight.shape[1:], head.bias.shape
    if representation not in REPRESENTATIONS or shapes != ((classes,), (classes,)) or head.offset.dim() != 1:
        raise ValueError("its tensors are not those of the head that it describes")
    return head


def require_onnx() -> None:
    """Raise a UserError if the extra `onnx` is not installed."""
    missing = [name for name in ("onnx", "onnxruntime", "onnxscript") if find_spec(name) is None]
    if missing:
        raise UserError(f"onnx: {missing[0]} is missing; pip install 'headstart[onnx]', or leave out --onnx")


def onnx_writer(backbone: Backbone, classifier: Classifier) -> dict[str, Callable[[Path], object]]:
    """Return what writes the file, by its name.

    Args:
        backbone: The classifier's backbone.
        classifier: The classifier.
    """
    head, temperature = classifier.head, classifier.temperature
    scaled = Head(head.representation, head.matrix, head.weight / temperature, head.bias / temperature, head.offset)
    # From prepared photos, uint8 `[photos, 3, height, width]`, to probabilities `[photos, classes]`.
    whole = nn.Sequential(backbone, scaled, nn.Softmax(-1)).eval()
    about = {"classes": classifier.classes, **asdict(backbone.preprocessing), "input": INPUT}
    metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in about.items()}
    return {ONNX: partial(_export, whole, backbone.noise_photo(), metadata)}


def _export(whole: nn.Module, photo: Tensor, metadata: dict[str, str], path: Path) -> None:
    """Write the file and compare what it computes; a UserError, and no file, if that differs."""
    import onnx
    import onnxruntime

    batch = torch.export.Dim("photos")
    photos = torch.cat([photo, photo.flip(-1)])
    torch.onnx.export(
        whole,
        (photos,),
        path,
        input_names=["photos"],
        output_names=["probabilities"],
        dynamo=True,
        dynamic_shapes={"photos": {0: batch}},
        external_data=False,
    )
    model = onnx.load(path)
    onnx.helper.set_model_props(model, metadata)
    onnx.save(model, path)

    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for inputs in (photos, photo):
        with torch.no_grad():
            expected = whole(inputs).cpu().numpy()
        computed = session.run(None, {"photos": inputs.cpu().numpy()})[0]
        difference = float(np.abs(computed - expected).max())
        if not difference <= TOLERANCE:
            raise UserError(
                f"onnx: the file's probabilities differ from ours by {difference:.2g}, more than {TOLERANCE}; it is "
                "not kept, choose another backbone or leave out --onnx"
            )
