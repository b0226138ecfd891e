"""Names in packed form."""

import hashlib

import numpy as np

from headstart.store.name_index import HexNames, pack


def test_hexadecimal_names_are_those_of_a_list() -> None:
    listed = [hashlib.sha256(bytes([number])).hexdigest() for number in range(5)]
    names = HexNames(np.frombuffer(b"".join(map(bytes.fromhex, listed)), np.uint8).reshape(5, 32))
    assert [*names] == listed
    assert (names[-1], [*names[1:3]]) == (listed[-1], listed[1:3])
    assert np.array_equal(pack(names), pack(listed))
    assert pack(names).dtype == pack(listed).dtype
