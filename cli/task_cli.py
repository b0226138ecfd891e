"""What the command lines of all tasks of `headstart train` share."""

import logging
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import yaml
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI

from headstart import datamodules, modules
from headstart.callbacks.run_folder import configuration_digest
from headstart.callbacks.verification import Choose, Verified
from headstart.cli.commands import TASKS
from headstart.cli.task_parser import TrainerHelp
from headstart.cli.trainer_options import callbacks_in, require_allowed, require_observers
from headstart.modules.provenance import code_of, describe, is_foreign
from headstart.modules.running_code import suite_digest, suite_doubts
from headstart.output.errors import UserError
from headstart.output.files import output_folder
from headstart.output.seeds import Seed
from headstart.output.shipped_files import load_yaml
from headstart.store.ledger_reader import RunLedger

# Errors of Lightning's trainer for a wrong option, or for one that needs a library that is not installed.
MISTAKES = (MisconfigurationException, ValueError, TypeError, OSError, ImportError)
# Mixed precision of float16, as Lightning names it.
HALF = "16-mixed"
# What the parser writes in place of a default that has no form in YAML, such as a function, before the object itself.
UNWRITTEN = "Unable to serialize instance "
# Characters of the name of a data set or backbone in a folder's name.
LONGEST_PART = 60


class TaskCLI(LightningCLI):
    """Command line of one task: builds its objects from YAML files and options, with one line for each mistake.

    Attributes:
        task: Name of the task.
        allowed: Options of the trainer that the task allows besides those that every task allows.
        results: The object that is built from the options of `results`.
    """

    task: ClassVar[str]
    allowed: frozenset[str]
    results: Any

    def __init__(self, model: type[LightningModule], data: type[LightningDataModule], **kwargs: Any) -> None:
        _quieten_lightning()
        _import_exports()
        super().__init__(
            model,
            data,
            run=False,
            save_config_callback=None,
            auto_configure_optimizers=False,
            **kwargs,
        )

    def add_default_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the seed, which is a number: results are repeatable."""
        parser.add_argument("--seed_everything", type=Seed, default=0, help="Seed of everything random.")

    @abstractmethod
    def run(self) -> dict[str, Any]:
        """Do the task.

        Returns:
            The content of results.json; `complete` says whether it was done to its end.
        """

    def use_ledger(self, open_ledger: Callable[[], RunLedger]) -> None:
        """Use another ledger than that of the options, such as that of a sweep.

        Args:
            open_ledger: Opens the ledger.
        """
        self.results.use_ledger(open_ledger)

    @property
    def chosen_precision(self) -> str:
        """The precision that the user chose; on a processor the trainer replaces float16 by bfloat16."""
        is_half = str(self.config.trainer["precision"]) in ("16", HALF)
        return HALF if is_half else str(self.trainer.precision)

    def require_portable(self) -> None:
        """Check that all that is written lies in the run's folder, which a sweep then brings from another machine.

        Raises:
            UserError: Something else would stay there.
        """

    def verify(self, choose: Choose) -> Verified:
        """Measure stored traces again, and compare them.

        Args:
            choose: Chooses the traces.

        Raises:
            UserError: The task stores none.
        """
        raise UserError(f"task: {self.task} stores no traces")

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add what every task has.

        Args:
            parser: The parser.
        """
        parser.add_argument("--task", default=self.task, help=f"What is done: {', '.join(TASKS)}.")
        parser.add_argument("--trainer.help", action=TrainerHelp, help="Show the options of the trainer and exit.")

    def before_instantiate_classes(self) -> None:
        """Store the configuration as the user gave it."""
        self.config_text = self.parser.dump(self.config)
        if UNWRITTEN in self.config_text:
            self.config_text = yaml.safe_dump(_written(load_yaml(self.config_text)), sort_keys=False)
        # The base class would write the configuration a second time.
        self.config_dump = load_yaml(self.config_text)

    def name_folder(self, trainer: Any, dataset: str, backbone: Any) -> str:  # noqa: ANN401 - namespaces of options
        """Return the run's folder; the default name follows from the configuration.

        Args:
            trainer: The options of the trainer.
            dataset: Name of the photos.
            backbone: The options of the backbone.

        Raises:
            UserError: It cannot be written.
        """
        if trainer["default_root_dir"] is None:
            parts = (dataset, backbone.name, f"s{self.config.seed_everything}", configuration_digest(self.config_text))
            trainer["default_root_dir"] = str(Path("runs") / "-".join(map(_as_file_name, parts)))
        # The trainer and its loggers would create a wrong folder, too.
        folder = str(output_folder("trainer.default_root_dir", trainer["default_root_dir"]))
        trainer["default_root_dir"] = folder
        return folder

    def add_progress(self, trainer: Any, progress: ProgressBar) -> None:  # noqa: ANN401 - a namespace of options
        """Add the suite's progress bar, unless progress bars are switched off.

        Args:
            trainer: The options of the trainer.
            progress: The progress bar.
        """
        if trainer["enable_progress_bar"] is not False:
            trainer["callbacks"] = [*callbacks_in(trainer), progress]

    def foreign_callbacks(self) -> list[tuple[Callback, dict[str, Any]]]:
        """Return the callbacks that are neither the suite's nor Lightning's, with their options."""
        options = callbacks_in(load_yaml(self.config_text)["trainer"])
        # The suite's own come after the user's.
        pairs = zip(callbacks_in(self.config_init["trainer"]), options, strict=False)
        return [(callback, each) for callback, each in pairs if is_foreign(callback, each)]

    def describe_callbacks(self) -> dict[str, dict[str, Any]]:
        """Describe the callbacks that are neither the suite's nor Lightning's: they may change what is measured.

        Returns:
            Their descriptions, as `describe` returns them, by their classes.
        """
        described: dict[str, dict[str, Any]] = {}
        for callback, options in self.foreign_callbacks():
            description = {**describe(callback, options), "code": code_of(callback, options)}
            count = sum(other["class"] == description["class"] for other in described.values())
            described[description["class"] + f" ({count + 1})" * bool(count)] = description
        return described

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Build the trainer; a UserError of one line for a wrong option.

        Args:
            kwargs: Arguments of the trainer.
        """
        defaults = self.parser.get_defaults()["trainer"]
        require_allowed(vars(self.config["trainer"]), vars(defaults), self.allowed)
        with self.explained_options():
            trainer = super().instantiate_trainer(**kwargs)
        require_observers(trainer)
        return trainer

    @contextmanager
    def explained_options(self) -> Iterator[None]:
        """Raise an error of Lightning's trainer about one of its options as a UserError that begins with the option."""
        try:
            yield
        except UserError:
            raise
        except MISTAKES as error:
            reason = str(error) or type(error).__name__
            raise UserError(_name_option(reason, self.config_init["trainer"])) from error


