"""What an organiser watches, in Prometheus's text format; nothing of held-out scores is in it."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headstart.portal.database import Database
from headstart.portal.records import count_states

STATES = ("queue", "running", "scored", "refused", "failed")


class Metrics:
    """Counts and times answers, and reads the state of submissions whenever it is asked."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "headstart_request_seconds", "Time to answer a request.", ["route"], registry=self._registry
        )
        self._answers = Counter("headstart_requests", "Answers.", ["route", "status"], registry=self._registry)
        self._submissions = Gauge("headstart_submissions", "Submissions.", ["state"], registry=self._registry)
        self._up = Gauge("headstart_database_up", "Whether the database answers.", registry=self._registry)

    def note(self, route: str, status: int, seconds: float) -> None:
        """Note an answer.

        Args:
            route: What was asked for, without numbers and names in it.
            status: The answer's status.
            seconds: What it took.
        """
        self._seconds.labels(route).observe(seconds)
        self._answers.labels(route, str(status)).inc()

    def text(self, states: Mapping[str, int] | None) -> bytes:
        """Give all as text.

        Args:
            states: Submissions by state; None where the database is away.
        """
        self._up.set(states is not None)
        for state in STATES:
            self._submissions.labels(state).set(float("nan") if states is None else states.get(state, 0))
        return generate_latest(self._registry)


def read_states(database: Database) -> dict[str, int]:
    """Count submissions by state."""
    with database.reading() as session:
        return count_states(session)
