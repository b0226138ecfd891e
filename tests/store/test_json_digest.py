"""A digest is that of what a document says, however it is written."""

from headstart.store.json_digest import digest_of


def test_what_is_the_same_in_json_has_one_digest() -> None:
    document = {"a": [1, 2], "b": {"1": None, "c": 0.5}}
    assert digest_of({"b": {"c": 0.5, 1: None}, "a": (1, 2)}) == digest_of(document)
    assert digest_of({**document, "a": [2, 1]}) != digest_of(document)
