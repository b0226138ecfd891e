"""The command line of `headstart train` that fine-tunes a source on a target."""

from collections import OrderedDict
from copy import deepcopy
from typing import Any

import yaml
from torch import nn

from headstart.callbacks.run_folder import TrainingFiles, remove_checkpoint
from headstart.callbacks.run_ledger import Accuracies, AccuracyFiles, record_run
from headstart.callbacks.training import raising_signals, train
from headstart.callbacks.verification import Choose, Verified
from headstart.cli.training_cli import TrainingCLI
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.orderings import sample_epoch
from headstart.datamodules.photo_batches import PhotoBatches, TargetBatches
from headstart.datamodules.photo_data import PhotoData
from headstart.metrics.sample_efficiency.result_warnings import one_class_warnings
from headstart.modules.method import sample_head
from headstart.modules.networks.backbone import RANDOM
from headstart.modules.networks.pixel_classifier import describe_maps
from headstart.modules.photo_training import ACCURACY, MEAN_IOU
from headstart.modules.provenance import describe, source_digests
from headstart.modules.target_accuracy import TargetAccuracy
from headstart.output.errors import prefix_errors
from headstart.output.printable import print_lines, say
from headstart.store.accuracy_traces import Counted, only_classes, parts_of
from headstart.store.json_digest import digest_of
from headstart.store.ledger import RunLedger
from headstart.store.ledger_file import DESCRIPTION


