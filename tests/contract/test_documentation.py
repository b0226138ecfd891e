"""The page with the tests of each sentence of the contract."""

import re

from headstart.tests.material.root import ROOT, require_checkout


def test_files_that_are_named_are_there() -> None:
    require_checkout()
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "evaluation_contract.md").read_text()))
    assert len(named) > 10
    assert [name for name in named if not ((ROOT / name).exists() or (ROOT / "tests" / name).exists())] == []
