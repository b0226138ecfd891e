"""The command line of `train.py`."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer
from lightning.pytorch import callbacks as lightnings
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI

import datamodules
import modules
from callbacks import ComparisonProgress, Results, SampleEfficiency
from callbacks.configuration import configuration_digest
from callbacks.dashboard import DashboardLogger, describe_run
from callbacks.measurement import measure
from cli.comparison_parser import ComparisonParser, TrainerHelp
from datamodules.registry_backbone import read_network
from modules.networks.backbone import RANDOM, BackboneSpec
from modules.provenance import keep_sources
from output.errors import UserError, naming
from output.files import output_folder

# What Lightning's trainer raises where an option of its own is wrong, or needs a library that is not installed.
MISTAKES = (MisconfigurationException, ValueError, TypeError, OSError, ImportError)
# Characters of a data set's or backbone's name in that of a folder.
LONGEST_PART = 60
BASE_CONFIG = Path(__file__).parent.parent / "configs" / "base.yaml"

FED = "data.max_samples and data.validation_size choose what is fed"
EVALUATED = "criterion.evaluate_every chooses when is evaluated"
ENDED = "a run ends when all of its traces have met the criterion, or at data.max_samples"
STEPPED = "methods take their own steps with optimisers of their own"
# What these options of the trainer may be, lest the stream be fed twice or in part, and what to do instead.
PROTOCOL_OPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    "max_epochs": ((1,), FED),
    "max_steps": ((-1,), FED),
    "min_epochs": ((None, 0, 1), ENDED),
    "min_steps": ((None,), ENDED),
    "fast_dev_run": ((False,), FED),
    "overfit_batches": ((0.0, 0), FED),
    "limit_train_batches": ((None, 1.0), FED),
    "limit_val_batches": ((None, 1.0), FED),
    "reload_dataloaders_every_n_epochs": ((0,), FED),
    "check_val_every_n_epoch": ((1,), EVALUATED),
    "num_sanity_val_steps": ((0,), EVALUATED),
    "accumulate_grad_batches": ((1,), STEPPED),
    "gradient_clip_val": ((None, 0, 0.0), STEPPED),
    "strategy": (("auto",), "one comparison runs on one device"),
    "plugins": ((None,), "a plugin may change the arithmetic of what is recorded"),
    "enable_checkpointing": ((False,), "the ledger of traces finishes a run that was cut off"),
}
# What changes how methods train, or when, or for how long.
SPOILERS = (
    lightnings.BaseFinetuning,
    lightnings.BatchSizeFinder,
    lightnings.EarlyStopping,
    lightnings.GradientAccumulationScheduler,
    lightnings.LearningRateFinder,
    lightnings.ModelPruning,
    lightnings.StochasticWeightAveraging,
    lightnings.WeightAveraging,
)


class ComparisonCLI(LightningCLI):
    """Builds a comparison, its stream and its trainer from YAML files and options.

    `configs/base.yaml` is read first; later `--config` files and options override it.

    Args:
        args: Options; those of the process by default.
        dashboard: What a sweep says of the run in the dashboard: `group` where none is given, `project`, `entity`.
    """

    criterion: SampleEfficiency
    results: Results

    def __init__(self, args: ArgsType = None, dashboard: Mapping[str, str] | None = None) -> None:
        self.dashboard = dashboard or {}
        _quieten_lightning()
        _import_exports()
        super().__init__(
            modules.Comparison,
            datamodules.SampleStream,
            subclass_mode_data=True,
            run=False,
            args=args,
            save_config_callback=None,
            seed_everything_default=0,
            # Methods bring their own optimisers.
            auto_configure_optimizers=False,
            parser_class=ComparisonParser,
            parser_kwargs={"default_config_files": [str(BASE_CONFIG)]},
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the criterion and the results, and let one seed decide everything.

        Args:
            parser: The parser.
        """
        parser.add_lightning_class_args(SampleEfficiency, "criterion")
        parser.add_class_arguments(Results, "results")
        parser.add_argument("--trainer.help", action=TrainerHelp, help="Show the options of the trainer and exit.")
        parser.link_arguments("seed_everything", "data.init_args.seed", compute_fn=_require_seed)
        parser.link_arguments("criterion.evaluate_every", "trainer.val_check_interval", compute_fn=int)

    def before_instantiate_classes(self) -> None:
        """Keep the configuration as given."""
        self.config_text = self.parser.dump(self.config)

    def _name_run(self, trainer: Any) -> None:  # noqa: ANN401 - a namespace of options
        """Fill in the folder and the run's names, which follow from the configuration and the name of the photos."""
        dataset, backbone = self.datamodule.photos.name, self.config.data.init_args.backbone
        if trainer["default_root_dir"] is None:
            parts = (dataset, backbone.name, f"s{self.config.seed_everything}", configuration_digest(self.config_text))
            trainer["default_root_dir"] = str(Path("runs") / "-".join(map(_as_file_name, parts)))
        # The trainer and its loggers create what they are given.
        folder = str(output_folder("trainer.default_root_dir", trainer["default_root_dir"]))
        trainer["default_root_dir"] = folder
        if isinstance(trainer["logger"], DashboardLogger):
            comparison = configuration_digest(self.config_text, over_seeds=True)
            described = describe_run(self.config, dataset, _weights(backbone), comparison)
            trainer["logger"].fill_in({"dir": folder, **described}, self.dashboard)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Name the run, and add the progress bar, which shows the state of the criterion.

        Args:
            kwargs: Arguments of the trainer.
        """
        self.criterion, self.results = self.config_init["criterion"], self.config_init["results"]
        trainer = self.config_init["trainer"]
        if trainer["barebones"]:
            raise UserError("trainer.barebones: True would leave out what measures the traces, leave it at False")
        self._name_run(trainer)
        if trainer["enable_progress_bar"] is not False:
            given = trainer["callbacks"] or []
            given = given if isinstance(given, list) else [given]
            trainer["callbacks"] = [*given, ComparisonProgress(self.criterion)]
        try:
            return super().instantiate_trainer(**kwargs)
        except MISTAKES as error:
            raise UserError(_name_option(str(error) or type(error).__name__, trainer)) from error

    def after_instantiate_classes(self) -> None:
        """Check what several options decide together, before anything is computed."""
        _require_protocol(self.trainer, self.config.trainer, self.datamodule.trainer_precisions)
        samples, size = self.datamodule.max_samples, self.datamodule.batch_size
        if len(self.criterion.grid(samples, size, 1).samples_seen) < self.criterion.consecutive:
            raise UserError(
                f"data.max_samples: {samples} is too few to meet the criterion, which takes "
                f"{self.criterion.consecutive} evaluations of {size * self.criterion.evaluate_every} samples each"
            )
        self.results.claim(Path(self.trainer.default_root_dir), self.config_text, self.criterion)
        self.results.describe(self.model, samples)

    def run(self) -> dict[str, Any]:
        """Run the comparison.

        Returns:
            The results, as results.json holds them; none where the run ended before anything was measured.
        """
        # Deterministic kernels come with filling fresh memory, which would touch all that is set aside for later.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        measure(self.trainer, self.model, self.datamodule, self.criterion, self.results)
        return self.results.document


def _require_protocol(trainer: Trainer, options: Any, precisions: Sequence[str]) -> None:  # noqa: ANN401 - a namespace of options
    """Refuse what would feed the stream twice or not to its end, split it over devices, or change the arithmetic."""
    if trainer.precision not in precisions:
        raise UserError(
            f"trainer.precision: {trainer.precision} is not for this stream; give {' or '.join(precisions)}, and "
            "data.precision for the arithmetic of a frozen backbone"
        )
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, SPOILERS):
            raise UserError(f"trainer.callbacks: {type(callback).__name__} would change the protocol; leave it out")
    if trainer.world_size != 1:
        raise UserError(f"trainer.devices: {trainer.world_size} processes asked for; one comparison runs on one device")
    for name, (allowed, instead) in PROTOCOL_OPTIONS.items():
        # True is 1 to Python, and 1.0 of the batches is all of them where 1 of them is one.
        if not any(type(options[name]) is type(each) and options[name] == each for each in allowed):
            raise UserError(
                f"trainer.{name}: {options[name]} would change the protocol, leave it at {allowed[0]}; {instead}"
            )


def _require_seed(seed: int | bool) -> int:
    """Refuse True and False, by which Lightning means a seed of its own choice and none."""
    if isinstance(seed, bool):
        raise UserError(f"seed_everything: {seed} is no seed, which the results are to be had by again; give a number")
    return seed


def _name_option(message: str, options: Any) -> str:  # noqa: ANN401 - a namespace of options
    """Let one of Lightning's messages begin with the option that it is about: the first it names, or whose text."""
    named = {name: re.search(rf"\b{name}\b", message) for name in vars(options)}
    places = {name: found.start() for name, found in named.items() if found}
    quoted = [name for name, value in vars(options).items() if isinstance(value, str) and repr(value) in message]
    return ": ".join([".".join(["trainer", *(sorted(places, key=places.__getitem__) or quoted)[:1]]), message])


def _as_file_name(text: str) -> str:
    """Give a text as part of a file's name on any system."""
    return re.sub(r"[^\w.+-]+", "-", text, flags=re.ASCII)[:LONGEST_PART]


def _weights(backbone: Any) -> str:  # noqa: ANN401 - a namespace of options
    """Name the weights of a backbone, which the entry of a registry says in place of the options."""
    if backbone.registry is None:
        return str(backbone.weights)
    with naming("data.backbone"):
        network, _ = read_network(BackboneSpec(**vars(backbone)), backbone.registry, seed=0)
    return str(network.weights or RANDOM)


def _import_exports() -> None:
    """Import all methods and data sets: a class is known by its name alone, and to the help, once it is imported."""
    exports = [getattr(package, name) for package in (modules, datamodules) for name in package.__all__]
    # A process that lives long may outlive an edit of them.
    keep_sources(each for each in exports if inspect.isclass(each))


def _quieten_lightning() -> None:
    """Silence what says nothing about a comparison: start-up notes, and advice on loaders of what is in memory."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*")
    warnings.filterwarnings("ignore", ".*in eval mode at the start of training.*")
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LightningCLI's args parameter is intended.*")
