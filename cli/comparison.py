"""The command line of `headstart train`."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from headstart import datamodules, modules
from headstart.callbacks import ComparisonProgress, ComparisonRun, SampleEfficiency
from headstart.callbacks.dashboard import DashboardLogger, describe_run
from headstart.callbacks.measurement import measure
from headstart.callbacks.run_folder import configuration_digest
from headstart.callbacks.verification import Choose, Verified, verify
from headstart.cli.task_cli import TaskCLI
from headstart.cli.task_parser import TaskParser, sections
from headstart.cli.trainer_options import TRAINING, own_trainer, require_allowed
from headstart.datamodules.chosen_backbone import read_network
from headstart.modules.networks.backbone_spec import RANDOM, BackboneSpec, without_digest
from headstart.output.errors import UserError, prefix_errors
from headstart.output.parser import OneLineErrorParser
from headstart.output.processors import require_memory
from headstart.output.shipped_files import CONFIGS, load_yaml

BASE_CONFIG = CONFIGS / "base.yaml"
# Of correct predictions, as they are held while a run measures.
BYTES_PER_COUNT = 8
INTRO = """\
usage: headstart train --config FILE [--OPTION=VALUE ...]

Compare transfer methods by the number of samples that they need.
configs/base.yaml is read first, then each --config and option in turn. Later
values win. --task=source_training and --task=target_accuracy train one model
instead; add --help for their options. A file can also set the key task.
"""
EPILOG = """\
Options of a class:      --data.help=headstart.datamodules.PhotoStream,
                         --data.photos.help=headstart.datamodules.CatsAndDogs,
                         --model.baseline.help=headstart.modules.Replay
