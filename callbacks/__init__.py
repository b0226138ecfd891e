"""Callbacks of a comparison: the criterion, the run, the dashboard and the progress bar."""

from headstart.callbacks.comparison_run import ComparisonRun
from headstart.callbacks.dashboard import DashboardLogger
from headstart.callbacks.progress import ComparisonProgress
from headstart.callbacks.sample_efficiency import SampleEfficiency

__all__ = ["ComparisonProgress", "ComparisonRun", "DashboardLogger", "SampleEfficiency"]
