"""Settings of a leaderboard: traces of one stream, read by one criterion."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headstart.contract.tables.grouping import grouped
from headstart.evaluation.protocol_differences import distinguish_methods, distinguishing_keys, show
from headstart.evaluation.runs import Run, join
from headstart.metrics.arrays import Floats
from headstart.metrics.sample_efficiency.curves import Curves
from headstart.metrics.sample_efficiency.scores import restricted
from headstart.store.json_digest import digest_of

STREAM = "stream_sha256"
HYPERPARAMETERS, CODE = "hyperparameters", "code"
# Keys that follow from the seed. Random weights of several seeds are several networks.
SEEDED = ("seed", STREAM, "validation_photos_sha256")
# Data sets are identified by their photos, because folders of one name may hold others.
DATA_SET = ("dataset", "train_photos_sha256")
# Keys of the protocol that a user chooses besides data set and backbone.
CHOICES = (
    *("batch_size", "max_samples", "evaluate_every", "measure", "threshold", "consecutive", "order", "inputs"),
    *("trainable_from", "batch_norm", "dropout", "precision", "feature_precision", "trainer_precision"),
    *("tensor_float_32", "device", "threads", "torch", "torchvision", "pillow"),
)
# The mark of methods whose hyperparameters were chosen on the setting's own validation photos.
TUNED = "on these validation photos"


@dataclass(frozen=True)
class Setting:
    """A setting, with scores of its methods in the order of the leaderboard.

    Attributes:
        name: Unique name.
        protocol: Values of the protocol and the criterion, nested keys with dots.
        curves: Traces of all methods in the orderings that all have, in the order of their numbers.
        method_keys: Key of each method, by name.
        baseline: The method that the others are compared with; None where there is none.
        runs: The runs and ledgers of the traces.
        remarks: Remarks for the reader.
        warnings: Warnings that concern all of its numbers, or some methods.
        tuned: Mark of methods on how their hyperparameters were chosen, by name.
    """

    name: str
    protocol: dict[str, Any]
    curves: Curves
    method_keys: dict[str, dict[str, Any]]
    baseline: str | None
    runs: list[Run]
    remarks: list[str]
    warnings: list[str] = field(default_factory=list)
    tuned: dict[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> list[str]:
        """Folders of the runs and ledgers."""
        return [*dict.fromkeys(str(run.folder) for run in self.runs)]

    @cached_property
    def order(self) -> list[int]:
        """Indices of the methods in the curves by their restricted means, best first; equal ones keep their order."""
        order: list[int] = np.argsort(restricted(self._streaks[0], self.curves.limit).mean(1), kind="stable").tolist()
        return order

    @property
    def names(self) -> list[str]:
        """Names of the methods, best first."""
        return [self.curves.methods[index] for index in self.order]

    @cached_property
    def _streaks(self) -> Floats:
        """Samples to criterion and onset, infinite beyond the limit, `[2, methods, orderings]`."""
        samples, onset = self.curves.samples_to_criterion()
        return np.where(samples > self.curves.limit, np.inf, np.stack([samples, onset]))

    @property
    def streaks(self) -> Floats:
        """Samples to criterion and onset, infinite beyond the limit, `[2, methods, orderings]`, best method first."""
        return self._streaks[:, self.order]

    @property
    def restricted(self) -> Floats:
        """Samples to criterion cut at the limit, `[methods, orderings]`, best first."""
        return restricted(self.streaks[0], self.curves.limit)


def values_of(protocol: Mapping[str, Any], keys: Iterable[str]) -> tuple[str, ...]:
    """Return the values of some keys of a protocol as text."""
    return tuple(str(protocol.get(key)) for key in keys)


def differing_within(protocols: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """Return the fewest other keys by which protocols differ that agree in some keys, digests of streams excepted."""
    groups = grouped((values_of(protocol, keys), protocol) for protocol in protocols)
    differing = (key for group in groups.values() if len(group) > 1 for key in distinguishing_keys(group))
    return [key for key in dict.fromkeys(differing) if key != STREAM]


def name_settings(protocols: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return names by data set and backbone; settings of one name also have the values in which they differ."""
    names = [f"{each['dataset']}, {each['backbone']} ({Path(str(each['weights'])).name})" for each in protocols]
    for name, indices in grouped((name, index) for index, name in enumerate(names)).items():
        keys = distinguishing_keys([protocols[index] for index in indices]) if len(indices) > 1 else []
        for index in indices:
            protocol = protocols[index]
            values = [f"{key.replace('_', ' ')} {show(protocol[key])}" for key in keys if key in protocol]
            names[index] = ", ".join([name, *values])
    return names


