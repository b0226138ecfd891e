"""Metrics for organisers in Prometheus's text format; they contain no held-out scores."""

from collections.abc import Mapping
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headstart.portal.records.tables import State


class Metrics:
    """Counts and times answers, and counts submissions by state."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "headstart_request_seconds", "Time to answer a request.", ["route"], registry=self._registry
        )
        self._answers = Counter("headstart_requests", "Answers.", ["route", "status"], registry=self._registry)
        self._submissions = Gauge("headstart_submissions", "Submissions.", ["state"], registry=self._registry)
        self._up = Gauge("headstart_database_up", "Whether the database answers.", registry=self._registry)

    def record(self, route: str, status: int, seconds: float) -> None:
        """Record an answer.

        Args:
            route: Route of the request, without the numbers and names in it.
            status: The answer's status.
            seconds: Time that it took.
        """
        self._seconds.labels(route).observe(seconds)
        self._answers.labels(route, str(status)).inc()

    def text(self, states: Mapping[str, int] | None) -> bytes:
        """Return all metrics as text.

        Args:
            states: Submissions by state; None while the database is unreachable.
        """
        self._up.set(states is not None)
        for state in get_args(State):
            self._submissions.labels(state).set(float("nan") if states is None else states.get(state, 0))
        return generate_latest(self._registry)
