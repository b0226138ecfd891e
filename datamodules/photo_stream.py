"""The stream of photos, for methods that train the backbone."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from torch import Tensor

from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_computation import unpack
from headstart.datamodules.row_request import NetworkSettings, RowRequest, pass_size
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.method import MethodStart
from headstart.modules.networks.freeze_boundary import SplitBackbone, cut
from headstart.modules.networks.spec import WHOLE_NETWORK
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.output.errors import UserError, prefix_errors

# On a processor, larger passes through a tail gain nothing.
MOST_AT_ONCE = 32


class PhotoStream(SampleStream):
    """Feeds photos to methods that train the backbone, or a part of it.

    Photos are decoded once and stored on disk. If the first part of the network is frozen, its output is stored
    instead. Only the rest is then trained, copied and evaluated. Every method has its own copy, and orderings run one
    by one.

    Args:
        trainable_from: The first module of the backbone that can be trained, such as `features.14`. Earlier modules
            stay frozen, with batch norm on its stored statistics. `all` trains the whole backbone.
        batch_norm: Statistics of batch norm during training: the stored ones (`frozen`), or those of each batch
            (`trained`). Use `trained` with batches of 16 samples or more.
        dropout: Whether dropout is on during training.
    """

    trainer_precisions = ("32-true", "bf16-mixed")

    def __init__(
        self,
        trainable_from: str = WHOLE_NETWORK,
        batch_norm: Literal["frozen", "trained"] = "frozen",
        dropout: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.trainable_from = trainable_from
        self.batch_norm = batch_norm
        self.dropout = dropout
        if batch_norm == "trained":
            self._require_batches()

    def _require_batches(self) -> None:
        needed = "data.batch_norm=trained takes the statistics of a batch, which one sample does not have"
        if self.batch_size == 1:
            raise UserError(f"data.batch_size: 1 is given, but {needed}; give 16 or more")
        if self.max_samples % self.batch_size == 1:
            raise UserError(
                f"data.max_samples: {self.max_samples} leaves one sample for the last batch of {self.batch_size}, but "
                f"{needed}; give {self.max_samples - 1}"
            )

    def _limit_samples(self) -> None:
        super()._limit_samples()
        if self.batch_norm == "trained":
            self._require_batches()

    @cached_property
    def _cut(self) -> SplitBackbone | None:
        return None if self.trainable_from == WHOLE_NETWORK else cut(self.backbone, self.trainable_from)

    @property
    def validation_chunk(self) -> int:
        """Photos in one pass of an evaluation: as many as a pass of the whole network takes memory for."""
        whole = pass_size(self.backbone.preprocessing.crop, self.device.type)
        if self._cut is None:
            return whole
        chunk = max(1, int(whole * self._cut.relief))
        return min(chunk, max(whole, MOST_AT_ONCE)) if self.device.type == "cpu" else chunk

    def request(self, photos: Pictures) -> RowRequest:
        """Return the request for the prepared photos of one split, or for their activations at the freeze boundary."""
        # A part that cannot be trained raises an error here, before photos are decoded.
        with prefix_errors("data"):
            self.trainable_backbone()
        if self._cut is None:
            return RowRequest(photos, self.backbone.preprocessing)
        settings = NetworkSettings(self.arithmetic, folded=True, device=str(self.device))
        return RowRequest(photos, self.backbone.preprocessing, settings, self.spec, boundary=self.trainable_from)

    def inputs_in(self, rows: Tensor, notes: Mapping[str, Any]) -> Tensor:
        """Return the photos, or the activations in rows."""
        return rows if self._cut is None else unpack(rows, notes)

    @cached_property
    def _trainable(self) -> TrainableBackbone:
        if self._cut is not None:
            return TrainableBackbone(self._cut.tail, None, self.arithmetic, self.batch_norm, self.dropout)
        network, normalize = self.backbone.network, self.backbone.normalize
        return TrainableBackbone(network, normalize, self.arithmetic, self.batch_norm, self.dropout)

    def trainable_backbone(self) -> TrainableBackbone:
        """Return the backbone, or the part behind the boundary, of which every method makes its own copy."""
        return self._trainable

    def start(self) -> MethodStart:
        """Return what every method starts from."""
        return replace(super().start(), sample_dims=len(self.train_inputs.shape) - 1)

    def decisive(self) -> dict[str, Any]:
        """Return the stream's part of a key, with how the backbone is trained and evaluated."""
        return {
            **super().decisive(),
            "inputs": "photos",
            "picture_size": self.backbone.preprocessing.crop,
            "trainable_from": self.trainable_from,
            "precision": self.arithmetic,
            "batch_norm": self.batch_norm,
            "dropout": self.dropout,
            "photos_at_once": self.validation_chunk,
        }
