"""`headstart dashboard-view ENTITY PROJECT`: a saved view of Weights & Biases that averages runs over seeds."""

from typing import TYPE_CHECKING

from headstart.output.errors import UserError, reason_of
from headstart.output.printable import say

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace


def dashboard_view(entity: str, project: str, name: str = "Headstart") -> None:
    """Save a view of a project, in which runs that differ in their seed alone are one line.

    Args:
        entity: User or team that owns the project.
        project: The project.
        name: Name of the view.

    Raises:
        UserError: The extra is not installed, or Weights & Biases refuses.
    """
    view = build_view(entity, project, name)
    try:
        view.save()  # type: ignore[no-untyped-call]
    except Exception as error:  # of the network, the account, or the service
        raise UserError(f"project: the view cannot be saved ({reason_of(error)}); wandb login") from error
    say(f"Saved: {view.url}")


def build_view(entity: str, project: str, name: str) -> "Workspace":
    """Return the view, which is not saved.

    Args:
        entity: User or team that owns the project.
        project: The project.
        name: Name of the view.

    Raises:
        UserError: The extra is not installed.
    """
    try:
        import wandb_workspaces.reports.v2 as panels
        import wandb_workspaces.workspaces as workspaces
    except ImportError as error:
        raise UserError("dashboard-view needs wandb-workspaces; pip install 'headstart[workspaces]'") from error

    charts = [
        panels.LinePlot(  # type: ignore[attr-defined]
            title=f"{title}, mean over seeds",
            x="samples_seen",
            metric_regex=pattern,
            groupby="Group",
            groupby_aggfunc="mean",
            groupby_rangefunc="stderr",
        )
        for title, pattern in (("Accuracy", "val/.*"), ("Share of orderings that met the criterion", "reached/.*"))
    ]

    tables = [panels.WeavePanelSummaryTable(table_name=name) for name in ("results", "leaderboard")]  # type: ignore[attr-defined]
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=name,
        sections=[
            workspaces.Section(name="Averages over seeds", panels=charts, is_open=True),
            workspaces.Section(name="Tables", panels=tables, is_open=True),
        ],
        runset_settings=workspaces.RunsetSettings(groupby=[workspaces.Metric("Group")]),
    )
