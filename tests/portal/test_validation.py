"""The process that validates: its answers, and that it is there again after it ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal import validation
from portal.validation import Validator, ValidatorError
from tests.material.portals import ValidatorHere, blue, make_settings, read_rules, red


@pytest.fixture
def documents(tmp_path: Path) -> tuple[Path, Path]:
    make_settings(tmp_path, {})
    return tmp_path / "registry.json", tmp_path / "catalog.jsonl"


@pytest.fixture
def validator(documents: tuple[Path, Path]) -> Iterator[Validator]:
    validator = Validator(*documents, read_rules())
    yield validator
    validator.close()


def test_a_validator_answers_and_starts_again(
    validator: Validator, documents: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        here = ValidatorHere(*documents, read_rules())
        for content, track in ((blue("owl", "lark"), "blue"), (red(0, 0), "red"), (b"{", "blue")):
            found = await validator.find_problems(content, track)  # type: ignore[arg-type]
            assert found == await here.find_problems(content, track)  # type: ignore[arg-type]
        (process,) = validator._pool._processes.values()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ValidatorError):
            await validator.find_problems(b"{", "blue")
        assert await validator.find_problems(blue("owl", "lark"), "blue") == []
        monkeypatch.setattr(validation, "MOST_SECONDS", 0.0)
        with pytest.raises(ValidatorError):
            await validator.find_problems(blue("owl", "lark"), "blue")
        monkeypatch.setattr(validation, "MOST_SECONDS", 20.0)
        assert await validator.find_problems(blue("owl", "lark"), "blue") == []

    asyncio.run(use())
