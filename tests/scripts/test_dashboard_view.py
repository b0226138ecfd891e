"""The saved view of the dashboard is built, not saved; the package that saves it may be missing."""

import sys

import pytest

from headstart.output.errors import UserError
from headstart.scripts.dashboard_view import build_view, dashboard_view


def test_view_averages_what_runs_log_over_groups() -> None:
    panels = pytest.importorskip("wandb_workspaces.reports.v2")
    view = build_view("team", "pets", "mine")
    assert (view.entity, view.project, view.name) == ("team", "pets", "mine")
    lines = [each for section in view.sections for each in section.panels if isinstance(each, panels.LinePlot)]
    assert [(line.x, line.metric_regex, line.groupby) for line in lines] == [
        ("samples_seen", "val/.*", "Group"),
        ("samples_seen", "reached/.*", "Group"),
    ]
    tables = view.sections[1].panels
    assert [getattr(each, "table_name", None) for each in tables] == ["results", "leaderboard"]


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)
    with pytest.raises(UserError, match=r"pip install 'headstart\[workspaces\]'$"):
        dashboard_view("team", "pets")
