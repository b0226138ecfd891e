"""Install packages into the environment of the Python that runs this, with uv: `install.py --editable '.[report]'`.

uv installs in seconds what takes pip minutes, but reads no configuration of pip. So settings that say where packages
are found are handed on. Where pip has other settings that change what is installed, or uv fails, pip itself installs.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys

UV = "uv==0.13.9"
# Settings of pip, and the variables in which uv reads the same.
TRANSLATED = {
    "cert": "SSL_CERT_FILE",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_INDEX_URL",
}
# Settings of pip that do not change what is installed.
WITHOUT_EFFECT = {
    "cache-dir",
    "config-file",
    "default-timeout",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-input",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "timeout",
    "verbose",
}


def read_variables() -> dict[str, str]:
    """Return the environment variables with which uv finds the packages that pip finds.

    Raises:
        ValueError: pip has a setting that uv lacks.
    """
    # pip may be configured to be quiet, and then lists nothing.
    command = [sys.executable, "-m", "pip", "config", "list", "-vvv"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.*)$", listed, re.MULTILINE)

    # As pip does: the newest version of all indexes, not of the first index that has the package.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    # The later ones take precedence.
    for _, name, text in sorted(settings, key=lambda setting: ("global", "install", ":env:").index(setting[0])):
        value = ast.literal_eval(text)
        if name not in TRANSLATED.keys() | WITHOUT_EFFECT and value:
            raise ValueError(f"pip's setting {name} is unknown to uv")
        if name in TRANSLATED and value:
            # uv splits folders of wheels at commas, and pip at spaces.
            words = map(os.path.expanduser, value.split())
            variables[TRANSLATED[name]] = ("," if name == "find-links" else " ").join(words)
    return variables


def install_with_uv(arguments: list[str], constraints: str) -> None:
    """Install with uv, or without a network if that fails: from uv's cache and from local folders.

    Args:
        arguments: What `pip install` takes, such as `--editable .`.
        constraints: File of constraints; empty for none.

    Raises:
        ValueError: uv fails, or lacks a setting of pip.
        CalledProcessError: pip does not find uv, or cannot read its own configuration.
    """
    environment = {**os.environ, **read_variables(), "UV_CONSTRAINT": constraints}
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", UV], stderr=subprocess.DEVNULL, check=True)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
    errors = []
    for network in ([], ["--offline"]):
        command = [*uv, *network, *arguments]
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if not done.returncode:
            return
        errors.append(" ".join(done.stderr.split()))
    raise ValueError(f"uv failed ({errors[0]})")


def main(arguments: list[str]) -> int:
    """Install under the constraints that the variable `CONSTRAINTS` names, and return the exit code.

    Args:
        arguments: What `pip install` takes.
    """
    constraints = os.environ.get("CONSTRAINTS", "constraints.txt")
    try:
        install_with_uv(arguments, constraints)
    except (ValueError, subprocess.CalledProcessError) as error:
        print(f"{error}: pip installs instead, which takes minutes", file=sys.stderr, flush=True)
        limits = ["--constraint", constraints] if constraints else []
        command = [sys.executable, "-m", "pip", "install", "--quiet", *limits, *arguments]
        return subprocess.run(command, check=False).returncode
    return 0


if __name__ == "__main__":
    # Ctrl-C ends this without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
