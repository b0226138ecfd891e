"""LightningModules such as users have, and what may be wrong with them."""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional


class Probe(LightningModule):
    """A head with dropout before it, on a backbone that is trained with it.

    Args:
        backbone: The backbone.
        classes: Number of classes.
        lr: Learning rate.
        dropout: Share of the features that is dropped.
        form: What `configure_optimizers` gives.
    """

    def __init__(
        self, backbone: nn.Module, classes: int, lr: float = 0.1, dropout: float = 0.5, form: str = "optimizer"
    ) -> None:
        super().__init__()
        self.save_hyperparameters(ignore=["backbone"])
        self.backbone = backbone
        self.dropout = nn.Dropout(dropout)
        width: Any = backbone.width
        self.head = nn.Linear(width, classes)
        self.lr = lr
        self.form = form

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.dropout(self.backbone(inputs)))
        return logits

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> dict[str, Tensor]:
        inputs, labels = batch
        loss = functional.cross_entropy(self(inputs), labels)
        self.log("loss", loss, prog_bar=True)
        self.log_dict({"batch": torch.tensor(batch_idx), "samples": float(len(labels))})
        return {"loss": loss}

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
        every_other = {"scheduler": schedule, "interval": "step", "frequency": 2}
        return {
            "optimizer": optimizer,
            "list": [optimizer],
            "lists": ([optimizer], [{"scheduler": schedule, "interval": "step"}]),
            "dictionary": {"optimizer": optimizer, "lr_scheduler": every_other},
            "dictionaries": [{"optimizer": optimizer, "lr_scheduler": every_other}],
            "several schedules": ([optimizer], [{"scheduler": schedule, "interval": "step"}, every_other]),
            "epochs": ([optimizer], [schedule]),
            "two": [optimizer, torch.optim.Adam(self.head.parameters())],
            "none": None,
            "closure": torch.optim.LBFGS(self.parameters()),
            "text": "SGD",
            "plateau": {
                "optimizer": optimizer,
                "lr_scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
                "monitor": "val_loss",
            },
        }[self.form]
