"""Published tables in layouts of their own, reshaped by pandas to the plain one."""

from pathlib import Path

import pandas as pd


def one_column_a_target(path: Path) -> pd.DataFrame:
    """Return the rows of OpenCLIP's results, in which each data set is a column.

    Args:
        path: The file of the results.
    """
    wide = pd.read_csv(path, dtype=str)
    targets = wide.columns[wide.columns.get_loc("ImageNet 1k") :]
    return wide.melt(["name", "pretrained"], targets, "target", "performance")


def linear_and_knn(path: Path) -> pd.DataFrame:
    """Return TorchGeo-Bench's accuracies of linear probes, with those of 5-NN as a metric.

    Some rows are there twice; the higher accuracy counts.

    Args:
        path: The file of the results.
    """
    rows = pd.read_csv(path)
    rows = rows[rows["metric_name"].isin(["accuracy", "micro_mAP"]) & (rows["image_size"] == 224)]
    rows = rows[(rows["bands"] == "rgb") & (rows["normalization"] == "bandspec_zscore")]
    best = (
        rows.groupby(["method", "name", "dataset"], sort=False)["metric_value"]
        .max()
        .rename_axis(index={"name": "source", "dataset": "target"})
    )
    return best["knn5"].rename("knn").to_frame().join(best["linear"].rename("performance")).reset_index()


def scores_and_records(scores: Path, records: Path) -> pd.DataFrame:
    """Return TransferGraph's scores, averaged over repetitions, with the accuracies of its records.

    Args:
        scores: The file of the scores. Two of its lines lack their beginning.
        records: The file of the accuracies.
    """
    keys = {"metric": "metric", "model": "source", "target_dataset": "target"}
    means = pd.read_csv(scores).dropna(subset="score").groupby(list(keys), sort=False)["score"].mean()
    rows = means.reset_index().rename(columns=keys)
    names = {"TransferabilityMethod.LOG_ME": "log_me", "TransferabilityMethod.REG_H_SCORE": "h_score_shrunk"}
    accuracies = pd.read_csv(records).rename(
        columns={"model": "source", "finetuned_dataset": "target", "eval_accuracy": "performance"}
    )
    known = accuracies[["source", "target", "performance"]]
    return rows.replace({"metric": names}).merge(known, "left", ["source", "target"])