class TargetAccuracyCLI(TrainingCLI):
    """Builds a source, the target that it is fine-tuned on and a trainer from YAML files and options."""

    task = "target_accuracy"
    head = """\
usage: headstart train --config configs/target_accuracy.yaml [--OPTION=VALUE ...]

Fine-tune a source on a target, the whole network or the head alone, and measure
its accuracy there, unless the ledger has it.
"""
    model_class = TargetAccuracy
    datamodule_class = TargetBatches
    files = AccuracyFiles
    version = 1
    datamodule: TargetBatches
    results: AccuracyFiles

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
            record_run(ledger, self.task, self.config_text, accuracies.keys.values())
            if not accuracies.measure(self._count, self._description):
                say("INCOMPLETE: an option of the trainer ended it early. The same command continues.")
                return {"complete": False, "stopped_because": "an option of the trainer stopped it early"}
            files.write_results(self._document(ledger, accuracies), {})
            return files.document

    def verify(self, choose: Choose) -> Verified:
        """Measure stored accuracies again, and compare them; see `TaskCLI.verify`."""
        self.datamodule.prepare_data()
        self._identify()
        self.folder.mkdir(parents=True, exist_ok=True)
        verified, name = Verified(), f"{self.datamodule.chosen.name} ({self.model.trained})"
        with self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.fed, self.training, self.datamodule.orderings)
            stored = accuracies.counts()
            for ordering in sorted(key.ordering for key in choose([accuracies.keys[number] for number in stored])):
                counted = self._count(ordering)
                then, now = stored[ordering].correct, counted and counted.correct
                verified.orderings.setdefault(name, []).append(ordering)
                if now != then:
                    verified.differences.append(
                        f"the accuracy of {name} in ordering {ordering} differs: {then} correct predictions are "
                        f"stored, measured again there are {now}"
                    )
        return verified

    def missing(self) -> str:
        """Return how many accuracies the ledger lacks."""
        self._identify()
        with self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.fed, self.training, self.datamodule.orderings)
            return f"{len(accuracies.missing)} of {len(accuracies.keys)} accuracies to measure"

    def _identify(self) -> None:
        """Build the source, and collect everything that decides the accuracies."""
        batches = self.datamodule
        batches.setup("fit")
        device = self.trainer.strategy.root_device
        with prefix_errors("data.backbone"):
            self.spec, self.backbone = build_chosen(batches.chosen, batches.seed, device, batches.of_pixels)

        self.head_alone = self.model.trained == "head"
        options = {**yaml.safe_load(self.config_text)["model"]}
        if self.head_alone:
            # Features are computed of photos that are not augmented.
            del options["augmentation"]
        sources = [PhotoData, PhotoBatches, TargetBatches, TrainingCLI, TargetAccuracyCLI, sample_epoch]
        self.training = {
            **describe(self.model, {"init_args": options}),
            "code": source_digests(sources),
            "trainer": self.decisive_options(),
        }
        self.fed = {
            **self.decided_by(self.spec, self.backbone.preprocessing),
            "inputs": f"features in {batches.arithmetic(device)}" if self.head_alone else "photos",
        }

    def _count(self, ordering: int) -> Counted | None:
        """Train in one ordering, and count the correct predictions; None if training ended early."""
        batches = self.datamodule
        seed = batches.choose(ordering)
        self._load_inputs()
        self._begin(ordering, seed)

        trainer = self.another_trainer()
        key = {**self.fed, "training": self.training, "ordering": ordering}
        checkpoint = self.folder / f"{digest_of(key)[:16]}.ckpt"
        if not train(trainer, self.model, checkpoint, batches.train_dataloader()):
            return None

        with raising_signals(trainer):
            (measured,) = trainer.validate(self.model, batches.val_dataloader(), verbose=False)
        remove_checkpoint(checkpoint)
        return Counted(round(batches.parts * measured[self.model.measured]), self.model.only_class)

    def _load_inputs(self) -> None:
        """Load what is fed, once for all orderings."""
        batches = self.datamodule
        device = self.trainer.strategy.root_device
        if hasattr(batches, "train_inputs"):
            return
        if self.head_alone:
            batches.load_features(self.spec, self.backbone.width, device)
        else:
            batches.load_photos(self.backbone.preprocessing, device)

    def _begin(self, ordering: int, seed: int) -> None:
        """Start from the source and the head of one ordering."""
        batches = self.datamodule
        width, classes = self.backbone.width, len(batches.classes)
        head = nn.Linear(width, classes)
        weight, bias = sample_head(width, classes, batches.seed, ordering)
        head.load_state_dict({"weight": weight.T, "bias": bias})

        if self.head_alone:
            self.model.begin(head, None, classes, seed, batches.of_pixels)
        else:
            network = nn.Sequential(OrderedDict(network=deepcopy(self.backbone.network), head=head))
            self.model.begin(network, self.backbone.normalize, classes, seed, batches.of_pixels)

    def _names(self) -> dict[str, Any]:
        """Return the names of source and target, which decide nothing."""
        batches = self.datamodule
        chosen = batches.chosen
        weights = chosen.weights if chosen.registry is None else str(self.spec.weights or RANDOM)
        names = {"dataset": batches.photos.name, "backbone": chosen.name, "weights": weights}
        return {**names, "registry": chosen.registry}

    def _description(self) -> dict[str, Any]:
        """Return what readers should know of the inputs besides what decides the accuracies."""
        batches = self.datamodule
        parts = {"parts": batches.parts} if batches.of_pixels else {}
        described = {**self._names(), "classes": list(batches.classes), **self.sizes(), **parts}
        return {**described, "unreadable_photos": batches.unreadable}

    def _document(self, ledger: RunLedger, accuracies: Accuracies) -> dict[str, Any]:
        """Return the results."""
        batches = self.datamodule
        counts, stream = accuracies.counts(), next(iter(accuracies.keys.values())).stream
        described = ledger.origin(stream)[DESCRIPTION]
        values = [counts[ordering].correct / parts_of(described) for ordering in batches.orderings]
        mean = sum(values) / len(values)
        only = only_classes(counts, batches.classes)
        warnings = one_class_warnings(only, len(values), batches.of_pixels)

        measure = MEAN_IOU if batches.of_pixels else ACCURACY
        title = f"{measure} of {batches.chosen.name} ({self.model.trained}) on {batches.photos.name}"
        say(f"{title}: {mean:.4f}, {len(values)} orderings")
        print_lines(f"WARNING: The network {warning}" for warning in warnings)
        return {
            "task": self.task,
            "trained": self.model.trained,
            "measure": measure,
            "accuracy": mean,
            "accuracies": values,
            "orderings": list(batches.orderings),
            "only_classes": [only.get(ordering) for ordering in batches.orderings],
            "warnings": warnings,
            **describe_maps(self.backbone.network),
            # The names are those of this run, even if another run measured the accuracies.
            "protocol": {**described, **self._names(), "stream_sha256": stream},
            "duplicate_photos": batches.duplicates,
            "times": {"computed_traces": len(accuracies.measured)},
        }
