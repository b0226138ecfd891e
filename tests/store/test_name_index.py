"""Names in packed form."""

import hashlib

import numpy as np
import pytest

from headstart.store import name_index
from headstart.store.name_index import HexNames, NameIndex, first_indices, pack


def test_hexadecimal_names_are_those_of_a_list() -> None:
    listed = [hashlib.sha256(bytes([number])).hexdigest() for number in range(5)]
    names = HexNames(np.frombuffer(b"".join(map(bytes.fromhex, listed)), np.uint8).reshape(5, 32))
    assert [*names] == listed
    assert (names[-1], [*names[1:3]]) == (listed[-1], listed[1:3])
    assert np.array_equal(pack(names), pack(listed))
    assert pack(names).dtype == pack(listed).dtype


def test_names_are_found_among_parts_of_other_lengths() -> None:
    parts = [pack(["a", "bb", "c" * 30]), pack(["a", "photo 000000000001", "photo 000000000002"]), pack([])]
    index = NameIndex(parts)
    # The last of two equal names counts.
    wanted = ["photo 000000000002", "a", "nowhere", "bb", "c" * 30, "c" * 31, "photo 00000000000"]
    assert index.find(pack(wanted)).tolist() == [5, 3, -1, 1, 2, -1, -1]
    assert NameIndex([]).find(pack(wanted)).tolist() == [-1] * 7


def test_random_names_are_found_as_by_a_dictionary() -> None:
    generator = np.random.default_rng(0)
    drawn = [
        [f"{number:x}" * int(generator.integers(1, 6)) for number in generator.integers(0, 400, 300)] for _ in "abc"
    ]
    listed = drawn[0] + drawn[1]
    places = {name: place for place, name in enumerate(listed)}
    index = NameIndex([pack(drawn[0]), pack(drawn[1])])
    assert index.find(pack(drawn[2])).tolist() == [places.get(name, -1) for name in drawn[2]]
    among = generator.random(300) < 0.5
    first = {name: place for place, name in reversed(list(enumerate(drawn[2]))) if among[place]}
    assert first_indices(pack(drawn[2]), among).tolist() == sorted(first.values())


def test_names_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_hash", lambda names: np.zeros(len(names), np.uint64))
    index = NameIndex([pack(["a", "b"]), pack(["c", "a"])])
    assert index.find(pack(["a", "b", "c", "d"])).tolist() == [3, 1, 2, -1]
