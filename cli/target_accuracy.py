"""The command line of `headstart train` that fine-tunes a source on a target."""

from collections import OrderedDict
from copy import deepcopy
from typing import Any

from torch import nn

from headstart.callbacks.run_folder import RunFolder, print_written
from headstart.callbacks.run_ledger import Accuracies, AccuracyFiles
from headstart.callbacks.training import raising_signals, train
from headstart.callbacks.verification import Choose, Verified
from headstart.cli.training_cli import TrainingCLI
from headstart.datamodules.chosen_backbone import build_chosen
from headstart.datamodules.photo_batches import TargetBatches
from headstart.metrics.sample_efficiency.result_warnings import one_class_warnings
from headstart.modules.method import sample_head
from headstart.modules.networks.backbone_spec import RANDOM, without_digest
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.pixel_classifier import describe_maps
from headstart.modules.networks.spec import WHOLE_NETWORK
from headstart.modules.photo_training import ACCURACY, MEAN_IOU
from headstart.modules.target_accuracy import TargetAccuracy
from headstart.output.errors import UserError, prefix_errors
from headstart.output.printable import print_lines, say
from headstart.output.shipped_files import load_yaml
from headstart.output.version import TRAINING_SCHEMA
from headstart.store.accuracy_traces import PhotoCounts, accuracies_of, only_classes, parts_of
from headstart.store.ledger_file import DESCRIPTION
from headstart.store.ledger_reader import RunLedger


