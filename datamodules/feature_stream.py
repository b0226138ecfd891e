"""The stream of frozen features."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headstart.datamodules.mapped_samples import Rows
from headstart.datamodules.photos.pictures import Pictures
from headstart.datamodules.row_request import NetworkSettings, RowRequest
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.arithmetic import common_offset, seen_rows
from headstart.modules.method import MethodStart

# Bytes of the logits of one method in all orderings at once.
LOGITS = 64 * 2**20


class FeatureStream(SampleStream):
    """Feeds features of the frozen backbone, which are computed once and stored on disk.

    Where the features of all training samples have nearly one large mean, that mean is subtracted
    (`headstart.modules.arithmetic`).
    """

    offset: Tensor | None = None

    @property
    def validation_chunk(self) -> int:
        """Features that are classified together: as many as have room for their logits in all orderings."""
        return max(1, LOGITS // (4 * len(self.active_orderings) * len(self.classes)))

    def request(self, photos: Pictures) -> RowRequest:
        """Return the request for the features of one split, `[samples, features]`."""
        settings = NetworkSettings(self.arithmetic, folded=True, device=str(self.device))
        return RowRequest(photos, self.backbone.preprocessing, settings, self.spec)

    def look_at(self, rows: Rows) -> None:
        """Find the common offset of the training features."""
        self.offset = common_offset(torch.from_numpy(np.array(rows[seen_rows(len(rows))])))

    def inputs_in(self, rows: Tensor, notes: Mapping[str, Any]) -> Tensor:
        """Return the features in rows, less their common offset if they have one."""
        return rows if self.offset is None else rows - self.offset

    def start(self) -> MethodStart:
        """Return what every method starts from, with all training features if they are in its device's memory."""
        samples = self.train_inputs
        is_there = isinstance(samples, Tensor) and samples.device.type == self.device.type
        start = replace(super().start(), samples=samples if is_there else None)
        if self.offset is None or start.source_head is None or start.source_bias is None:
            return start
        # The source head has the same logits on features less their offset.
        moved = start.source_head.double() @ self.offset.to(start.source_head.device).double()
        return replace(start, source_bias=(start.source_bias + moved).float())

    def decisive(self) -> dict[str, Any]:
        """Return the stream's part of a key, with the arithmetic of the features."""
        return {**super().decisive(), "inputs": "frozen features", "feature_precision": self.arithmetic}
