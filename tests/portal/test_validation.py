"""The process that validates: its answers, and its restart after it ended."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headstart.portal.phases import Phase, read_phases
from headstart.portal.work import validation
from headstart.portal.work.validation import Validator, ValidatorError
from headstart.tests.material.portals import InProcessValidator, blue, make_settings, red


@pytest.fixture
def phases(tmp_path: Path) -> list[Phase]:
    return read_phases(make_settings(tmp_path, {}))


@pytest.fixture
def validator(phases: list[Phase]) -> Iterator[Validator]:
    validator = Validator(phases)
    yield validator
    validator.close()


@pytest.mark.slow
def test_a_validator_answers_and_starts_again(
    validator: Validator, phases: list[Phase], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        here = InProcessValidator(phases)
        for content, track in ((blue("owl", "lark"), "blue"), (red(0, 0), "red"), (b"{", "blue")):
            problems = await validator.find_problems(content, "small", track, submitted=True)  # type: ignore[arg-type]
            assert problems == await here.find_problems(content, "small", track, submitted=True)  # type: ignore[arg-type]
        (process,) = validator._pool._processes.values()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ValidatorError):
            await validator.find_problems(b"{", "small", "blue", submitted=True)
        assert await validator.find_problems(blue("owl", "lark"), "small", "blue", submitted=True) == []
        monkeypatch.setattr(validation, "MAX_SECONDS", 0.0)
        with pytest.raises(ValidatorError):
            await validator.find_problems(blue("owl", "lark"), "small", "blue", submitted=True)
        monkeypatch.setattr(validation, "MAX_SECONDS", 20.0)
        assert await validator.find_problems(blue("owl", "lark"), "small", "blue", submitted=True) == []

    asyncio.run(use())


def test_a_document_that_takes_too_long_holds_up_no_other_for_good(
    validator: Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process takes longer to start, but its start does not count as the document's time.
    monkeypatch.setattr(validation, "MAX_SECONDS", 0.5)
    long = blue(*(f"crow{number}\u0430" for number in range(70_000)))

    async def use() -> list[object]:
        documents = [(long, False), (blue("owl", "lark"), True), (blue("owl", "crow"), False)]
        tasks = [validator.find_problems(content, "small", "blue", submitted) for content, submitted in documents]
        return await asyncio.gather(*tasks, return_exceptions=True)

    failed, none, one = asyncio.run(use())
    assert isinstance(failed, ValidatorError)
    assert none == []
    assert isinstance(one, list)
    assert one[0]["pointer"] == "/models/1"


def test_a_submission_waits_for_one_check_at_most(phases: list[Phase]) -> None:
    validator, order = Validator(phases), list[str]()

    async def note(content: bytes, phase: str, track: str) -> list[dict[str, str]]:
        await asyncio.sleep(0)
        order.append(content.decode())
        return []

    validator._validate = note  # type: ignore[method-assign]

    async def use() -> None:
        documents = [(b"check 1", False), (b"check 2", False), (b"check 3", False), (b"submit", True)]
        await asyncio.gather(
            *(validator.find_problems(content, "small", "blue", submitted) for content, submitted in documents)
        )

    asyncio.run(use())
    validator.close()
    assert order == ["check 1", "submit", "check 2", "check 3"]


def test_of_very_many_problems_the_first_are_named(validator: Validator) -> None:
    names = [f"crow{number}" for number in range(1500)]
    problems = asyncio.run(validator.find_problems(blue(*names), "small", "blue", submitted=True))
    assert [problem["pointer"] for problem in problems[:1000]] == [f"/models/{index}" for index in range(1000)]
    assert [problem["rule"] for problem in problems[1000:]] == ["and 500 more problems"]


@pytest.mark.slow
def test_a_validator_that_starts_again_refuses_changed_files(phases: list[Phase], validator: Validator) -> None:
    async def use() -> None:
        assert await validator.find_problems(blue("owl", "lark"), "small", "blue", submitted=True) == []
        phases[0].registry.path.write_text(phases[0].registry.path.read_text() + " ")
        (process,) = validator._pool._processes.values()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(ValidatorError):
                await validator.find_problems(blue("owl", "lark"), "small", "blue", submitted=True)

    asyncio.run(use())
