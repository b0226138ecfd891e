"""The command line of `headstart train` that trains a source model."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from headstart.callbacks.run_folder import RunFolder, print_written
from headstart.callbacks.source_files import (
    REGISTRY,
    WEIGHTS,
    add_entry,
    describe_architecture,
    other_entries,
    registry_entry,
    require_name,
    weights_bytes,
)
from headstart.callbacks.training import train
from headstart.cli.training_cli import TrainingCLI
from headstart.datamodules.chosen_backbone import read_network
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.metrics.sample_efficiency.result_warnings import one_class_warnings
from headstart.modules.networks.backbone import build_classifier
from headstart.modules.networks.build import choose_model
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.pixel_classifier import describe_maps
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.photo_training import ACCURACY
from headstart.modules.run_key import RunKey
from headstart.modules.source_training import SourceTraining
from headstart.output.errors import UserError, prefix_errors
from headstart.output.files import output_file
from headstart.output.printable import print_lines, say
from headstart.output.shipped_files import load_yaml
from headstart.output.version import TRAINING_SCHEMA
from headstart.store.ledger_reader import RunLedger


@dataclass
class SourceFiles:
    """Writes the trained model: weights.safetensors, an entry of a model registry, and results.json.

    Args:
        name: Name of the model in the registry. The default is the name of the run's folder.
        registry: Registry to which the model is added. The default is registry.json in the run's folder.
        overwrite: Replace a model of another configuration in the folder, or of the same name in the registry.
    """

    name: str | None = None
    registry: str | None = None
    overwrite: bool = False


class SourceTrainingCLI(TrainingCLI):
    """Builds a network, the photos that it is trained on and a trainer from YAML files and options."""

    task = "source_training"
    help_intro = """\
usage: headstart train --config configs/source_training.yaml [--OPTION=VALUE ...]

Train a source model on a data set. Writes its weights and a registry entry.
"""
    model_class = SourceTraining
    datamodule_class = PhotoBatches
    results_class = SourceFiles
    version = 1
    results: SourceFiles

    def after_instantiate_classes(self) -> None:
        """Check what several options decide together, before anything is computed."""
        super().after_instantiate_classes()
        self.name = self.results.name or self.folder.resolve().name
        require_name(self.name)
        self.registry = self.folder / REGISTRY
        if chosen := self.results.registry:
            self.registry = output_file("results.registry", chosen)
            # Raises an error before training if the name is taken.
            other_entries(self.registry, self.name, self.folder / WEIGHTS, self.results.overwrite)

    def use_ledger(self, open_ledger: Callable[[], RunLedger]) -> None:
        """Do nothing: the run's folder alone decides whether the model is trained again."""

    def require_portable(self) -> None:
        """Raise an error for a registry that other runs add to, too; see `TaskCLI.require_portable`."""
        if self.results.registry:
            raise UserError(
                f"results.registry: {self.results.registry!r} would be written on this machine, not on the "
                "sweep's; leave it out, and list the registries in the runs' folders instead"
            )

    def run(self) -> dict[str, Any]:
        """Train the model, unless the folder has it, and write it."""
        batches = self.datamodule
        batches.prepare_data()
        batches.setup("fit")
        with prefix_errors("data.backbone"):
            spec, network, preprocessing, width = build_classifier(self._spec(), len(batches.classes))
        key = self.key(spec, preprocessing, load_yaml(self.config_text)["model"])
        files = RunFolder(self.folder, self.config_text, self.results.overwrite, TRAINING_SCHEMA)

        with files.locked():
            if files.holds(key.describe()) and files.has(WEIGHTS):
                say(f"{str(self.folder)!r} already has this model; nothing is computed.")
            elif self._train(network, preprocessing):
                self._write(files, key, spec, network, preprocessing)
            else:
                say("INCOMPLETE: an option of the trainer ended the training early. Run it again with more time.")
                return {"complete": False}
            self._register(files.document, spec, preprocessing, width)
        return files.document

    def _train(self, network: nn.Module, preprocessing: Preprocessing) -> bool:
        """Train the network; False if it ended early."""
        batches = self.datamodule
        batches.load_photos(preprocessing, self.trainer.strategy.root_device)
        normalize = Normalization(preprocessing)
        self.model.begin(network, normalize, len(batches.classes), batches.seed, batches.of_pixels)

        return train(self.trainer, self.model, batches.train_dataloader(), batches.val_dataloader())

    def _register(self, results: dict[str, Any], spec: NetworkSpec, preprocessing: Preprocessing, width: int) -> None:
        """Add the model's entry to the registry."""
        measured = f"{results.get('measure', ACCURACY)} {results['accuracy']:.4f}"
        notes = f"Trained by Headstart on {self.datamodule.photos.name}, {measured}."
        notes += "".join(f" WARNING: The network {warning}" for warning in results.get("warnings", ()))
        entry = registry_entry(self.name, spec, preprocessing, width, notes)
        add_entry(self.registry, entry, self.folder / WEIGHTS)
        say(f"entry {self.name!r} of {self.registry}")

    def _spec(self) -> NetworkSpec:
        options, seed = self.datamodule.chosen, self.datamodule.seed
        spec: NetworkSpec = (
            options.network(seed) if options.registry is None else read_network(options, options.registry, seed)[0]
        )
        return replace(spec, model=choose_model(spec), pixels=self.datamodule.of_pixels)

    def _write(
        self, files: RunFolder, key: RunKey, spec: NetworkSpec, network: nn.Module, preprocessing: Preprocessing
    ) -> None:
        """Write the weights and the results."""
        batches = self.datamodule
        # The measure has single precision; the number of correct predictions is exact.
        accuracy = round(batches.parts * float(self.trainer.callback_metrics[self.model.measured])) / batches.parts
        say(f"{self.model.measured} on {len(batches.validation_labels)} validation photos: {accuracy:.4f}")

        only = self.model.only_class
        warnings = [] if only is None else one_class_warnings({0: batches.classes[only]}, 1, batches.of_pixels)
        print_lines(f"WARNING: The network {warning}" for warning in warnings)

        metadata = {
            "architecture": describe_architecture(spec),
            "classes": str(len(batches.classes)),
            "held_out_accuracy": f"{accuracy:.4f}",
            "size": str(preprocessing.crop),
            "seed": str(batches.seed),
            "key": key.digest(),
        }
        content = weights_bytes(network, metadata)

        document = {
            "complete": True,
            "key": key.describe(),
            "task": self.task,
            "name": self.name,
            "accuracy": accuracy,
            "measure": self.model.measured,
            "warnings": warnings,
            "dataset": batches.photos.name,
            "classes": list(batches.classes),
            **self.sizes(),
            "unreadable_photos": batches.unreadable,
            "files_left_out": batches.left_out,
            "duplicate_photos": batches.duplicates,
            **describe_maps(network),
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "weights_sha256": hashlib.sha256(content).hexdigest(),
        }

        paths = files.write(document, {WEIGHTS: content})
        print_written("Complete", paths)
