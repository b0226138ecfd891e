"""Metrics for organisers in Prometheus's text format; they contain no held-out scores."""

from collections.abc import Mapping
from datetime import datetime
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headstart.portal.records.tables import State
from headstart.portal.web.system import Work

NAN = float("nan")


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
        oldest = "Waiting time of the oldest scoring in the queue; 0 if the queue is empty."
        self._oldest = Gauge("headstart_oldest_waiting_seconds", oldest, registry=self._registry)
        seen = "Time since a worker was last seen scoring."
        self._seen = Gauge("headstart_worker_seen_seconds", seen, registry=self._registry)
        self._free = Gauge(
            "headstart_free_bytes", "Free space on a folder's disk.", ["folder"], registry=self._registry
        )

    def record(self, route: str, status: int, seconds: float) -> None:
        """Record an answer.

        Args:
            route: Route of the request, without the numbers and names in it.
            status: The answer's status.
            seconds: Time that it took.
        """
        self._seconds.labels(route).observe(seconds)
        self._answers.labels(route, str(status)).inc()

    def text(self, found: tuple[Mapping[str, int], Work] | None, room: Mapping[str, int], now: datetime) -> bytes:
        """Return all metrics as text.

        Args:
            found: Submissions by state, and what waits; None while the database is unreachable.
            room: Free bytes by folder.
            now: The time.
        """
        states, work = found or ({}, None)
        self._up.set(work is not None)
        for state in get_args(State):
            self._submissions.labels(state).set(NAN if work is None else states.get(state, 0))
        self._oldest.set(NAN if work is None else (now - (work.oldest or now)).total_seconds())
        seen = None if work is None else work.seen
        self._seen.set(NAN if seen is None else (now - seen).total_seconds())
        for folder, free in room.items():
            self._free.labels(folder).set(free)
        return generate_latest(self._registry)
