"""Missing rows are computed by pieces, in workers or in this process; each once, and the same bit for bit."""

import errno
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import row_request
from headstart.datamodules.extraction_progress import ExtractionProgress
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.piece_task import Piece
from headstart.datamodules.pieces import compute_missing
from headstart.datamodules.row_policy import Policy, Resources
from headstart.datamodules.row_request import TABLES, RowRequest
from headstart.datamodules.rows import find
from headstart.engines.options import EngineOptions
from headstart.engines.task import Outcome, Receive, Task
from headstart.engines.workers import Workers
from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError
from headstart.output.files import digest_file
from headstart.store import segment_writer
from headstart.store.row_store import RowStore
from headstart.store.segments import StoreError
from headstart.tests.material.in_this_process import InThisProcess
from headstart.tests.material.stored_rows import SMALL


@dataclass
class ComputedBefore:
    """A source of rows that are already there."""

    count: int
    chunks: list[Any]
    notes: dict[str, Any]
    remarks: dict[int, str]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.chunks)


@pytest.fixture
def request_rows(photos: Photos, monkeypatch: pytest.MonkeyPatch) -> RowRequest:
    """Features of 24 photos, in pieces of five."""
    monkeypatch.setattr(row_request, "piece_size", lambda side, kind: 5)
    network = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(0)
    return RowRequest(photos, SMALL, Policy(folded=True, unreadable="remark", device="cpu"), network)


def compute(request: RowRequest, folder: Path, engine: Any) -> int:
    resources = Resources(folder, "features", 0)
    return compute_missing({"photos": request}, resources, EngineOptions(workers=2), engine)["photos"]


def stored(request: RowRequest, folder: Path) -> Any:
    result = find(request, Resources(folder, "features", 0, only_stored=True))
    return np.array(result.rows), result.notes, result.remarks


def same(first: Any, second: Any) -> bool:
    return bool(np.array_equal(first[0], second[0])) and first[1:] == second[1:]


def test_rows_are_those_of_one_computation(request_rows: RowRequest, tmp_path: Path) -> None:
    find(request_rows, Resources(tmp_path / "whole", "features", 0))
    engine = InThisProcess()
    assert compute(request_rows, tmp_path / "pieces", engine) == 24
    assert engine.names == [f"photos: pictures up to {count} of 24" for count in (5, 10, 15, 20, 24)]
    assert same(stored(request_rows, tmp_path / "pieces"), stored(request_rows, tmp_path / "whole"))
    # They follow each other in one segment, and are computed once.
    (journal,) = (tmp_path / "pieces" / TABLES).glob("*/*.journal")
    assert not list(journal.parent.glob("*.lock"))
    assert not list(journal.parent.parent.glob("run-*"))
    assert compute_missing({"photos": request_rows}, Resources(tmp_path / "pieces", ""), EngineOptions(workers=2)) == {}