def pool_seeds(settings: Sequence[Setting]) -> list[Setting]:
    """Pool the orderings of settings that differ in their seeds alone, and have the same methods and baseline."""

    def shared(setting: Setting) -> str:
        keys = {name: setting.method_keys[name] for name in sorted(setting.curves.methods)}
        others = [setting.baseline, setting.curves.all_correct]
        return digest_of({"protocol": _without_seed(setting.protocol), "methods": keys, "others": others})

    groups = grouped((shared(setting), setting) for setting in settings)
    return [_pool(group) if len(group) > 1 else group[0] for group in groups.values()]


def _without_seed(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in protocol.items() if key not in SEEDED}


def _pool(settings: Sequence[Setting]) -> Setting:
    """Pool the orderings of settings of several seeds, one seed after the other."""
    first, parts, end = settings[0], [], 0
    for each in settings:
        start, end = end, end + len(each.curves.orderings)
        # Orderings of one number are others for another seed.
        parts.append((Path(), replace(each.curves.select(first.curves.methods), orderings=np.arange(start, end))))
    orderings = np.concatenate([setting.curves.orderings for setting in settings])
    curves = replace(join(parts, min(setting.curves.limit for setting in settings)), orderings=orderings)

    seeds = ", ".join(str(setting.protocol["seed"]) for setting in settings)
    remarks = [f"The orderings of the seeds {seeds} are pooled.", *(line for each in settings for line in each.remarks)]
    return replace(
        first,
        protocol={**_without_seed(first.protocol), "seed": seeds},
        curves=curves,
        runs=[run for setting in settings for run in setting.runs],
        remarks=[*dict.fromkeys(remarks)],
        warnings=[*dict.fromkeys(line for setting in settings for line in setting.warnings)],
    )


def name_variants(settings: Mapping[str, Sequence[Run]]) -> dict[str, list[Run]]:
    """Add hyperparameters to the names of methods where runs of one setting differ in these alone.

    A variant has the same name in all settings. Methods that also differ in their code keep their name: they are other
    versions, not variants.

    Args:
        settings: The runs of each setting.
    """
    kinds: dict[str, dict[str, Any]] = {}
    varied: dict[str, None] = {}
    for runs in settings.values():
        named = [(name, run.describe(name)) for run in runs for name in run.curves.methods]
        for name, same in grouped(named).items():
            variants = {digest_of(each[HYPERPARAMETERS]): each[HYPERPARAMETERS] for each in same}
            kinds.setdefault(name, {}).update(variants)
            if len(variants) > 1 and _are_alike_otherwise(same):
                varied[name] = None

    names = {name: distinguish_methods(name, kinds[name]) for name in varied}
    return {key: [_rename(run, names) if names else run for run in runs] for key, runs in settings.items()}


def _are_alike_otherwise(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether documents agree in all but hyperparameters, and code that these name, such as an optimiser's."""
    modules = set.intersection(*(set(document.get(CODE) or {}) for document in documents))
    shared = [{module: (document.get(CODE) or {})[module] for module in sorted(modules)} for document in documents]
    others = [{**each, HYPERPARAMETERS: None, CODE: its} for each, its in zip(documents, shared, strict=True)]
    return all(each == others[0] for each in others)


def _rename(run: Run, names: Mapping[str, Mapping[str, str]]) -> Run:
    """Rename the methods of a run."""
    new = {
        name: names[name][digest_of(run.describe(name)[HYPERPARAMETERS])] if name in names else name
        for name in run.curves.methods
    }
    methods = {new.get(name, name): each for name, each in run.document.get("methods", {}).items()}
    return replace(
        run,
        curves=replace(run.curves, methods=list(new.values())),
        document={**run.document, "methods": methods},
    )
