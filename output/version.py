"""Which version of the suite this is."""

import os
import subprocess

import headstart
from headstart.output.import_paths import ROOT

# The forms of results.json, of a comparison and of the training of one model. Another number is an error.
COMPARISON_SCHEMA, TRAINING_SCHEMA = 2, 1
# Variables that git sets for its hooks: the repository that they run in.
HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")


def describe_version() -> str:
    """Return the version, with the commit if the suite lies in a checkout of its own."""
    commit = git_revision()
    return f"headstart {headstart.__version__}" + (f" ({commit})" if commit else "")


def git_revision() -> str | None:
    """Return the commit of the suite's code, with `-dirty` if it was changed; None outside a checkout of its own."""
    if not (ROOT / ".git").exists():
        # Another project's repository may lie around this folder.
        return None
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    environment = {name: value for name, value in os.environ.items() if name not in HOOKS}
    try:
        process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return process.stdout.strip()
