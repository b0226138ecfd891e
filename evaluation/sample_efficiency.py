"""`headstart sample-efficiency`: score finished runs again, joined, by another criterion, or from a ledger."""

import json
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.evaluation.leaderboard.read_settings import read_settings
from headstart.evaluation.leaderboard.settings import Setting
from headstart.evaluation.protocol_differences import LISTED, describe_differences, find_method
from headstart.evaluation.trace_options import LeaderboardOptions
from headstart.metrics.sample_efficiency.result_warnings import interval_warnings
from headstart.metrics.sample_efficiency.scores import ACCURACY_AT, score
from headstart.output.errors import UserError
from headstart.output.files import output_file, write_text
from headstart.output.printable import print_lines
from headstart.output.tables import print_scores


def sample_efficiency(
    runs: str | list[str],
    output: str | None = None,
    accuracy_at: list[PositiveInt] = ACCURACY_AT,
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Score finished runs of headstart train again, or all that a ledger holds, from the traces alone.

    Scores runs by another criterion without running again, and joins runs of the same comparison with different
    orderings or methods, as the leaderboard does. Of a ledger it scores one stream, in the orderings in which all
    methods have a trace.

    Args:
        runs: Folders of runs or ledgers, folders above them, or patterns such as 'runs/fine_tuning-*'. They may differ
            only in their orderings and methods; `where` chooses among settings.
        output: JSON file to write the scores to.
        accuracy_at: Numbers of samples at which the accuracy is reported.
        overwrite: Replace a file that holds something else.
        **options: Options of `LeaderboardOptions`.

    Returns:
        The scores, as `output` holds them.
    """
    path = None if output is None else output_file("output", output)
    # A cut-off run is scored as well; what remains are options of the command.
    selection = LeaderboardOptions(tuned=None, incomplete=True, per_class=None, at=None, **options)
    settings, left_out = read_settings([runs] if isinstance(runs, str) else runs, selection)
    setting = _only(settings)

    method_keys, methods = setting.method_keys, setting.curves.methods
    baseline = find_method(methods, method_keys, selection.baseline, "baseline")
    curves = setting.curves.select([*dict.fromkeys([baseline, *methods])])

    document = {
        "runs": setting.folders,
        "complete": all(run.document["complete"] for run in setting.runs),
        "warnings": [
            *(f"Left out: {each['reason'].removeprefix('runs: ')}." for each in left_out),
            *setting.warnings,
            *interval_warnings(curves.methods, curves.samples_to_criterion()[0], curves.floor),
        ],
        "criterion": curves.criterion,
        "protocol": {**setting.runs[0].protocol, "orderings": len(curves.orderings)},
        "orderings": curves.orderings.tolist(),
        "restricted_at": curves.limit,
        **score(curves, accuracy_at),
    }

    for name, scores in document["methods"].items():
        scores["key"] = method_keys[name]
    if path is not None:
        write_text(path, json.dumps(document, indent=1, allow_nan=False), overwrite)

    print_scores(document)
    print_lines(setting.remarks)
    return document


def _only(settings: list[Setting]) -> Setting:
    """Return the only setting, or the only one of runs if there are any; a UserError where there are several."""
    settings = [setting for setting in settings if not all(run.is_ledger for run in setting.runs)] or settings
    if len(settings) == 1:
        return settings[0]
    differing = describe_differences([setting.protocol for setting in settings])
    listed = "; ".join(f"{key} ({values})" for key, values in [*differing.items()][:LISTED])
    raise UserError(
        f"runs: {len(settings)} settings, which differ in {listed}; choose one by --where, such as "
        f"--where.{next(iter(differing))}"
    )
