"""Runs that reports are made of, and the pages of such reports."""

from pathlib import Path
from typing import Any

import numpy as np

from headstart.evaluation.report.report import report
from headstart.tests.material.pages import Page

EVIL = ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp; '{{ 7*7 }}' 🦊 猫", "a,b\\n$x$%")
METHODS = ("baseline", "mine", "third", "fourth")


def traces(seed: int, methods: int = len(METHODS), orderings: int = 25) -> np.ndarray[Any, Any]:
    """Return counts of 100 that rise by and by, `[methods, orderings, 60]`."""
    generator = np.random.default_rng(seed)
    rise = generator.uniform(3, 8, (methods, orderings, 1)) * (1 + np.arange(methods))[:, None, None]
    return generator.binomial(100, 0.97 - 0.45 * np.exp(-np.arange(60) / rise))


def show(folder: Path, **options: Any) -> Page:
    return Page(report(str(folder), output=str(folder.parent / "page.html"), **options))
