"""Accuracies of a source on a target through the command line: against plain loops, and what is not measured again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.cli.verify import verify
from headstart.datamodules import ClassFolders
from headstart.datamodules.orderings import sample_seed, sample_selection
from headstart.datamodules.photo_batches import EpochBatches
from headstart.evaluation.performances import performances
from headstart.modules.method import sample_head
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.photo_training import PhotoTraining, epoch_seed
from headstart.output.errors import UserError
from headstart.store.accuracy_traces import PhotoCounts
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import TraceKey
from headstart.store.ledger_reader import LedgerReader
from headstart.tests.material.prepared_pictures import stack
from headstart.tests.material.training import CONFIGS, error_line, predict_one_class, refuse, run, small_training

CONFIG = f"--config={CONFIGS / 'target_accuracy.yaml'}"
Measure = Callable[..., dict[str, Any]]
BATCH, EPOCHS = 5, 3


def load(root: Path, backbone: Backbone) -> dict[str, tuple[Tensor, Tensor]]:
    source = ClassFolders(str(root))
    results = {}
    for split, photos in (("train", source.train()), ("validation", source.validation())):
        pixels = [backbone.preprocessing.prepare(photos.read(index)) for index in range(len(photos))]
        results[split] = stack(pixels), torch.from_numpy(photos.labels)
    return results


def plain_accuracies(
    root: Path, trained: str, seed: int, ordering: int, share: float = 0, frozen: int = 0
) -> list[float]:
    """Fine-tune in a bare loop of PyTorch; the first modules of `features` stay frozen."""
    small = Preprocessing(32, 32)
    backbone = build_backbone(BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, small).network(seed))
    photos = load(root, backbone)
    if share:
        inputs, labels = photos["train"]
        selected = np.isin(np.arange(24), sample_selection(labels.numpy(), np.arange(24), share, seed))
        for split, mask in (("selection", selected), ("train", ~selected)):
            photos[split] = inputs[mask], labels[mask]

    head = nn.Linear(backbone.width, 2)
    weight, bias = sample_head(backbone.width, 2, seed, ordering)
    head.load_state_dict({"weight": weight.T, "bias": bias})
    network: nn.Module = nn.Sequential(backbone.normalize, backbone.network, head)
    if trained == "head":
        with torch.inference_mode():
            photos = {split: (backbone(pixels), labels) for split, (pixels, labels) in photos.items()}
        network = head
    network.train()
    for number in range(frozen):
        backbone.network.get_submodule(f"features.{number}").requires_grad_(False).eval()

    inputs, labels = photos["train"]
    drawn = sample_seed(ordering, seed)
    batches = EpochBatches(len(labels), BATCH, drawn)
    steps = EPOCHS * len(batches)
    optimizer = torch.optim.AdamW((p for p in network.parameters() if p.requires_grad), lr=0.001, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.001, steps, pct_start=round(0.2 * steps) / steps)

    for epoch in range(EPOCHS):
        batches.set_epoch(epoch)
        torch.manual_seed(epoch_seed(drawn, epoch))
        for indices in batches:
            optimizer.zero_grad()
            functional.cross_entropy(network(inputs[indices].clone()), labels[indices]).backward()
            optimizer.step()
            schedule.step()

    with torch.inference_mode():
        return [
            float((network.eval()(inputs.clone()).argmax(1) == labels).float().mean())
            for inputs, labels in (photos[split] for split in ("validation", "selection") if split in photos)
        ]


@pytest.fixture
def options(photo_folder: Path) -> list[str]:
    few = [f"--trainer.max_epochs={EPOCHS}", "--model.augmentation=[]", "--data.precision=float32"]
    return [CONFIG, *small_training(photo_folder), *few]


@pytest.fixture
def measure(options: list[str]) -> Measure:
    return lambda folder, *more: run(folder, *options, *more)


@pytest.mark.slow
@pytest.mark.parametrize(("trained", "share"), [("all", 0.25), ("head", 0)])
def test_a_bare_loop_gives_the_same_accuracies(
    trained: str, share: float, measure: Measure, photo_folder: Path, tmp_path: Path
) -> None:
    options = [f"--model.trained={trained}", "--data.orderings=2", "--seed_everything=4"]
    options += [f"--data.selection_share={share}"] * bool(share)
    results = measure(tmp_path / "run", *options)
    expected = np.array([plain_accuracies(photo_folder, trained, 4, ordering, share) for ordering in range(2)])
    assert results["accuracies"] == pytest.approx(expected[:, 0])
    assert results["accuracy"] == pytest.approx(expected[:, 0].mean())
    sizes = [results["protocol"][size] for size in ("train_size", "selection_size", "validation_size")]
    assert sizes == ([18, 6, 12] if share else [24, 0, 12])
    if share:
        # Selection photos are not trained on, and measured apart.
        assert results["selection_accuracies"] == pytest.approx(expected[:, 1])
    # The accuracies are read from the ledger, too.
    again = measure(tmp_path / "again", *options)
    assert again["times"]["computed_traces"] == 0
    assert again["accuracies"] == results["accuracies"]
    assert verify(str(tmp_path / "run"), share=1.0).orderings == {f"mobilenet_v2 ({trained})": [0, 1]}


@pytest.mark.slow
def test_modules_before_a_freeze_boundary_stay_as_they_are(
    measure: Measure, photo_folder: Path, tmp_path: Path
) -> None:
    behind = ["--data.trainable_from=features.14", "--data.orderings=2", "--seed_everything=4"]
    results = measure(tmp_path / "run", *behind)
    expected = [plain_accuracies(photo_folder, "all", 4, ordering, frozen=14)[0] for ordering in range(2)]
    assert results["accuracies"] == pytest.approx(expected)
    assert results["trained"] == "tail"


@pytest.mark.slow
def test_nothing_is_measured_twice_in_any_run(
    measure: Measure, photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure(tmp_path / "first", "--data.orderings=2")
    assert first["times"]["computed_traces"] == 2
    written = (tmp_path / "first" / "results.json").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(PhotoTraining, "training_step", refuse)
        measure(tmp_path / "first", "--data.orderings=2")
        assert (tmp_path / "first" / "results.json").read_bytes() == written
        # Under another name of the photos, in another folder: contents count.
        renamed = f"--data.photos.root={photo_folder.rename(photo_folder.with_name('renamed'))}"
        other = measure(tmp_path / "second", "--data.orderings=1", "--data.first_ordering=1", renamed)
        assert other["times"]["computed_traces"] == 0
        assert other["accuracies"] == first["accuracies"][1:]
        assert other["protocol"]["dataset"] == "renamed"


@pytest.mark.slow
def test_changes_that_decide_the_accuracy_are_measured_again(measure: Measure, tmp_path: Path) -> None:
    mirrored = "--model.augmentation=[headstart.modules.augmentation.MirrorHalf]"
    head, steps = "--model.trained=head", "--model.optimizer.lr=0.002"
    changes = [[head], ["--data.batch_size=4"], ["--seed_everything=1"], [steps], ["--trainer.max_epochs=2"]]
    changes += [[mirrored], ["--data.backbone.model_args.width_mult=0.35"]]
    # The head is trained on features of photos as they are.
    computed = [measure(tmp_path / f"{k}", *each) for k, each in enumerate([[], *changes, [head, mirrored]])]
    assert [results["times"]["computed_traces"] for results in computed] == [1] * 8 + [0]


@pytest.mark.slow
def test_stored_accuracies_are_verified(
    measure: Measure, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    results = measure(tmp_path / "run", "--model.trained=head", "--data.orderings=2")
    with LedgerReader(tmp_path / "ledger") as reader:
        [stream] = reader.streams("target_accuracy")
        [method] = reader.traces(stream).methods
    with Ledger(tmp_path / "ledger") as ledger:
        key = TraceKey(stream, method, 1)
        count = int(ledger.read([key])[key].correct[0])
        assert count == round(12 * results["accuracies"][1])
        ledger.write({key: PhotoCounts(count - 1).trace()})
    with pytest.raises(UserError, match="1 of 2 traces"):
        verify(str(tmp_path / "run"), share=1.0)
    line = f"in ordering 1 differs: {count - 1} correct predictions are stored, measured again there are {count}."
    assert line in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_network_that_predicts_one_class_alone_is_named(
    measure: Measure, photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    with monkeypatch.context() as patched:
        predict_one_class(patched, 1)
        first = measure(tmp_path / "first", "--model.trained=head")
    photos = ClassFolders(str(photo_folder)).validation()
    warning = f"predicts {photos.classes[1]!r} for all validation photos."
    assert first["accuracy"] == pytest.approx((photos.labels == 1).mean())
    assert (first["only_classes"], first["warnings"]) == ([photos.classes[1]], [warning])
    # The ledger has the warning, too.
    monkeypatch.setattr(PhotoTraining, "training_step", refuse)
    second = measure(tmp_path / "second", "--model.trained=head")
    assert second["warnings"] == [warning]
    performances(str(tmp_path / "second"), output=str(tmp_path / "table.csv"))
    assert warning in (tmp_path / "table.csv").read_text()


def test_waiting_for_another_process(
    measure: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim, held = Ledger.claim, list[Any]()

    def late(self: Ledger, keys: Any) -> Any:
        keys = list(keys)
        if not held:
            held.extend(keys)
            return {keys[0]: "another-1"}
        return claim(self, keys)

    monkeypatch.setattr(Ledger, "claim", late)
    monkeypatch.setattr("headstart.callbacks.run_ledger.SECONDS_BETWEEN_LOOKS", 0.0)
    assert measure(tmp_path / "run")["complete"]
    assert capsys.readouterr().out.count("waiting for process") == 1


@pytest.mark.slow
def test_faults_are_one_line(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = "--data.photos=headstart.datamodules.DrawnPets"
    photos = "data.selection_share: {} given, which selects {} of 24 training photos, but both"
    head = "--data.trainable_from=features.14", "--model.trained=head"
    refused = {
        ("--results.ledger=/dev/null/ledger",): "results.ledger: '/dev/null/ledger' cannot be used",
        (drawn, "--data.photos.train_size=1"): "data.photos: ",
        ("--data.seed=3",): "data.seed: it follows from seed_everything, and cannot be given",
        ("--data.selection_share=0.05",): photos.format(0.05, 1),
        head: "data.trainable_from: features.14 given, but model.trained=head trains no module",
        ("--trainer.devices=2",): "trainer.devices: 2 processes requested; a run has one device",
        ("--trainer.precision=16-mixed",): "trainer.precision: 16-mixed given; take 32-true or",
    }
    for more, beginning in refused.items():
        line = error_line(capsys, tmp_path / "run", *options, *more, code=2 if more[0] == "--data.seed=3" else 1)
        assert line.startswith(f"error: {beginning}"), line
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_shipped_configuration(tmp_path: Path) -> None:
    few = ["--data.photos.train_size=40", "--data.photos.validation_size=20", "--trainer.max_epochs=1"]
    assert run(tmp_path / "target", CONFIG, *few)["protocol"]["classes"] == ["cats", "dogs"]
