"""The base class of the command lines that train one model: options of the trainer, and the key of a run."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from lightning.pytorch import Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.progress import TrainingProgress
from headstart.cli.task_cli import TaskCLI
from headstart.cli.task_parser import TaskParser
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.photo_training import MEAN_IOU, PhotoTraining
from headstart.modules.provenance import code_of, describe
from headstart.modules.run_key import RunKey
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
EPILOG = """\
Options of a class:      --data.photos.help=headstart.datamodules.ClassFolders
Options of the trainer:  --trainer.help; duration: --trainer.max_epochs
Available names:         headstart list datasets; configs
Version:                 --version
"""
# Options of the trainer that can change the result.
DECISIVE = ("max_epochs", "precision", "gradient_clip_val", "gradient_clip_algorithm", "accumulate_grad_batches")


class TrainingCLI(TaskCLI):
    """Builds a network, photos in batches and a trainer from YAML files and options.

    Args:
        args: Options; `sys.argv[1:]` by default.
        dashboard: Ignored; a sweep passes it to every task.

    Attributes:
        model_class: Class of the LightningModule.
        datamodule_class: Class of the LightningDataModule.
        help_intro: First lines of the help.
        results_class: Class whose arguments are the options of `results`.
        version: Number that must be increased when a change of the code changes the result of a configuration.
        folder: The run's folder.
    """

    model_class: type[PhotoTraining]
    datamodule_class: type[PhotoBatches]
    help_intro: ClassVar[str]
    results_class: ClassVar[type]
    version: ClassVar[int]
    allowed = frozenset({"accumulate_grad_batches", "gradient_clip_val", "max_epochs"})
    datamodule: PhotoBatches

    def __init__(self, args: ArgsType = None, dashboard: Mapping[str, Any] | None = None) -> None:
        super().__init__(
            self.model_class,
            self.datamodule_class,
            args=args,
            parser_class=TaskParser,
            parser_kwargs={"description": self.help_intro, "epilog": EPILOG},
            trainer_defaults=DEFAULTS,
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the options of the results, and set the seed of the data to the seed of the run.

        Args:
            parser: The parser.
        """
        super().add_arguments_to_parser(parser)
        parser.add_class_arguments(self.results_class, "results")
        parser.link_arguments("seed_everything", "data.seed")

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Choose the run's folder, and build the trainer.

        Args:
            kwargs: Arguments of the trainer.
        """
        self.results = self.config_init["results"]
        trainer = self.config_init["trainer"]
        self.folder = Path(self.name_folder(trainer, self.datamodule.photos.name, self.config.data.backbone))
        self.add_progress(trainer, TrainingProgress())
        return self.new_trainer()

    def new_trainer(self) -> Trainer:
        """Build a new trainer with the same options, because each trainer trains only once."""
        return super().instantiate_trainer()

    def after_instantiate_classes(self) -> None:
        """Check the trainer's options before anything is computed."""
        epochs = self.config.trainer["max_epochs"]
        if not isinstance(epochs, int) or epochs < 1:
            raise UserError(f"trainer.max_epochs: {epochs} given; 1 or more is allowed")
        if self.chosen_precision not in PRECISIONS:
            raise UserError(f"trainer.precision: {self.chosen_precision} given; take {' or '.join(PRECISIONS)}")
        if any(isinstance(each, DashboardLogger) for each in self.trainer.loggers):
            raise UserError("trainer.logger: DashboardLogger mirrors comparisons; give false, or a logger of Lightning")

    def key(
        self, spec: NetworkSpec, preprocessing: Preprocessing, options: Mapping[str, Any], extra: Mapping[str, Any] = {}
    ) -> RunKey:
        """Return the key of the run: everything that determines its result.

        Args:
            spec: The network.
            preprocessing: How photos are prepared for it.
            options: The options of the training that determine the result.
            extra: JSON values that describe what else the task feeds to the network.
        """
        batches, init = self.datamodule, {"init_args": options}
        callbacks = self.describe_callbacks()
        trainer = {name: self.config.trainer[name] for name in DECISIVE}
        stream = {
            "task": self.task,
            "version": self.version,
            **batches.fingerprints(),
            "unreadable": batches.on_bad_image,
            "network": spec.identity,
            "preprocessing": asdict(preprocessing),
            "batch_size": batches.batch_size,
            "seed": batches.seed,
            **({"measure": MEAN_IOU} if batches.of_pixels else {}),
            **({"callbacks": callbacks} if callbacks else {}),
            **extra,
        }
        training = {**describe(self.model, init), "trainer": {**trainer, "precision": self.trainer.precision}}
        return RunKey(stream, training, code_of(self.model, init), self.trainer.strategy.root_device.type)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of photos, by the names of their fields in results.json."""
        train, validation = self.datamodule.train_labels, self.datamodule.validation_labels
        return {"train_size": len(train), "validation_size": len(validation)}
