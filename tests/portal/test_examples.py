"""Examples of documents are valid under the rules of their challenge."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from headstart.tests.material.portals import STIMULI, Site

OpenSite = Callable[..., Site]
FAMILIES = {"small": ["owl"], "singers": ["lark", "wren", "rook"]}
BLUE: list[tuple[dict[str, Any], list[str] | None]] = [
    ({}, ["owl", "lark"]),
    ({"count": {"exactly": 3}}, ["owl", "lark", "wren"]),
    # The rules allow the first model together with no other.
    ({"families": FAMILIES, "unmixed_families": [["small", "singers"]]}, ["lark", "wren"]),
    ({"families": FAMILIES, "most_per_family": 1}, ["owl", "lark"]),
    ({"count": {"least": 5}}, None),
]


@pytest.mark.parametrize(("rules", "models"), BLUE)
def test_the_first_models_that_the_rules_allow(
    open_site: OpenSite, rules: dict[str, Any], models: list[str] | None
) -> None:
    site = open_site({"teams": {"blue": rules}})
    answer = site.client.get("/api/examples/blue")
    assert (answer.json().get("models") if answer.status_code == 200 else None) == models
    if models is not None:
        assert site.submit(answer.content).status_code == 201
        assert "example" in site.client.get("/blue").text
    # The challenge has no Red Team.
    assert site.client.get("/api/examples/red").status_code == 404
    assert site.client.get("/api/stimuli").status_code == 404


def test_stimuli_of_the_data_sets_that_are_allowed(open_site: OpenSite) -> None:
    site = open_site({"teams": {"red": {"count": {"least": 3}, "datasets": ["birds"]}}})
    assert site.client.get("/api/examples/red").json() == {"differentiating_images": STIMULI[:3]}
    assert [json.loads(line) for line in site.client.get("/api/stimuli").text.splitlines()] == STIMULI


def test_no_example_where_nothing_is_allowed(open_site: OpenSite) -> None:
    site = open_site({"teams": {"red": {"datasets": ["fish"]}}})
    assert site.client.get("/api/examples/red").status_code == 404
    assert "example" not in site.client.get("/red").text
    assert site.client.get("/red?example=true").status_code == 200