def test_pieces_also_end_at_a_number_of_bytes(
    request_rows: RowRequest, photos: Photos, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = np.array([3, 3, 3, 20, 1, 1, 1, 1, 1, 1, 8, 2] * 2)
    monkeypatch.setattr(type(photos), "file_sizes", lambda self, indices: sizes[indices])
    monkeypatch.setattr(row_request, "PIECE_BYTES", 10)
    cut = request_rows.cut(np.arange(24))
    assert np.array_equal(np.concatenate(cut), np.arange(24))
    for piece, following in zip(cut, [*cut[1:], np.array([], int)], strict=True):
        assert len(piece) <= 5
        assert len(piece) == 1 or sizes[piece].sum() <= 10
        # A piece is no shorter than need be.
        assert len(piece) == 5 or not len(following) or sizes[piece].sum() + sizes[following[0]] > 10


def test_a_second_command_takes_the_pieces_that_are_left(request_rows: RowRequest, tmp_path: Path) -> None:
    find(request_rows, Resources(tmp_path / "whole", "features", 0))
    second: list[int] = []

    def run_another(task: Task) -> Task:
        if task.name.endswith("15 of 24"):
            second.append(compute(request_rows, tmp_path / "shared", InThisProcess()))
        return task

    assert compute(request_rows, tmp_path / "shared", InThisProcess(run_another)) == 10
    assert second == [14]
    assert same(stored(request_rows, tmp_path / "shared"), stored(request_rows, tmp_path / "whole"))


@pytest.mark.slow
def test_pieces_that_another_command_is_computing_are_waited_for(request_rows: RowRequest, tmp_path: Path) -> None:
    folder, whole = tmp_path / "shared", tmp_path / "whole"
    find(request_rows, Resources(whole, "features", 0))
    resources = Resources(folder, "features", 0)
    computed = request_rows.compute(range(5, 10), resources, request_rows.load(folder), lambda step: None)
    # A thread must not run a network while another one traces its own.
    source = ComputedBefore(len(computed), list(computed), computed.notes, computed.remarks)
    digests = request_rows.pictures.digests()[5:10]
    started, counts = threading.Event(), []

    def compute_slowly() -> None:
        def wait(free: Any) -> ComputedBefore:
            started.set()
            # The command computes all others meanwhile, and waits for these.
            time.sleep(2)
            return source

        with RowStore(folder / TABLES).filler(request_rows.key) as other:
            counts.append(other.fill(digests, wait))

    thread = threading.Thread(target=compute_slowly)
    thread.start()
    assert started.wait(60)
    assert compute(request_rows, folder, InThisProcess()) == 19
    thread.join(60)
    assert counts == [5]
    assert same(stored(request_rows, folder), stored(request_rows, whole))


def test_a_machine_without_the_cache_returns_its_rows(request_rows: RowRequest, tmp_path: Path) -> None:
    find(request_rows, Resources(tmp_path / "whole", "features", 0))

    def move_away(task: Task) -> Task:
        piece: Piece = task.argument
        elsewhere = tmp_path / "elsewhere"
        return replace(task, argument=replace(piece, cache=elsewhere, marker=elsewhere / "run"))

    assert compute(request_rows, tmp_path / "here", InThisProcess(move_away)) == 24
    assert same(stored(request_rows, tmp_path / "here"), stored(request_rows, tmp_path / "whole"))
    assert not list((tmp_path / "elsewhere").glob("rows/*/*.rows"))
    # The command stores all pieces in one segment.
    assert len(list((tmp_path / "here").glob("rows/*/*.journal"))) == 1


def test_a_machine_with_other_versions_computes_nothing(
    request_rows: RowRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update(task: Task) -> Task:
        monkeypatch.setattr(row_request, "version", lambda package: "another")
        return task

    with pytest.raises(UserError, match=r"^ray: this machine has other versions of torch"):
        compute(request_rows, tmp_path, InThisProcess(update))
    assert not list(tmp_path.glob("rows/*/*.rows"))


def test_a_failed_piece_ends_its_request_alone(request_rows: RowRequest, photos: Photos, tmp_path: Path) -> None:
    path = Path(photos.root) / photos.names[7]  # type: ignore[attr-defined]
    path.write_bytes(b"no picture")
    broken = replace(request_rows, policy=replace(request_rows.policy, unreadable="refuse"))
    broken.pictures.set_digests([digest_file(Path(photos.root) / name) for name in photos.names])  # type: ignore[attr-defined]
    whole = replace(request_rows, pictures=photos.subset(np.arange(8, 24)))
    engine = InThisProcess()
    requests = {"broken": broken, "whole": whole}
    with pytest.raises(UserError, match=rf"^photo {photos.names[7]!r} cannot be decoded: no picture of a known format"):
        compute_missing(requests, Resources(tmp_path, "features", 0), EngineOptions(workers=2), engine)
    assert [name for name in engine.names if name.startswith("broken")] == [
        f"broken: pictures up to {count} of 24" for count in (5, 10)
    ]
    assert len(stored(whole, tmp_path)[0]) == 16


def test_a_lost_piece_is_computed_again(request_rows: RowRequest, tmp_path: Path) -> None:
    lost = [1, 1, 2, 4, 4, 4]

    def lose(task: Task) -> Task | Outcome:
        number = int(task.name.split()[4]) // 5
        if number in lost:
            lost.remove(number)
            return Outcome("lost", error="its process ended by SIGKILL")
        return task

    assert compute(request_rows, tmp_path, InThisProcess(lose)) == 24
    assert lost == []


def test_a_piece_that_is_lost_again_and_again(request_rows: RowRequest, tmp_path: Path) -> None:
    def lose(task: Task) -> Task | Outcome:
        is_third = task.name.endswith("15 of 24")
        return Outcome("lost", error="its process ended by SIGKILL", where="node-1") if is_third else task

    with pytest.raises(UserError, match=r"^photos, lost on node-1: its process ended by SIGKILL$"):
        compute(request_rows, tmp_path, InThisProcess(lose))
    assert compute(request_rows, tmp_path, InThisProcess()) == 5


def test_a_full_disk_is_one_line_and_loses_nothing(
    request_rows: RowRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def write_all(file: Any, content: memoryview) -> None:
        written.append(len(content))
        if len(written) == 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        file.write(content)

    with monkeypatch.context() as patch:
        patch.setattr(segment_writer, "_write_all", write_all)
        with pytest.raises(UserError, match=r"^cache_dir: '.*' cannot be written \(No space left on device\); choose"):
            compute(request_rows, tmp_path, InThisProcess())
    assert compute(request_rows, tmp_path, InThisProcess()) < 24
    assert len(stored(request_rows, tmp_path)[0]) == 24


def test_a_torn_line_of_a_journal_ends_its_segment(
    request_rows: RowRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen, digests = request_rows.load(tmp_path), request_rows.pictures.digests()

    def source(first: int) -> Any:
        return lambda free: request_rows.compute(
            (free + first).tolist(), Resources(tmp_path, "features", 0), frozen, lambda step: None
        )

    def write_half(file: Any, content: memoryview) -> None:
        file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with RowStore(tmp_path / TABLES).filler(request_rows.key) as filler:
        assert filler.fill(digests[:5], source(0)) == 5
        with monkeypatch.context() as patch:
            patch.setattr(segment_writer, "_write_all", write_half)
            with pytest.raises(StoreError, match="No space left"):
                filler.fill(digests[5:10], source(5))
        assert filler.fill(digests[10:15], source(10)) == 5
    assert compute(request_rows, tmp_path, InThisProcess()) == 14
    find(request_rows, Resources(tmp_path / "whole", "features", 0))
    assert same(stored(request_rows, tmp_path), stored(request_rows, tmp_path / "whole"))


@pytest.mark.slow
def test_rows_of_an_older_origin_are_computed_anew(
    request_rows: RowRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = replace(request_rows, pictures=request_rows.pictures.part(np.arange(10)))
    with monkeypatch.context() as patch:
        patch.setattr(Backbone, "digest", lambda self: "of weights that were replaced")
        find(part, Resources(tmp_path, "features", 0))
    assert compute(request_rows, tmp_path, InThisProcess()) == 24
    find(request_rows, Resources(tmp_path / "whole", "features", 0))
    assert same(stored(request_rows, tmp_path), stored(request_rows, tmp_path / "whole"))


def test_a_segment_with_a_wrong_row_stays_while_its_process_may_go_on(request_rows: RowRequest, tmp_path: Path) -> None:
    store, digests = RowStore(tmp_path / TABLES), request_rows.pictures.digests()
    frozen = request_rows.load(tmp_path)

    def source(first: int) -> Any:
        return lambda free: request_rows.compute(
            (free + first).tolist(), Resources(tmp_path, "features", 0), frozen, lambda step: None
        )

    with store.filler(request_rows.key) as filler:
        filler.fill(digests[:5], source(0))
        assert store.forget(request_rows.key, {digests[1]}) == 0
        filler.fill(digests[5:10], source(5))
    assert store.forget(request_rows.key, {digests[1]}) == 10


def test_lost_steps_are_taken_back(
    request_rows: RowRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts: list[str] = []

    class Losing(InThisProcess):
        def wait(self, receive: Receive, ended: list[tuple[Task, Outcome]]) -> None:
            super().wait(receive, ended)
            if ended and not attempts:
                attempts.append(ended[0][0].name)
                ended[0] = ended[0][0], Outcome("lost", error="its process ended by SIGKILL")

    engine = Losing()
    reports: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        report = ExtractionProgress.report

        def look(progress: ExtractionProgress, step: Any) -> None:
            report(progress, step)
            reports.append(progress.done)

        patch.setattr(ExtractionProgress, "report", look)
        compute(request_rows, tmp_path, engine)
    # The rows of the lost piece had been stored.
    assert max(reports) <= 24
    assert "it is computed again" in capsys.readouterr().out


@pytest.mark.slow
def test_workers_compute_the_same(request_rows: RowRequest, tmp_path: Path) -> None:
    find(request_rows, Resources(tmp_path / "whole", "features", 0))
    assert compute(request_rows, tmp_path / "workers", Workers(2, [])) == 24
    assert same(stored(request_rows, tmp_path / "workers"), stored(request_rows, tmp_path / "whole"))
