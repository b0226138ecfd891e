"""Configurations are the same where they give the same results."""

from headstart.callbacks.run_folder import configuration_digest
from headstart.tests.material.configurations import CONFIG, OTHER, SAME


def test_configuration_digest_a_configuration_is_that_of_its_results() -> None:
    digest = configuration_digest(CONFIG)
    assert len(digest) == 8
    assert {configuration_digest(config) for config in SAME} == {digest}
    assert len({digest, *(configuration_digest(config) for config in OTHER)}) == 1 + len(OTHER)


def test_digest_over_seeds_is_that_of_the_comparison() -> None:
    config = (
        "seed_everything: 0\ntrainer: {}\ndata: {init_args: {seed: 0, orderings: 2, first_ordering: 0, batch_size: 8}}"
    )
    digest = configuration_digest(config, over_seeds=True)
    for old, new in (("everything: 0", "everything: 1"), ("seed: 0", "seed: 1"), ("ordering: 0", "ordering: 2")):
        assert configuration_digest(config.replace(old, new), over_seeds=True) == digest
        assert configuration_digest(config.replace(old, new)) != configuration_digest(config)
    assert configuration_digest(config.replace("size: 8", "size: 4"), over_seeds=True) != digest
