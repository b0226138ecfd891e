"""The templates of pages and feeds; every text in them is escaped."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headstart.contract.challenge import Challenge

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def local_times(challenge: Challenge) -> Callable[[datetime], str]:
    """Return a function that writes times in a challenge's time zone."""
    return lambda time: f"{time.astimezone(challenge.zone):%Y-%m-%d %H:%M:%S} {challenge.time_zone}"
