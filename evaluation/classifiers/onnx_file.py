"""Backbone and head as one ONNX file."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from headstart.evaluation.classifiers.folder import Classifier
from headstart.evaluation.classifiers.heads import Head
from headstart.modules.networks.backbone import Backbone
from headstart.output.errors import UserError

ONNX = "model.onnx"
# Largest difference of a probability by ONNX Runtime that rounding explains.
TOLERANCE = 1e-3
# What the file says of its input, beside the classes, the size, the crop, the mean and the standard deviation.
INPUT = "RGB bytes [photos, 3, crop, crop] of resized photos; the model itself applies mean and std"


def require_onnx() -> None:
    """Raise a UserError if the extra `onnx` is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"onnx: {error}; pip install 'headstart[onnx]', or leave out --onnx") from error


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
