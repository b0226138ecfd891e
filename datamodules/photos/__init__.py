"""Labelled photos and where they come from."""

from typing import Any

from headstart import datamodules


def import_photo_sources() -> dict[str, Any]:
    """Import and return all exported classes of photos: options know a class by its bare name once it is imported."""
    # Streams are the other exports, and would import torch.
    return {name: getattr(datamodules, name) for name in dir(datamodules) if not name.endswith("Stream")}
