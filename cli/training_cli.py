"""What the command lines of tasks that train one model share: the trainer's options, and what decides the result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from lightning.pytorch import Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.progress import TrainingProgress
from headstart.callbacks.training_files import versions
from headstart.cli.task_cli import TaskCLI, require_seed
from headstart.cli.task_parser import TaskParser
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.photo_training import MEAN_IOU, PhotoTraining
from headstart.output.errors import UserError

DEFAULTS: dict[str, Any] = {
    "accelerator": "auto",
    "devices": 1,
    "deterministic": "warn",
    "num_sanity_val_steps": 0,
    "enable_checkpointing": False,
    "enable_model_summary": False,
    "enable_autolog_hparams": False,
    "logger": False,
}
PRECISIONS = ("32-true", "bf16-mixed")
# What decides how is trained.
DECIDING = ("max_epochs", "precision", "gradient_clip_val", "gradient_clip_algorithm", "accumulate_grad_batches")


class TrainingParser(TaskParser):
    """Shows what is trained on what, and how."""

    foot = """\
Options of a class:      --data.photos.help=headstart.datamodules.ClassFolders
Options of the trainer:  --trainer.help; how long: --trainer.max_epochs
What there is to choose: headstart list datasets; configs
Version:                 --version
"""


class TrainingCLI(TaskCLI):
    """Builds a network, photos in batches and a trainer from YAML files and options.

    Args:
        model: How is trained.
        data: What on.
        parser: Its parser.
        args: Options; those of the process by default.

    Attributes:
        files: What the options of `results` are those of.
        version: To be raised whenever the same configuration trains otherwise.
        folder: The run's folder.
    """

    files: ClassVar[type]
    version: ClassVar[int]
    allowed = frozenset({"accumulate_grad_batches", "gradient_clip_val", "max_epochs"})
    results: Any

    def __init__(
        self, model: type[PhotoTraining], data: type[PhotoBatches], parser: type[TrainingParser], args: ArgsType
    ) -> None:
        super().__init__(model, data, args=args, parser_class=parser, trainer_defaults=DEFAULTS)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add what is written, and let one seed decide everything.

        Args:
            parser: The parser.
        """
        super().add_arguments_to_parser(parser)
        parser.add_class_arguments(self.files, "results")
        parser.link_arguments("seed_everything", "data.seed", compute_fn=require_seed)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Name the run's folder, and build the trainer.

        Args:
            kwargs: Arguments of the trainer.
        """
        self.results = self.config_init["results"]
        trainer = self.config_init["trainer"]
        self.folder = Path(self.name_folder(trainer, self.datamodule.photos.name, self.config.data.backbone))
        self.add_progress(trainer, TrainingProgress())
        return self.another_trainer()

    def another_trainer(self) -> Trainer:
        """Build a trainer of the same options: one that has trained once takes itself to be done."""
        return super().instantiate_trainer()

    def after_instantiate_classes(self) -> None:
        """Check what several options decide together, before anything is computed."""
        require_training(self.trainer, self.config.trainer)

    def decided_by(self, spec: NetworkSpec, preprocessing: Preprocessing) -> dict[str, Any]:
        """Give what of the photos and the network decides the result, as JSON values.

        Args:
            spec: The network.
            preprocessing: How photos are prepared for it.
        """
        batches: PhotoBatches = self.datamodule
        return {
            "task": self.task,
            "version": self.version,
            **batches.fingerprints(),
            "unreadable": batches.on_bad_image,
            "network": spec.identity,
            "preprocessing": asdict(preprocessing),
            "batch_size": batches.batch_size,
            "seed": batches.seed,
            **({"measure": MEAN_IOU} if batches.of_pixels else {}),
            **versions(),
        }


def require_training(trainer: Trainer, options: Any) -> None:  # noqa: ANN401 - a namespace of options
    """Refuse options of the trainer by which not all epochs would be trained on all photos.

    Args:
        trainer: The trainer.
        options: Its options as given.

    Raises:
        UserError: One of them is such.
    """
    if not isinstance(options["max_epochs"], int) or options["max_epochs"] < 1:
        raise UserError(f"trainer.max_epochs: {options['max_epochs']} given; say how many epochs, 1 or more")
    if trainer.precision not in PRECISIONS:
        raise UserError(f"trainer.precision: {trainer.precision} given; take {' or '.join(PRECISIONS)}")
    if any(isinstance(each, DashboardLogger) for each in trainer.loggers):
        raise UserError("trainer.logger: DashboardLogger mirrors comparisons; give false, or a logger of Lightning's")


def deciding(trainer: Trainer, options: Any) -> dict[str, Any]:  # noqa: ANN401 - a namespace of options
    """Give what of the trainer's options decides the result, as JSON values.

    Args:
        trainer: The trainer.
        options: Its options as given.
    """
    chosen = {name: options[name] for name in DECIDING}
    return {**chosen, "precision": trainer.precision, "device": trainer.strategy.root_device.type}
