"""Runs that the dashboard's library has written without a server."""

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any


def inspect(run: Path, *options: str) -> str:
    """Return what `wandb leet inspect` prints of a run."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options, str(run)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class OfflineRun:
    """The only run below a folder, or the latest: what W&B would show of it.

    Args:
        folder: The folder in which `wandb` lies.
        latest: Take the last of several.
    """

    def __init__(self, folder: Path, latest: bool = False) -> None:
        runs = [*(folder / "wandb").glob("offline-run-*")]
        assert len(runs) == 1 or (latest and runs), runs
        # The names of runs of one second do not follow their order.
        self.run = (folder / "wandb" / "latest-run").resolve() if latest else runs[0]

    @cached_property
    def whole(self) -> dict[str, Any]:
        """The summary and the configuration."""
        whole: dict[str, Any] = json.loads(inspect(self.run, "--summary"))
        return whole

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Every record, in order."""
        return [json.loads(line) for line in inspect(self.run).splitlines()]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one type."""
        return [record[kind] for record in self.records if record["type"] == kind]

    @property
    def settings(self) -> dict[str, Any]:
        """Its name, group, tags, project and id."""
        (run,) = self.of_type("run")[:1]
        return run

    @property
    def summary(self) -> dict[str, Any]:
        """The summary, without what wandb adds."""
        return {key: value for key, value in self.whole["summary"].items() if not key.startswith("_")}

    @property
    def exit_code(self) -> int:
        """0 for a finished run, 1 for a failed one."""
        return int(self.of_type("exit")[0].get("exit_code", 0))

    @property
    def history(self) -> list[dict[str, Any]]:
        """The logged values, by row and name, without what wandb adds."""
        rows = [record["item"] for record in self.of_type("history")]
        return [{key: value for key, value in row.items() if not key.startswith("_")} for row in rows]

    def axis(self, key: str) -> tuple[str | None, bool]:
        """Return the x axis of a logged value, and whether it is hidden from automatic charts."""
        for metric in self.of_type("metric"):
            if fnmatchcase(key, metric.get("glob_name") or metric["name"]):
                return metric.get("step_metric"), bool(metric["options"].get("hidden"))
        return None, False

    @property
    def panels(self) -> set[str]:
        """The panels that the default workspace shows: values that are not hidden, pictures, tables and charts."""
        keys = {key for row in self.history for key in row}
        media = {key.partition("._type")[0] for key in keys if key.endswith("._type")}
        values = {key for key in keys if not any(key.startswith(f"{each}.") for each in media)}
        charts = {key for key in self.of_charts if not self.axis(key)[1]}
        shown = {each for each in media if not each.startswith("Custom Chart Tables/")}
        return {key for key in values if not self.axis(key)[1]} | shown | charts

    @property
    def of_charts(self) -> list[str]:
        """Names of the charts that were logged."""
        keys = [key for record in self.of_type("config") for key in record["update"]]
        return [key.removeprefix("_wandb.visualize.") for key in keys if key.startswith("_wandb.visualize.")]

    def file(self, key: str) -> Path:
        """Return the file of a logged table or picture."""
        path: str = self.whole["summary"][key]["path"]
        return self.run / "files" / path

    def table(self, key: str) -> list[dict[str, Any]]:
        """Return the rows of a logged table, by column."""
        content = json.loads(self.file(key).read_text())
        return [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]

    def artifact(self, kind: str) -> dict[str, int]:
        """Return the sizes of the files of the only artifact of a kind."""
        (found,) = (each for each in self.of_type("artifact") if each["type"] == kind)
        return {content["path"]: int(content["size"]) for content in found["manifest"]["contents"]}