class TargetAccuracyCLI(TrainingCLI):
    """Builds a source, the target that it is fine-tuned on and a trainer from YAML files and options."""

    task = "target_accuracy"
    help_intro = """\
usage: headstart train --config configs/target_accuracy.yaml [--OPTION=VALUE ...]

Fine-tune a source on a target, the whole network or only the head, and measure
its accuracy. Accuracies in the ledger are reused.
"""
    model_class = TargetAccuracy
    datamodule_class = TargetBatches
    results_class = AccuracyFiles
    version = 1
    datamodule: TargetBatches
    results: AccuracyFiles

    def run(self) -> dict[str, Any]:
        """Measure the accuracies that the ledger lacks, and write the results."""
        self.datamodule.prepare_data()
        self._identify()
        decided = {**self.run_key.describe(), "orderings": list(self.datamodule.orderings)}
        files = RunFolder(self.folder, self.config_text, self.results.overwrite, TRAINING_SCHEMA)
        is_known = files.holds(decided)

        with files.locked(), self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.run_key, self.datamodule.orderings)
            if is_known and not accuracies.missing:
                say(f"{str(self.folder)!r} already has this accuracy; nothing is computed.")
                return {**files.document, "times": {"seconds": 0.0, "computed_traces": 0}}
            if not accuracies.measure(self._count, self._description):
                say("INCOMPLETE: an option of the trainer ended the run early. The same command begins again.")
                return {"complete": False, "stopped_because": "an option of the trainer stopped it early"}
            document = {"complete": True, "key": decided, **self._document(ledger, accuracies)}
            print_written("Complete", files.write(document, {}))
            return files.document

    def verify(self, choose: Choose) -> Verified:
        """Measure stored accuracies again, and compare them; see `TaskCLI.verify`."""
        self.datamodule.prepare_data()
        self._identify()
        self.folder.mkdir(parents=True, exist_ok=True)
        verified, name = Verified(), f"{self.datamodule.chosen.name} ({self.trained})"
        with self.results.opened_ledger(self.folder) as ledger:
            accuracies = Accuracies(ledger, self.run_key, self.datamodule.orderings)
            stored = accuracies.counts()
            for ordering in sorted(key.ordering for key in choose([accuracies.keys[number] for number in stored])):
                then, now = _correct(stored[ordering]), _correct(self._count(ordering))
                verified.orderings.setdefault(name, []).append(ordering)
                if now != then:
                    verified.differences.append(
                        f"the accuracy of {name} in ordering {ordering} differs: {then} correct predictions "
                        f"are stored, measured again there are {now}"
                    )
        return verified

    def _identify(self) -> None:
        """Build the source, and collect everything that decides the accuracies."""
        batches = self.datamodule
        batches.setup("fit")
        device = self.trainer.strategy.root_device
        with prefix_errors("data.backbone"):
            self.spec, self.backbone = build_chosen(batches.chosen, batches.seed, device, batches.of_pixels)

        self.trained: str = self.model.trained
        self.head_alone = self.trained == "head"
        self.frozen: nn.Module = self.backbone.normalize
        self.tuned: nn.Module = self.backbone.network
        if (boundary := batches.trainable_from) != WHOLE_NETWORK:
            if self.head_alone:
                raise UserError(
                    f"data.trainable_from: {boundary} given, but model.trained=head trains no module of the network; "
                    "leave it out, or give --model.trained=all"
                )
            with prefix_errors("data"):
                split = cut(self.backbone, boundary)
            self.trained, self.frozen, self.tuned = "tail", split.stem, split.tail

        options = dict(load_yaml(self.config_text)["model"])
        if self.head_alone:
            # Features are computed of photos that are not augmented.
            del options["augmentation"]
        inputs = {
            "inputs": f"features in {batches.arithmetic(device)}" if self.head_alone else "photos",
            "selection_share": batches.selection_share,
            "trainable_from": batches.trainable_from,
        }
        self.run_key = self.key(self.spec, self.backbone.preprocessing, options, inputs)

    def _count(self, ordering: int) -> PhotoCounts | None:
        """Train in one ordering, and count the correct predictions; None if training ended early."""
        batches = self.datamodule
        seed = batches.choose(ordering)
        self._load_inputs()
        self._begin(ordering, seed)

        trainer = self.new_trainer()
        if not train(trainer, self.model, batches.train_dataloader()):
            return None

        correct, described, only = dict[str, int](), self._description(), None
        for split in batches.evaluated:
            with raising_signals(trainer):
                (measured,) = trainer.validate(self.model, batches.evaluation_dataloader(split), verbose=False)
            correct[split] = round(parts_of(described, split) * measured[self.model.measured])
            only = self.model.only_class if split == "validation" else only
        return PhotoCounts(correct["validation"], only, correct.get("selection"))

    def _load_inputs(self) -> None:
        """Load what is fed, once for all orderings."""
        batches = self.datamodule
        device = self.trainer.strategy.root_device
        if hasattr(batches, "train_inputs"):
            return
        if self.head_alone:
            batches.load_features(self.spec, device)
        else:
            batches.load_photos(self.backbone.preprocessing, device)
        batches.select()

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
            network = nn.Sequential(OrderedDict(network=deepcopy(self.tuned), head=head))
            self.model.begin(network, self.frozen, classes, seed, batches.of_pixels)

    def _names(self) -> dict[str, Any]:
        """Return the names of source and target, which decide nothing."""
        batches = self.datamodule
        chosen = batches.chosen
        weights = without_digest(chosen.weights) if chosen.registry is None else str(self.spec.weights or RANDOM)
        return {
            "dataset": batches.photos.name,
            "backbone": chosen.name,
            "weights": weights,
            "registry": chosen.registry,
        }

    def _description(self) -> dict[str, Any]:
        """Return what readers should know of the inputs besides what decides the accuracies."""
        batches = self.datamodule
        parts = {"parts": batches.parts} if batches.of_pixels else {}
        sizes = {**self.sizes(), "selection_size": len(batches.selection_labels)}
        described = {**self._names(), "classes": list(batches.classes), **sizes, **parts}
        return {**described, "unreadable_photos": batches.unreadable, "files_left_out": batches.left_out}

    def _document(self, ledger: RunLedger, accuracies: Accuracies) -> dict[str, Any]:
        """Return the results."""
        batches = self.datamodule
        counts, stream = accuracies.counts(), next(iter(accuracies.keys.values())).stream
        described = ledger.origin(stream)[DESCRIPTION]
        values = {split: list(accuracies_of(counts, described, split).values()) for split in batches.evaluated}
        means = {split: sum(numbers) / len(numbers) for split, numbers in values.items()}
        only = only_classes(counts, batches.classes)
        warnings = one_class_warnings(only, len(batches.orderings), batches.of_pixels)

        measure = MEAN_IOU if batches.of_pixels else ACCURACY
        title = f"{measure} of {batches.chosen.name} ({self.trained}) on {batches.photos.name}"
        chosen_by = f" ({means['selection']:.4f} on the selection photos)" if "selection" in means else ""
        say(f"{title}: {means['validation']:.4f}{chosen_by}, {len(batches.orderings)} orderings")
        print_lines(f"WARNING: The network {warning}" for warning in warnings)
        return {
            "task": self.task,
            "trained": self.trained,
            "measure": measure,
            "accuracy": means["validation"],
            "accuracies": values["validation"],
            "selection_accuracy": means.get("selection"),
            "selection_accuracies": values.get("selection"),
            "orderings": list(batches.orderings),
            "only_classes": [only.get(ordering) for ordering in batches.orderings],
            "warnings": warnings,
            **describe_maps(self.backbone.network),
            # The names are those of this run, even if another run measured the accuracies.
            "protocol": {**described, **self._names(), "stream_sha256": stream},
            "duplicate_photos": batches.duplicates,
            "times": {"computed_traces": len(accuracies.measured)},
        }


def _correct(counted: PhotoCounts | None) -> str:
    """Return correct predictions as text, those for the validation photos first."""
    counts = (counted.correct, counted.selected) if counted else ("none", None)
    return " and ".join(str(count) for count in counts if count is not None)
