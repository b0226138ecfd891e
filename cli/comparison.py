"""The command line of `train.py`."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI

import modules
from callbacks import ComparisonProgress, Results, SampleEfficiency
from callbacks.dashboard import describe_run
from callbacks.results import configuration_digest
from datamodules import SampleStream
from output.errors import UserError
from output.parser import OneLineErrorParser

BASE_CONFIG = Path(__file__).parent.parent / "configs" / "base.yaml"

# What these options of the trainer may be, lest the stream be fed twice or in part.
PROTOCOL_OPTIONS: dict[str, tuple[Any, ...]] = {
    "max_epochs": (1,),
    "max_steps": (-1,),
    "fast_dev_run": (False,),
    "overfit_batches": (0.0,),
    "limit_train_batches": (None, 1.0),
    "limit_val_batches": (None, 1.0),
}


class ComparisonParser(OneLineErrorParser, LightningArgumentParser):
    """Lightning's parser with errors of one line."""


class ComparisonCLI(LightningCLI):
    """Builds a comparison, its stream and its trainer from YAML files and options.

    `configs/base.yaml` is read first; later `--config` files and options override it.

    Args:
        args: Options; those of the process by default.
    """

    criterion: SampleEfficiency
    results: Results

    def __init__(self, args: ArgsType = None) -> None:
        _quieten_lightning()
        _import_methods()
        if "" not in sys.path:
            # A user's own method is imported from the folder that the command is given in.
            sys.path.insert(0, "")
        super().__init__(
            modules.Comparison,
            SampleStream,
            subclass_mode_data=True,
            run=False,
            args=args,
            save_config_callback=None,
            seed_everything_default=0,
            parser_class=ComparisonParser,
            parser_kwargs={"default_config_files": [str(BASE_CONFIG)]},
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the criterion and the results, and let one seed decide everything.

        Args:
            parser: The parser.
        """
        parser.add_lightning_class_args(SampleEfficiency, "criterion")
        parser.add_lightning_class_args(Results, "results")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("criterion.evaluate_every", "trainer.val_check_interval", compute_fn=int)

    def before_instantiate_classes(self) -> None:
        """Keep the configuration as given, then fill in what follows from it: the folder and the run's names."""
        self.config_text = self.parser.dump(self.config)
        stream, trainer = self.config.data.init_args, self.config.trainer
        photos, backbone = stream.photos.class_path.rpartition(".")[2], stream.backbone.name
        if trainer.default_root_dir is None:
            name = f"{photos}-{backbone}-s{self.config.seed_everything}-{configuration_digest(self.config_text)}"
            trainer.default_root_dir = str(Path("runs") / name.replace("/", "-"))
        if _is_dashboard(trainer.logger):
            described = describe_run(self.config, configuration_digest(self.config_text, over_seeds=True))
            for key, value in {"save_dir": trainer.default_root_dir, **described}.items():
                trainer.logger.init_args[key] = trainer.logger.init_args[key] or value

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Add the progress bar, which shows the state of the criterion.

        Args:
            kwargs: Arguments of the trainer.
        """
        self.criterion, self.results = self.config_init["criterion"], self.config_init["results"]
        trainer = self.config_init["trainer"]
        if trainer["enable_progress_bar"] is not False:
            trainer["callbacks"] = [*(trainer["callbacks"] or []), ComparisonProgress(self.criterion)]
        return super().instantiate_trainer(**kwargs)

    def after_instantiate_classes(self) -> None:
        """Check what several options decide together, before anything is computed."""
        _require_protocol(self.trainer, self.config.trainer)
        samples, size = self.datamodule.max_samples, self.datamodule.batch_size
        if self.criterion.evaluations_within(samples, size) < self.criterion.consecutive:
            msg = (
                f"data.max_samples: {samples} is too few to meet the criterion, which takes "
                f"{self.criterion.consecutive} evaluations of {size * self.criterion.evaluate_every} samples each"
            )
            raise UserError(msg)
        self.results.claim(Path(self.trainer.default_root_dir), self.config_text, self.criterion)

    def run(self) -> None:
        """Run the comparison."""
        # Deterministic kernels come with filling fresh memory, which would touch all that is set aside for later.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        self.trainer.fit(self.model, datamodule=self.datamodule)


def _require_protocol(trainer: Trainer, options: Any) -> None:  # noqa: ANN401 - a namespace of options
    """Refuse what would feed the stream twice or not to its end, or split it over devices."""
    if trainer.world_size != 1:
        msg = f"trainer.devices: {trainer.world_size} processes asked for; one comparison runs on one device"
        raise UserError(msg)
    for name, allowed in PROTOCOL_OPTIONS.items():
        if options[name] not in allowed:
            msg = (
                f"trainer.{name}: {options[name]} would change the protocol, leave it at {allowed[0]}; "
                "data.max_samples and data.validation_size choose what is fed"
            )
            raise UserError(msg)


def _is_dashboard(logger: Any) -> bool:  # noqa: ANN401 - a logger's configuration, a list of them or a switch
    return str(getattr(logger, "class_path", "")).endswith("DashboardLogger")


def _import_methods() -> None:
    """Import what is exported of methods: a class is known by its name alone, and to the help, once it is imported."""
    for name in modules.__all__:
        getattr(modules, name)


def _quieten_lightning() -> None:
    """Silence what says nothing about a comparison: start-up notes, and advice on loaders of what is in memory."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*")
    warnings.filterwarnings("ignore", ".*in eval mode at the start of training.*")
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LightningCLI's args parameter is intended.*")
