"""The command line of `headstart train` that fine-tunes a source on a target."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import yaml
from lightning.pytorch.cli import ArgsType
from torch import nn

from headstart.callbacks.interruption import signals_of
from headstart.callbacks.target_accuracies import Accuracies, AccuracyFiles
from headstart.callbacks.training import train
from headstart.callbacks.training_files import TrainingFiles, remove_checkpoint
from headstart.cli.training_cli import TrainingCLI, TrainingParser, deciding
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.draws import draw_epoch
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.datamodules.photo_data import PhotoData
from headstart.datamodules.target_batches import TargetBatches
from headstart.modules.method import draw_head
from headstart.modules.networks.backbone import RANDOM
from headstart.modules.photo_training import ACCURACY, MEAN_IOU
from headstart.modules.provenance import describe, source_digests
from headstart.modules.target_accuracy import TargetAccuracy
from headstart.output.errors import prefix_errors
from headstart.output.printable import say
from headstart.store.json_digest import digest_of
from headstart.store.ledger import TOLD, RunLedger, parts_of


class TargetAccuracyParser(TrainingParser):
    """Shows what is fine-tuned on what, and how."""

    head = """\
usage: headstart train --config configs/target_accuracy.yaml [--OPTION=VALUE ...]

Fine-tune a source on a target, the whole network or the head alone, and measure
its accuracy there, unless the ledger has it.
"""


class TargetAccuracyCLI(TrainingCLI):
    """Builds a source, the target that it is fine-tuned on and a trainer from YAML files and options.

    Args:
        args: Options; those of the process by default.
        dashboard: Of no use here; what a sweep says of a comparison.
    """

    task = "target_accuracy"
    files = AccuracyFiles
    version = 1
    results: AccuracyFiles

    def __init__(self, args: ArgsType = None, dashboard: Mapping[str, str] | None = None) -> None:
        super().__init__(TargetAccuracy, TargetBatches, TargetAccuracyParser, args)

    def run(self) -> dict[str, Any]:
        """Measure the accuracies that the ledger lacks, and write the results."""
        self.datamodule.prepare_data()
        self._identify()
        made_from = {**self.fed, "training": self.training, "orderings": list(self.datamodule.orderings)}
        files = TrainingFiles(self.folder, self.config_text, made_from, self.results.overwrite)
        self.results.identity = files.identity
        self.results.require_known(files.identity)
        with files.locked(), self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.fed, self.training, self.datamodule.orderings)
            if files.document and not accuracies.missing:
                say(f"{str(self.folder)!r} holds this accuracy already; nothing is computed.")
                return {**files.document, "times": {"seconds": 0.0, "computed_traces": 0}}
            if not accuracies.measure(self._count, self._told):
                say("INCOMPLETE: an option of the trainer ended it early. The same command goes on.")
                return {"complete": False, "stopped_because": "an option of the trainer stopped it early"}
            files.write_results(self._document(ledger, accuracies), {})
            return files.document

    def use_ledger(self, open_ledger: Callable[[], RunLedger], known: str) -> None:
        """Use the ledger of a sweep; see `TaskCLI.use_ledger`."""
        self.results.use_ledger(open_ledger, known)

    @property
    def identity(self) -> str:
        """Digest of all that decides the accuracies."""
        return self.results.identity

    def missing(self) -> str:
        """Say how many accuracies the ledger lacks."""
        self._identify()
        with self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.fed, self.training, self.datamodule.orderings)
            return f"{len(accuracies.missing)} of {len(accuracies.keys)} accuracies to measure"

    def _identify(self) -> None:
        """Build the source, and say all that the accuracies depend on."""
        batches: TargetBatches = self.datamodule
        batches.setup("fit")
        device = self.trainer.strategy.root_device
        with prefix_errors("data.backbone"):
            self.spec, self.backbone = build_chosen(batches.chosen, batches.seed, device, batches.of_pixels)
        head_alone = self.model.trained == "head"
        options = {**yaml.safe_load(self.config_text)["model"]}
        if head_alone:
            # Features are those of the photos as they are.
            del options["augmentation"]
        self.training = {
            **describe(self.model, {"init_args": options}),
            "code": source_digests(
                [PhotoData, PhotoBatches, TargetBatches, TrainingCLI, TargetAccuracyCLI, draw_epoch]
            ),
            "trainer": deciding(self.trainer, self.config.trainer),
        }
        self.fed = {
            **self.decided_by(self.spec, self.backbone.preprocessing),
            "inputs": f"features in {batches.arithmetic(device)}" if head_alone else "photos",
        }

    def _count(self, ordering: int) -> int | None:
        """Train in one ordering, and count the correct predictions."""
        batches: TargetBatches = self.datamodule
        device, seed = self.trainer.strategy.root_device, batches.choose(ordering)
        head_alone = self.model.trained == "head"
        if not hasattr(batches, "train_inputs"):
            if head_alone:
                batches.load_features(self.spec, self.backbone.width, device)
            else:
                batches.load_photos(self.backbone.preprocessing, device)
        head = nn.Linear(self.backbone.width, len(batches.classes))
        weight, bias = draw_head(self.backbone.width, len(batches.classes), batches.seed, ordering)
        head.load_state_dict({"weight": weight.T, "bias": bias})
        if head_alone:
            self.model.begin(head, None, len(batches.classes), seed, batches.of_pixels)
        else:
            whole = nn.Sequential(OrderedDict(network=deepcopy(self.backbone.network), head=head))
            self.model.begin(whole, self.backbone.normalize, len(batches.classes), seed, batches.of_pixels)
        trainer = self.another_trainer()
        kept = self.folder / f"{digest_of({**self.fed, 'training': self.training, 'ordering': ordering})[:16]}.ckpt"
        if not train(trainer, self.model, kept, batches.train_dataloader()):
            return None
        with signals_of(trainer):
            (measured,) = trainer.validate(self.model, batches.val_dataloader(), verbose=False)
        remove_checkpoint(kept)
        return round(batches.parts * measured[self.model.measured])

    def _names(self) -> dict[str, Any]:
        """Give what source and target are called, which has no part in what is found."""
        batches: TargetBatches = self.datamodule
        weights = batches.chosen.weights if batches.chosen.registry is None else str(self.spec.weights or RANDOM)
        names = {"dataset": batches.photos.name, "backbone": batches.chosen.name, "weights": weights}
        return {**names, "registry": batches.chosen.registry}

    def _told(self) -> dict[str, Any]:
        """Give what is to be known of what was fed, beside what it is found by."""
        batches: TargetBatches = self.datamodule
        sizes = {"train_size": len(batches.train_labels), "validation_size": len(batches.validation_labels)}
        parts = {"parts": batches.parts} if batches.of_pixels else {}
        told = {**self._names(), "classes": list(batches.classes), **sizes, **parts}
        return {**told, "unreadable_photos": batches.unreadable}

    def _document(self, ledger: RunLedger, accuracies: Accuracies) -> dict[str, Any]:
        counts, stream = accuracies.counts(), next(iter(accuracies.keys.values())).stream
        told = ledger.origin(stream)[TOLD]
        batches: TargetBatches = self.datamodule
        found = [counts[ordering] / parts_of(told) for ordering in batches.orderings]
        measured = MEAN_IOU if batches.of_pixels else ACCURACY
        what = f"{measured} of {batches.chosen.name} ({self.model.trained}) on {batches.photos.name}"
        say(f"{what}: {sum(found) / len(found):.4f}, {len(found)} orderings")
        return {
            "task": self.task,
            "trained": self.model.trained,
            "measure": measured,
            "accuracy": sum(found) / len(found),
            "accuracies": found,
            "orderings": list(batches.orderings),
            # Called as this run calls them, whoever measured them first.
            "protocol": {**told, **self._names(), "stream_sha256": stream},
            "duplicate_photos": batches.duplicates,
            "times": {"computed_traces": len(accuracies.measured)},
        }
