"""The register of figures: it explains every number of the pages, and compares what it is told to."""

import jmespath
import pytest

from headstart.tests.material.root import require_checkout

require_checkout()

# What is imported here is not in the wheel.
from headstart.benchmarks.figures.quoted_figures import check, is_possible  # noqa: E402
from headstart.benchmarks.figures.register import NUMBER, Figure, Page, Values, pages  # noqa: E402

PAGES = pages()
PAGE = """# About 3.5 things

The method is better by 58 % [56, 61] at level 0.05, see `0.123` and [this](there_0.5.md).

| method | reached | mean |
| --- | ---: | ---: |
| `sgd` | 99/100 | 22.7 |
| `other` | 1/100 | −1,022.75 |
"""
METHODS = {"sgd": {"reached": 99, "mean": 22.74}, "other": {"mean": -1022.7}}
RESULTS = {"gain": [0.581, 0.558, 0.612], "methods": METHODS}
TEXT = {"text": "better by 58 % [56, 61]", "values": ["gain[0]", "gain[1]", "gain[2]"], "scale": 100}
ROW = {"row": "| `sgd`", "cells": {2: ["methods.sgd.reached", None], 3: ["methods.sgd.mean"]}}
SAMPLE = [(name, figure) for name, (_, page) in PAGES.items() for figure in page.figures if figure.minutes <= 1]


@pytest.mark.parametrize("name", PAGES)
def test_every_number_of_a_page_is_explained(name: str) -> None:
    file, page = PAGES[name]
    assert page.unexplained(file.read_text()) == [], f"benchmarks/figures/{name}.yaml"


@pytest.mark.parametrize("name", PAGES)
def test_every_quoted_number_has_a_path(name: str) -> None:
    file, page = PAGES[name]
    text = file.read_text()
    for values in (values for figure in page.figures for values in figure.values):
        for start, end, paths in values.spans(text):
            assert len(NUMBER.findall(text[start:end])) == len(paths), text[start:end]
            for path in filter(None, paths):
                jmespath.compile(path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "figure"), SAMPLE, ids=[f"{name}-{i}" for i, (name, _) in enumerate(SAMPLE)])
def test_quick_commands_give_the_quoted_figures(name: str, figure: Figure) -> None:
    if not is_possible(figure):
        pytest.skip(f"needs {figure.needs}")
    assert check(figure, PAGES[name][0].read_text()) == []


def test_numbers_that_nothing_explains_are_found() -> None:
    assert Page().unexplained(PAGE) == ["58 %", "0.05", "22.7", "−1,022.75"]
    figure = {"command": "true", "minutes": 0, "file": "stdout", "values": [TEXT, ROW]}
    page = Page.model_validate({"figures": [figure], "constants": {"the level": ["0.05"]}})
    assert page.unexplained(PAGE) == ["−1,022.75"]


def test_numbers_agree_by_rounding_or_within_the_tolerance() -> None:
    assert Values.model_validate(TEXT).differences(PAGE, RESULTS) == []
    assert Values.model_validate(ROW).differences(PAGE, RESULTS) == []
    other = {"row": "| `other`", "cells": {3: ["methods.other.mean"]}}
    (difference,) = Values.model_validate(other).differences(PAGE, RESULTS)
    assert "−1,022.75 is quoted, methods.other.mean is -1022.7" in difference
    assert Values.model_validate({**other, "tolerance": 0.1}).differences(PAGE, RESULTS) == []
    assert Values.model_validate({**other, "tolerance": "1 %"}).differences(PAGE, RESULTS) == []


def test_what_is_not_in_the_results_differs() -> None:
    (difference,) = Values(text="better by 58 %", values=["nothing"]).differences(PAGE, RESULTS)
    assert difference.endswith("58 is quoted, nothing is None")
    (difference,) = Values(text="better by 58 %", values=["avg(nothing)"]).differences(PAGE, RESULTS)
    assert "avg(nothing) cannot be evaluated" in difference


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "worse by"}, "0 times"),
        ({"row": "| `"}, "2 times"),
        ({**ROW, "under": "Nowhere"}, "no heading 'Nowhere'"),
        ({**ROW, "cells": {9: []}}, "has 3 cells, and no cell 9"),
        ({**ROW, "cells": {2: ["x"]}}, "has 2 numbers, but 1 paths"),
    ],
)
def test_mistakes_of_the_register_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Values.model_validate(values).differences(PAGE, RESULTS)


def test_commands_run_in_a_folder_of_their_own_and_failures_are_told() -> None:
    values = [{"text": "better by 58 %", "values": ["gain"]}]
    command = ["cat benchmarks/figures/register.py > copy", """echo '{"gain": 58}' > out.json"""]
    right = Figure.model_validate({"command": command, "minutes": 0, "file": "out.json", "values": values})
    assert check(right, PAGE) == []
    failing = right.model_copy(update={"command": "echo no such thing >&2; exit 3"})
    assert check(failing, PAGE) == ["echo no such thing >&2; exit 3 ended with 3: no such thing\n"]