Options of the trainer:  --trainer.help
Available names:         headstart list methods; datasets; configs
Version:                 --version
"""


class ComparisonParser(TaskParser):
    """Shows what is fed, compared and measured."""

    shown = ("model", "criterion", "results", "")

    def _describe(self) -> str:
        # The stream is a class to choose, so that its options are none of this parser's.
        stream = OneLineErrorParser()
        stream.add_class_arguments(datamodules.FeatureStream, "data", fail_untyped=False)
        return "\n".join((sections(stream, "data", "data.backbone"), sections(self, *self.shown)))


class ComparisonCLI(TaskCLI):
    """Builds a comparison, its stream and its trainer from YAML files and options.

    `configs/base.yaml` is read first; later `--config` files and options override it.

    Args:
        args: Options; those of the process by default.
        dashboard: Values of a sweep for the run in the dashboard: its name, parameters, project and entity.
    """

    task = "comparison"
    # It follows from the criterion.
    allowed = frozenset({"val_check_interval"})
    criterion: SampleEfficiency
    results: ComparisonRun

    def __init__(self, args: ArgsType = None, dashboard: Mapping[str, Any] | None = None) -> None:
        self.dashboard = dashboard or {}
        super().__init__(
            modules.Comparison,
            datamodules.SampleStream,
            subclass_mode_data=True,
            args=args,
            parser_class=ComparisonParser,
            parser_kwargs={"default_config_files": [str(BASE_CONFIG)], "description": INTRO, "epilog": EPILOG},
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the criterion and the results, and let one seed decide everything.

        Args:
            parser: The parser.
        """
        super().add_arguments_to_parser(parser)
        parser.add_lightning_class_args(SampleEfficiency, "criterion")
        parser.add_class_arguments(ComparisonRun, "results")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("criterion.evaluate_every", "trainer.val_check_interval", compute_fn=int)

    def _name_run(self, trainer: Any) -> None:  # noqa: ANN401 - a namespace of options
        """Fill in the folder and the run's names, which follow from the configuration and the name of the photos."""
        dataset, backbone = self.datamodule.photos.name, self.config.data.init_args.backbone
        folder = self.name_folder(trainer, dataset, backbone)
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
        self._name_run(trainer)
        if not self.model.lightning_modules:
            self.add_progress(trainer, ComparisonProgress(self.criterion))
            return super().instantiate_trainer(**kwargs)

        self._keep_for_own_modules(trainer)
        for name in TRAINING - {"callbacks"} - ({"precision"} if self._trains_backbone else set()):
            kwargs[name] = self.parser.get_defaults()["trainer"][name]
        is_shown = trainer["enable_progress_bar"] is not False
        return super().instantiate_trainer(**kwargs, callbacks=[ComparisonProgress(self.criterion)] * is_shown)

    def _keep_for_own_modules(self, trainer: Any) -> None:  # noqa: ANN401 - a namespace of options
        """Keep the options that change training for the trainers of LightningModules, and check them there."""
        self.allowed = self.allowed | TRAINING
        defaults = vars(self.parser.get_defaults()["trainer"])
        require_allowed(vars(self.config["trainer"]), defaults, self.allowed)
        options = load_yaml(self.config_text)["trainer"]
        changed = [name for name in sorted(TRAINING & options.keys()) if options[name] != defaults[name]]
        self.results.training = {name: options[name] for name in changed}
        self.results.own_trainer = partial(own_trainer, dict(vars(trainer)))
        with self.explained_options():
            self.results.own_trainer([])

    @property
    def _trains_backbone(self) -> bool:
        return not isinstance(self.datamodule, datamodules.FeatureStream)

    def after_instantiate_classes(self) -> None:
        """Check what several options decide together, before anything is computed."""
        precision, precisions = self.chosen_precision, self.datamodule.trainer_precisions
        if precision not in precisions and (self._trains_backbone or not self.model.lightning_modules):
            raise UserError(
                f"trainer.precision: {precision} does not fit this stream; give {' or '.join(precisions)}, "
                "and data.precision for the arithmetic of a frozen backbone"
            )

        samples, size = self.datamodule.max_samples, self.datamodule.batch_size
        self._require_memory(max(1, samples // (size * self.criterion.evaluate_every)))
        evaluations = len(self.criterion.grid(samples, size, 1).samples_seen)
        needed, step = self.criterion.consecutive, size * self.criterion.evaluate_every
        if evaluations < needed:
            raise UserError(
                f"data.max_samples: {samples} is too few to meet the criterion, which needs "
                f"{needed} evaluation{'s' * (needed > 1)} of {step} sample{'s' * (step > 1)} each"
            )
        self.results.prepare(Path(self.trainer.default_root_dir), self.config_text, self.criterion)
        self.results.describe_methods(self.model, samples, self.foreign_callbacks(), self.describe_callbacks())

    def _require_memory(self, evaluations: int) -> None:
        """Raise a UserError if the counts of all evaluations do not fit into memory."""
        numbers, methods = self.datamodule.orderings, len(self.model.names)
        # `len` takes no range of more numbers than there are bytes.
        orderings = numbers.stop - numbers.start
        option = "data.orderings" if orderings > evaluations else "data.max_samples"
        what = f"{orderings:,} orderings of {evaluations:,} evaluations of {methods} methods"
        require_memory(option, what, BYTES_PER_COUNT * orderings * methods * evaluations)

    def run(self) -> dict[str, Any]:
        """Run the comparison.

        Returns:
            The results, as results.json holds them; why there are none where the run ended before that.
        """
        # Deterministic kernels come with filling fresh memory, which would touch all that is set aside for later.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        measure(self.trainer, self.model, self.datamodule, self.results)
        return self.results.document or {"complete": False, "stopped_because": self.criterion.cut_off_because}

    def verify(self, choose: Choose) -> Verified:
        """Measure stored traces again, and compare them; see `TaskCLI.verify`."""
        return verify(self.trainer, self.model, self.datamodule, self.results, choose)


def _weights(backbone: Any) -> str:  # noqa: ANN401 - a namespace of options
    """Return the name of the weights of a backbone: those of its registry entry, if it has one."""
    if backbone.registry is None:
        return without_digest(str(backbone.weights))
    with prefix_errors("data.backbone"):
        network, _ = read_network(BackboneSpec(**vars(backbone)), backbone.registry, seed=0)
    return str(network.weights or RANDOM)
