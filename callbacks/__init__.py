"""Callbacks of a comparison: the criterion, the results, the dashboard and the progress bar."""

from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.progress import ComparisonProgress
from headstart.callbacks.results import Results
from headstart.callbacks.sample_efficiency import SampleEfficiency

__all__ = ["ComparisonProgress", "DashboardLogger", "Results", "SampleEfficiency"]
