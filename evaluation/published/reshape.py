"""Published tables in layouts of their own, reshaped by pandas to one that `headstart audit` reads."""

from pathlib import Path

import pandas as pd

# The rows, and a sentence on how they differ from those of the files; empty if they do not.
Reshaped = tuple[pd.DataFrame, str]


def one_column_per_target(path: Path) -> Reshaped:
    """Return the rows of OpenCLIP's results, in which each data set is a column.

    Args:
        path: The file of the results.
    """
    wide = pd.read_csv(path, dtype=str)
    targets = wide.columns[wide.columns.get_loc("ImageNet 1k") :]
    return wide.melt(["name", "pretrained"], targets, "target", "performance"), ""


def linear_and_knn(path: Path) -> Reshaped:
    """Return TorchGeo-Bench's accuracies of linear probes, with those of 5-NN as a metric.

    Args:
        path: The file of the results. Some rows are there twice.
    """
    rows = pd.read_csv(path, dtype=str)
    rows = rows[rows["metric_name"].isin(["accuracy", "micro_mAP"]) & rows["image_size"].isin(["224", "224.0"])]
    rows = rows[(rows["bands"] == "rgb") & (rows["normalization"] == "bandspec_zscore")]
    rows = rows.rename(columns={"name": "source", "dataset": "target"})

    cells = {
        method: rows.loc[rows["method"] == method, ["source", "target", "metric_value"]]
        for method in ("knn5", "linear")
    }
    twice = sum(int(its.duplicated().sum()) for its in cells.values())
    knn, linear = (its.drop_duplicates() for its in cells.values())
    table = knn.rename(columns={"metric_value": "knn"}).merge(linear, "left", ["source", "target"])
    return table.rename(columns={"metric_value": "performance"}), f"{twice} rows that are there twice count once."


def scores_and_records(scores: Path, records: Path) -> Reshaped:
    """Return TransferGraph's scores, averaged over repetitions, with the accuracies of its records.

    Args:
        scores: The file of the scores. Two of its lines lack their beginning.
        records: The file of the accuracies.
    """
    keys = {"metric": "metric", "model": "source", "target_dataset": "target"}
    rows = pd.read_csv(scores, dtype=str).rename(columns=keys).astype({"score": float})
    whole = rows.dropna(subset="score")
    cells = whole.groupby(list(keys.values()), sort=False)["score"]
    several = int((cells.size() > 1).sum())
    note = f"{len(rows) - len(whole)} lines without their beginning are left out; {several} of {len(cells)} scores are"

    names = {"TransferabilityMethod.LOG_ME": "log_me", "TransferabilityMethod.REG_H_SCORE": "h_score_shrunk"}
    accuracies = pd.read_csv(records, dtype=str).rename(
        columns={"model": "source", "finetuned_dataset": "target", "eval_accuracy": "performance"}
    )
    performances = accuracies[["source", "target", "performance"]]
    means = cells.mean().reset_index().replace({"metric": names})
    return means.merge(performances, "left", ["source", "target"]), f"{note} means of several rows."
