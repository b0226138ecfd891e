"""Tables of rows in parts: found by the picture in whichever part, whole or absent, and never read when damaged."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from headstart.output.files import replacing
from headstart.store.feature_table import ABOUT, Computed, Digests, FeatureTable, StoreError, in_hexadecimal, pack
from headstart.store.part_file import name_of

KEY = {"network": None, "size": (3, 4)}
NOTES = {"weights": "0" * 64}
ALL = pack([f"{number:064x}" for number in np.random.default_rng(1).permutation(200).tolist()])


def row_of(digest: bytes) -> NDArray[np.float32]:
    return np.random.default_rng(int.from_bytes(digest.rjust(32, b"\0"))).random(5, np.float32)


def rows_of(digests: Digests) -> NDArray[np.float32]:
    return np.stack([row_of(each) for each in digests.tolist()])


def write(table: FeatureTable, digests: Digests, remarks: dict[int, str] | None = None) -> Path:
    table.write(digests, rows_of(digests), NOTES, remarks or {})
    return table.folder / name_of(digests)


@pytest.fixture
def table(tmp_path: Path) -> FeatureTable:
    return FeatureTable(tmp_path, KEY)


def test_any_rows_are_found_in_any_parts(table: FeatureTable, tmp_path: Path) -> None:
    random, stored = np.random.default_rng(0), set[bytes]()
    assert table.find(ALL[:3]).missing.tolist() == [0, 1, 2]
    for start in range(0, 150, 50):
        digests = ALL[start : start + 50]
        write(table, digests, {4: f"broken {start}"})
        stored.update(digests.tolist())
        for reader in (table, FeatureTable(tmp_path, KEY)):
            asked = ALL[random.integers(0, 200, 90)]
            found = reader.find(asked)
            absent = [index for index, each in enumerate(asked.tolist()) if each not in stored]
            firsts = {asked[index]: index for index in reversed(absent)}
            assert found.missing.tolist() == sorted(firsts.values())
            there = np.delete(asked, absent)
            for copied in (0, 2**30):
                result = reader.find(there).gather(copied)
                assert np.array_equal(np.asarray(result.rows), rows_of(there))
                assert result.notes == NOTES
                broken = {ALL[first + 4]: f"broken {first}" for first in range(0, start + 1, 50)}
                expected = {index: broken[each] for index, each in enumerate(there) if each in broken}
                assert result.remarks == expected
                assert list(result.remarks) == sorted(expected)


def test_a_part_that_is_written_again_or_removed_stays_what_was_verified(table: FeatureTable, tmp_path: Path) -> None:
    digests, reader = ALL[:20], FeatureTable(tmp_path, KEY)
    path = write(table, digests)
    found = reader.find(digests)
    # Longer remarks move the rows.
    write(table, digests, {3: "broken " * 200})
    again = reader.find(digests)
    path.unlink()
    for each in (found, again):
        result = each.gather(0)
        assert np.array_equal(np.asarray(result.rows), rows_of(digests))
        assert not result.remarks
    assert len(reader.find(digests).missing) == 20


def test_parts_are_plain_safetensors(table: FeatureTable) -> None:
    path = write(table, ALL[:7])
    content = load_file(path)
    assert content["digests"].tobytes() == ALL[:7].tobytes()
    assert np.array_equal(content["rows"], rows_of(ALL[:7]))
    about = json.loads((table.folder / ABOUT).read_text())
    assert (about["rows"], about["format"], about["key"]) == ("prepared pictures", 1, {"network": None, "size": [3, 4]})
    assert not list(table.folder.glob("*.lock"))
    (table.folder / ABOUT).write_text("{")
    with pytest.raises(
        StoreError, match=rf"^'{table.folder}' .*table.json is damaged, or not of format 1\); remove it$"
    ):
        table.find(ALL[:7])


def test_every_flipped_bit_is_noticed(table: FeatureTable, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(table, ALL[:9], {2: "broken"})
    content, random = path.read_bytes(), np.random.default_rng(0)
    # The header, which is half of the file, the rows, and a file that is cut off.
    for place in [*range(20), *random.choice(len(content), 50, replace=False).tolist(), len(content)]:
        changed = bytearray(content)
        if place < len(content):
            changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed if place < len(content) else content[:-1])
        caplog.clear()
        assert len(FeatureTable(tmp_path, KEY).find(ALL[:9]).missing) == 9, place
        assert path.name in caplog.text
        assert not path.exists()
    write(table, ALL[:9])
    assert np.array_equal(table.find(ALL[:9]).gather().rows, rows_of(ALL[:9]))


def test_rows_of_two_networks_or_shapes_are_no_table(table: FeatureTable) -> None:
    write(table, ALL[:3])
    others = ((ALL[3:5], rows_of(ALL[3:5]), {"weights": "others"}), (ALL[5:7], rows_of(ALL[5:7])[:, :4], NOTES))
    for digests, rows, notes in others:
        table.write(digests, rows, notes, {})
        table.find(ALL[:3])
        with pytest.raises(StoreError, match=r"of several networks or shapes\); remove it with headstart cache"):
            table.find(np.concatenate([ALL[:3], digests]))
    # A part that comes from another table.
    other = write(FeatureTable(table.folder.parent, {"network": None, "size": (4, 4)}), ALL[:3])
    shutil.copy(other, table.folder)
    assert len(FeatureTable(table.folder.parent, KEY).find(ALL[:3]).missing) == 3


def test_a_full_disk_leaves_nothing_half_written(table: FeatureTable) -> None:
    write(table, ALL[:3])
    before = sorted(table.folder.iterdir())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, limit[1]))
        with pytest.raises(
            StoreError, match=rf"^'{table.folder}' cannot be written \(File too large\); choose another folder$"
        ):
            table.compute_once(ALL[3:100], lambda: (rows_of(ALL[3:100]), NOTES, {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert sorted(table.folder.iterdir()) == before


def test_a_part_is_computed_by_one_process(table: FeatureTable, tmp_path: Path) -> None:
    digests, other = ALL[:3], FeatureTable(tmp_path, KEY)
    computed: Computed = (rows_of(digests), NOTES, {})

    def compute() -> Computed:
        assert other.compute_once(digests, lambda: pytest.fail("computed twice"), wait=False) is None
        return computed

    assert table.compute_once(digests, compute) == 3
    assert other.compute_once(digests, lambda: pytest.fail("computed again")) == 0
    assert np.array_equal(other.find(digests).gather().rows, computed[0])


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs locks that a kill releases")
def test_the_next_writer_removes_what_killed_ones_left(table: FeatureTable, tmp_path: Path) -> None:
    write(table, ALL[:3])
    code = (
        "import os, sys; from pathlib import Path; from headstart.store.feature_table import *\n"
        f"table, digests = FeatureTable(Path(sys.argv[1]), {KEY!r}), pack(['{0:064x}'])\n"
        "kill = lambda *_: os.kill(os.getpid(), 9)\n"
        "import headstart.store.feature_table as home; home.write_part = kill\n"
        "table.compute_once(digests, lambda: (None, {}, {}))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -signal.SIGKILL
    left = sorted(path.suffix for path in table.folder.iterdir())
    assert left == [".json", ".lock", ".partial", ".safetensors"]

    # What another process writes stays, and the lock until its part is written.
    with replacing(table.folder / "part-written.safetensors") as written:
        write(FeatureTable(tmp_path, KEY), ALL[3:6])
        suffixes = sorted(path.suffix for path in table.folder.iterdir())
        assert suffixes == [".json", ".lock", ".partial", ".safetensors", ".safetensors"]
        assert written.exists()
    zero = pack([f"{0:064x}"])
    assert FeatureTable(tmp_path, KEY).compute_once(zero, lambda: (rows_of(zero), NOTES, {})) == 1
    assert not list(table.folder.glob("*.lock"))


def test_a_table_that_can_only_be_read(table: FeatureTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(table, ALL[:3])
    write(table, ALL[3:6])

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert np.array_equal(FeatureTable(tmp_path, KEY).find(ALL[:6]).gather().rows, rows_of(ALL[:6]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match=rf"^'{path}' cannot be removed \(Permission denied\); choose another folder$"):
        FeatureTable(tmp_path, KEY).find(ALL[:3])


def test_digests_are_packed_as_they_are() -> None:
    digests = ["ab" * 31 + "00", "00" * 32, "0f" * 32]
    packed = pack(digests)
    assert [bytes(each).hex() for each in packed.view("V32")] == digests
    assert in_hexadecimal(packed) == digests
    with pytest.raises(ValueError, match="'abcd' is no SHA-256"):
        pack([*digests, "abcd"])
