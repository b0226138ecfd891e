"""The figure of `headstart fit`: the learning curve and what is confused."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headstart.output.figures import LINE_STYLES, PALE, as_written, drawing, shorten


def plot_answer(document: Mapping[str, Any]) -> Figure:
    """Plot the learning curve of the chosen method beside the matrix of what classes are taken for.

    Args:
        document: The content of `results.json`.
    """
    classes = list(document["classes"])
    with drawing():
        figure = Figure(figsize=(10, 4.4), layout="constrained")
        curve, matrix = figure.subplots(1, 2)
        points = document["curve"]
        style, expected = LINE_STYLES[0], document["expected_accuracy"]
        interval = [100 * end for end in expected["interval"]]

        accuracies = [100 * point["accuracy"] for point in points]
        curve.plot(
            [point["labels"] for point in points], accuracies, color=style.colour, marker=style.marker, markersize=4
        )
        curve.plot([document["photos"]] * 2, interval, color=style.colour, label="expected of all labels, 95 %")
        curve.plot(document["photos"], 100 * expected["estimate"], "o", color="white", markeredgecolor=style.colour)

        forecast, other = document["forecast"], LINE_STYLES[1]
        ends = 100 * np.array([point["interval"] for point in forecast]).reshape(-1, 2).T
        if forecast:
            estimates = 100 * np.array([point["estimate"] for point in forecast])
            look = {"color": other.colour, "ls": ":", "marker": other.marker, "label": "forecast, 80 %"}
            curve.errorbar([point["labels"] for point in forecast], estimates, abs(ends - estimates), **look)
        curve.legend(fontsize="small", loc="lower right")
        curve.set_xscale("log", base=2)
        curve.xaxis.set_major_formatter("{x:g}")
        curve.set_ylim(min(50, interval[0], *accuracies, *ends[0]) - 2, 101)
        curve.set(title=f"{as_written(document['method'])}: learning curve", xlabel="Labels", ylabel="Accuracy, %")

        if document["confusion"] is None:
            matrix.remove()
            return figure
        shares = matrix.imshow(100 * np.array(document["confusion"]), cmap="Greys", vmin=0, vmax=100)
        figure.colorbar(shares, ax=matrix, label="Share of the class, %", shrink=0.8)
        names = shorten(classes)
        matrix.set_xticks(range(len(classes)), names, rotation=90)
        matrix.set_yticks(range(len(classes)), names)
        matrix.set(title="What each class is taken for", xlabel="Predicted class", ylabel="Class")
        matrix.spines[:].set_visible(True)
        matrix.spines[:].set_color(PALE)
    return figure
