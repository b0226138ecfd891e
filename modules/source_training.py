"""Training of a source model from photos."""

from headstart.modules.photo_training import PhotoTraining


class SourceTraining(PhotoTraining):
    """Trains the network of `data.backbone`, with a classifier for the photos' classes, on a source data set."""
