"""Install packages into the environment of the Python that runs this, with uv: `install.py --editable '.[report]'`.

uv installs in seconds what takes pip minutes, but reads no configuration of pip. So the settings of pip that say where
packages come from are translated. pip itself installs if it has a setting that uv lacks, or if uv fails.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys

UV = "uv==0.13.9"

# Names of settings of pip, and of the variables in which uv reads the same.
TRANSLATED = {
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_INDEX_URL",
    "no-cache-dir": "UV_NO_CACHE",
    "no-index": "UV_NO_INDEX",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "trusted-host": "UV_INSECURE_HOST",
}
SWITCHES = {"no-cache-dir", "no-index"}
# Settings of pip that do not change what is installed.
WITHOUT_EFFECT = {
    "cache-dir",
    "config-file",
    "disable-pip-version-check",
    "no-color",
    "no-input",
    "no-python-version-warning",
    "no-warn-script-location",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "root-user-action",
    "verbose",
}


def read_pip_settings() -> dict[str, str]:
    """Return the settings that `pip install` uses, from pip's files and from variables such as `PIP_INDEX_URL`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    settings: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in printed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in settings:
            settings[section][key] = ast.literal_eval(value)

    # The later ones take precedence, and pip passes over empty ones.
    return {name: value for section in settings.values() for name, value in section.items() if value.strip()}


def translate(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment variables with which uv finds the packages that pip finds.

    Args:
        settings: Values by pip's names.

    Raises:
        ValueError: If uv lacks one of the settings.
    """
    # As pip does: the newest version of all indexes, not of the first index that has the package.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name in sorted(settings.keys() - WITHOUT_EFFECT):
        words = settings[name].split()
        if name not in TRANSLATED:
            raise ValueError(f"pip's setting {name} is unknown to uv")
        if name in SWITCHES:
            words = ["true" if words[0].lower() in {"1", "on", "t", "true", "y", "yes"} else "false"]
        # Of the settings that may name several places, uv splits one at commas and the others at spaces.
        variables[TRANSLATED[name]] = ("," if name == "find-links" else " ").join(words)
    return variables


def install_with_uv(arguments: list[str]) -> None:
    """Install with uv, or without a network if that fails: from uv's cache and from local folders.

    Args:
        arguments: What `pip install` takes, such as `--editable .`.

    Raises:
        ValueError: If uv is not to be had, fails, or lacks a setting of pip.
    """
    environment = translate(read_pip_settings()) | os.environ
    pip = [sys.executable, "-m", "pip", "install", "--quiet", UV]
    if subprocess.run(pip, stderr=subprocess.DEVNULL, check=False).returncode:
        raise ValueError(f"pip finds no {UV}")

    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
    errors = []
    for network in ([], ["--offline"]):
        command = [*uv, *network, *arguments]
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if not done.returncode:
            return
        errors.append(done.stderr.strip())
    raise ValueError(f"{errors[0]}\nuv failed")


def main(arguments: list[str]) -> int:
    """Install under the constraints that the variable `CONSTRAINTS` names, and return the exit code.

    Args:
        arguments: What `pip install` takes.
    """
    constraints = os.environ.get("CONSTRAINTS", "constraints.txt")
    if constraints:
        arguments = ["--constraint", constraints, *arguments]

    try:
        install_with_uv(arguments)
    except ValueError as error:
        print(f"{error}: pip installs instead, which takes minutes", file=sys.stderr, flush=True)
        return subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *arguments], check=False).returncode
    return 0


if __name__ == "__main__":
    # Ctrl-C ends this without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