def _name_option(message: str, options: Any) -> str:  # noqa: ANN401 - a namespace of options
    """Return one of Lightning's messages after the option that it is about: the first that it names, or whose value."""
    named = {name: match.start() for name in vars(options) if (match := re.search(rf"\b{name}\b", message))}
    quoted = [name for name, value in vars(options).items() if isinstance(value, str) and repr(value) in message]
    names = sorted(named, key=named.__getitem__) or quoted
    return f"{'.'.join(['trainer', *names[:1]])}: {message}"


def _written(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return a configuration in which such a default is its name, if it has one, or is left out."""
    if isinstance(value, dict):
        values = {key: _written(each) for key, each in value.items()}
        return {key: each for key, each in values.items() if not str(each).startswith(UNWRITTEN)}
    if isinstance(value, list):
        return [_written(each) for each in value]
    name = str(value).removeprefix(UNWRITTEN)
    return name if name.isidentifier() and name != value else value


def _as_file_name(text: str) -> str:
    """Return a text as part of a file name on any system."""
    return re.sub(r"[^\w.+-]+", "-", text, flags=re.ASCII)[:LONGEST_PART]


def _import_exports() -> None:
    """Import all methods and data sets, so that options find them by their names alone and the help lists them."""
    for package in (modules, datamodules):
        for name in package.__all__:
            getattr(package, name)
    # The files may be edited while the process runs.
    suite_digest()
    suite_doubts()


def _quieten_lightning() -> None:
    """Silence messages that do not matter here: start-up notes, and advice on loaders of data in memory."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*")
    warnings.filterwarnings("ignore", f"\\s*{UNWRITTEN}")
    warnings.filterwarnings("ignore", ".*in eval mode at the start of training.*")
    warnings.filterwarnings("ignore", ".*You defined a `validation_step` but have no `val_dataloader`.*")
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LightningCLI's args parameter is intended.*")
