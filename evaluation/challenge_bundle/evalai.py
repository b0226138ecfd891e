"""The bundle of EvalAI: one challenge, with a phase and a leaderboard for each team."""

from textwrap import shorten
from typing import Any

from headstart.evaluation.challenge_bundle.material import Files, Material, read_yaml, yaml_bytes

# EvalAI needs an end, and its own number for any number.
FOREVER, ANY_NUMBER = "2099-12-31 23:59:59", 100_000
LONGEST_TITLE, LONGEST_DESCRIPTION = 100, 140
# What the worker of a host imports.
ENTRY = {"evaluate.py": b"from scoring_program import evaluate\n"}
LISTS = ("leaderboard", "challenge_phases", "dataset_splits", "challenge_phase_splits")


def configuration(material: Material) -> dict[str, Files]:
    """Return the bundle by its file name; errors as of `Material.reference`."""
    challenge = material.challenge
    times = {"start_date": material.opens, "end_date": material.deadline or FOREVER}
    description = challenge.description or challenge.title
    template = read_yaml("evalai.yaml")

    document: dict[str, Any] = {
        "title": challenge.title[:LONGEST_TITLE],
        "short_description": shorten(description, LONGEST_DESCRIPTION, placeholder="..."),
        **template,
        **times,
        **{name: [] for name in LISTS},
    }
    for number, (team, rules) in enumerate(material.teams.items(), 1):
        named = {"id": number, "name": f"{team.title()} Team", "codename": team}
        total, by_day = rules.submissions or ANY_NUMBER, rules.submissions_per_day or ANY_NUMBER
        quotas = {"max_submissions": total, "max_submissions_per_month": total, "max_submissions_per_day": by_day}
        joined = dict.fromkeys(("challenge_phase_id", "leaderboard_id", "dataset_split_id"), number)

        items: list[dict[str, Any]] = [{"id": number}, named | times | quotas, named, joined]
        for name, item in zip(LISTS, items, strict=True):
            document[name].append({**item, **template[name][0]})

    files: Files = {
        "challenge_config.yaml": yaml_bytes(document),
        "annotations/rules.yaml": material.rules,
        "evaluation_script.zip": {**material.program, **ENTRY, **material.reference},
    }
    pages = material.pages("a JSON document")
    logo = {"logo.png": pages.pop("logo.png")}
    return {f"{challenge.name}.zip": {**files, **logo, **{f"templates/{name}": page for name, page in pages.items()}}}
