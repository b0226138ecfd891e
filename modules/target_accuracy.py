"""Fine-tuning of one source on one target, whose accuracy transferability metrics predict."""

from typing import Any, Literal

from headstart.modules.photo_training import PhotoTraining

Trained = Literal["all", "head"]


class TargetAccuracy(PhotoTraining):
    """Fine-tunes a source on a target, and measures the accuracy on the target's validation photos.

    Args:
        trained: `all` for the whole network, or the `head` alone, on features that are computed once, without
            augmentation.
    """

    def __init__(self, trained: Trained = "all", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.trained = trained
