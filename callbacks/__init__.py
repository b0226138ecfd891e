"""Callbacks of a comparison: the criterion, the results, the dashboard and the progress bar."""

from callbacks.dashboard import DashboardLogger
from callbacks.progress import ComparisonProgress
from callbacks.results import Results
from callbacks.sample_efficiency import SampleEfficiency

__all__ = ["ComparisonProgress", "DashboardLogger", "Results", "SampleEfficiency"]
