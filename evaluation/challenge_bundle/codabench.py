"""Bundles of Codabench: one competition for each team.

Two teams cannot share a competition: it has only one leaderboard, and its phases follow one another in time.
"""

from headstart.contract.challenge import TeamRules
from headstart.contract.schema import Track
from headstart.evaluation.challenge_bundle.material import DOCUMENTS, PROGRAM, Files, Material, read_yaml, yaml_bytes


def competitions(material: Material) -> dict[str, Files]:
    """Return the bundles by file name; raise the errors of `Material.reference`."""
    name = material.challenge.name
    return {f"{name}-{team}.zip": _competition(material, team, rules) for team, rules in material.teams.items()}


def _competition(material: Material, team: Track, rules: TeamRules) -> Files:
    challenge, title, document = material.challenge, f"{team.title()} Team", read_yaml("codabench.yaml")
    document["title"] = f"{challenge.title[:240]}: {title}"
    document |= {"description": challenge.description, "docker_image": material.image}
    document["tasks"][0]["name"] = title
    document["phases"][0] |= {"name": title, "start": material.opens}
    if material.deadline is not None:
        document["phases"][0]["end"] = material.deadline
    # Null means no limit. Without these keys, Codabench sets limits of 100 and 5.
    quotas = {"max_submissions": rules.submissions, "max_submissions_per_day": rules.submissions_per_day}
    document["phases"][0] |= quotas
    document["leaderboards"][0]["title"] = title

    command = f"command: python3 {PROGRAM} {team} /app/input /app/output\n"
    return {
        "competition.yaml": yaml_bytes(document),
        "scoring_program.zip": {**material.program, "metadata.yaml": command.encode()},
        "reference_data.zip": material.reference,
        # The rules, and the models and stimuli that participants choose from.
        "public_data.zip": {name: material.reference[f"reference/{name}"] for name in DOCUMENTS},
        **material.pages("a zip file of one JSON document"),
    }
