"""Audits without figures."""

import pytest

from headstart.evaluation.audit import audit as command


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "plot_audit", lambda *args: {})
