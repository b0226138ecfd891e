"""Tables of a leaderboard: of each setting, over settings, of other criteria and of the setup stability."""

from collections.abc import Iterator, Sequence

from headstart.evaluation.leaderboard.budget_tables import budget_tables, budgets_over_settings_rows, budgets_title
from headstart.evaluation.leaderboard.frames import Document, pivot
from headstart.output.tables import Cells, Table, format_estimate, format_number

# Columns that stay in narrow terminals.
ESSENTIAL = ("method", "group", "reached", "median", "improvement")
# The tables of more settings are only written into files.
MOST_PRINTED = 4


def tables_of(document: Document, in_terminal: bool = False) -> Iterator[Table]:
    """Yield the tables of a leaderboard.

    Args:
        document: The content of `leaderboard.json`.
        in_terminal: Whether to leave out what a terminal has no room for: neighbours, other criteria, and all tables of
            single settings if there are many.
    """
    settings, over, budgets = document["settings"], document["over_settings"], document["label_budgets"]
    for setting in settings if not in_terminal or len(settings) <= MOST_PRINTED else ():
        yield from setting_tables(setting, in_terminal)

    if over is not None:
        yield Table(f"Over {over['of']}", over_settings_rows(document), notes=over["remarks"])
    if budgets is not None:
        notes = budgets["remarks"] if over is None else []
        yield Table(budgets_title(budgets), budgets_over_settings_rows(budgets), notes=notes)

    for each in document["sensitivity"]["settings"] if not in_terminal else ():
        yield sensitivity_table(each)
    if document["setup_stability"] is not None:
        title = "Setup stability: agreement of the rankings where one part varies"
        yield Table(title, stability_rows(document))


def setting_tables(setting: Document, in_terminal: bool = False) -> Iterator[Table]:
    """Yield the tables of a setting: its methods, neighbours among them, and accuracies at label budgets.

    Args:
        setting: The setting as it stands in `leaderboard.json`.
        in_terminal: As for `tables_of`.
    """
    notes = [*warnings_of(setting), *setting["remarks"]]
    yield Table(setting["name"], _setting_rows(setting), ESSENTIAL, _criterion(setting), notes)
    if setting["pairs"] and not in_terminal:
        yield Table(f"Neighbours: {setting['name']}", _pair_rows(setting))
    for title, rows in budget_tables(setting):
        yield Table(f"{title}: {setting['name']}", rows)


def sensitivity_table(setting: Document) -> Table:
    """Return the best method of a setting under each criterion, with the agreement of its ranking.

    Args:
        setting: A part of `sensitivity` as it stands in `leaderboard.json`.
    """
    lines = []
    for each in setting["grid"]:
        cut = f", cut at {each['restricted_at']}" if each["undecided"] else ""
        best = f"{each['order'][0]} ({format_number(each['tau'], '.2f')}{cut})" if each["order"] else "–"
        lines.append((f"{100 * each['threshold']:g}%", f"{each['consecutive']} in a row", best))
    return Table(f"Sensitivity: {setting['name']}", pivot("threshold", lines))


def warnings_of(document: Document) -> list[str]:
    """Return the warnings of a leaderboard, or of a part of it, as its tables show them."""
    return [f"WARNING: {warning}" for warning in document["warnings"]]


def _criterion(setting: Document) -> str:
    """Return the criterion of a setting, the accuracy by chance, the number of orderings and the limit."""
    measure = setting["measure"].replace("_", " ")
    shares = (("chance", setting["chance"]), ("largest class", setting["majority"]))
    known = [f"{title} {share:.0%}" for title, share in shares if share is not None]
    threshold = f"{setting['threshold']:.0%} {measure}" + (f" ({', '.join(known)})" if known else "")
    return (
        f"{threshold} at {setting['consecutive']} evaluations in a row; {len(setting['orderings'])} orderings; "
        f"restricted at {setting['restricted_at']} samples"
    )


def _setting_rows(setting: Document) -> Cells:
    methods = setting["methods"]
    known = [at for at in methods[0]["accuracy_at"] if all(each["accuracy_at"][at] is not None for each in methods)]
    header = ["method", "group", "rank", "reached", "median", "restricted mean", "improvement", "p", "onset"]
    rows = [[*header, *(f"accuracy at {at}" for at in known)]]

    for each in methods:
        low, high = each["rank_interval"]
        rows.append(
            [
                each["name"] + (f" (tuned: {each['tuned']})" if each["tuned"] else ""),
                each["group"],
                f"{low}" if low == high else f"{low} to {high}",
                f"{each['reached']}/{each['orderings']}",
                # Samples to criterion, and their comparison with the baseline.
                format_estimate(each["median"], each["median_interval"], "g"),
                format_estimate(each["restricted_mean"], each["restricted_mean_interval"], ".1f"),
                _improvement(each["relative_improvement"], each["relative_improvement_interval"]),
                "" if each["p_value_holm"] is None else format(each["p_value_holm"], ".2g"),
                format_number(each["onset"], "g"),
                *(format(each["accuracy_at"][at], ".1%") for at in known),
            ]
        )
    return rows


def _improvement(value: float | None, ends: Sequence[float | None] | None) -> str:
    if value is None:
        return ""
    between = "" if ends is None else f" [{', '.join(format_number(end, '.0f') for end in ends)}]"
    return f"{round(value)} %{between}"


def _pair_rows(setting: Document) -> Cells:
    header = ["better", "worse", "fewer samples", "p", "significant", "orderings needed"]
    rows = [
        [
            pair["better"],
            pair["worse"],
            format_estimate(pair["difference"], pair["interval"], ".1f"),
            format(pair["p_value"], ".2g"),
            "yes" if pair["told_apart"] else "no",
            format_number(pair["orderings_needed"], "g"),
        ]
        for pair in setting["pairs"]
    ]
    return [header, *rows]


def over_settings_rows(document: Document) -> Cells:
    """Return the table over all settings.

    Args:
        document: The content of `leaderboard.json`, with `over_settings`.
    """
    rows = [["method", "interquartile mean", "mean rank"]]
    for each in document["over_settings"]["methods"]:
        mean = format_estimate(each["interquartile_mean"], each["interquartile_mean_interval"], ".2f")
        rank = format_estimate(each["mean_rank"], each["mean_rank_interval"], ".1f")
        rows.append([each["name"] + " (tuned)" * each["tuned"], mean, rank])
    return rows


def stability_rows(document: Document) -> Cells:
    """Return the table of setup stability.

    Args:
        document: The content of `leaderboard.json`, with `setup_stability`.
    """
    rows = [["part that varies", "setup stability", "pairs compared"]]
    for part in document["setup_stability"]["parts"]:
        stability = format_estimate(part["stability"], part["interval"], ".2f")
        rows.append([part["part"], stability, f"{part['compared']:,}"])
    return rows
