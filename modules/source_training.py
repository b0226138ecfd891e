"""Training of a source model from photos."""

from __future__ import annotations

from headstart.modules.photo_training import PhotoTraining


class SourceTraining(PhotoTraining):
    """Trains the network of `data.backbone`, with a classifier for the photos' classes, on a source data set."""
