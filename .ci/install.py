"""Install packages into the environment of the Python that runs this, with uv: `install.py --editable '.[report]'`.

uv installs in seconds what takes pip minutes, but reads no configuration of pip. So the settings of pip that say where
packages come from are translated. pip itself installs if uv fails.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys

UV = "uv==0.13.9"

# Settings of pip that say where packages come from, and the variables in which uv reads the same.
TRANSLATED = {
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_INDEX_URL",
    "no-index": "UV_NO_INDEX",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
}


def read_pip_settings() -> dict[str, str]:
    """Return the settings that `pip install` uses, from pip's files and from variables such as `PIP_INDEX_URL`.

    Raises:
        ValueError: A file of pip's cannot be read.
    """
    # pip may be configured to be quiet, and then lists nothing.
    command = [sys.executable, "-m", "pip", "config", "list", "-vvv"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise ValueError("pip's configuration cannot be read")

    settings: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for section, key, value in re.findall(r"^(global|install|:env:)\.([\w-]+)=(.*)$", listed.stdout, re.MULTILINE):
        settings[section][key] = ast.literal_eval(value)

    # The later ones take precedence, and pip passes over empty ones.
    return {name: value for section in settings.values() for name, value in section.items() if value.strip()}


def translate(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment variables with which uv finds the packages that pip finds.

    Args:
        settings: Values by pip's names.
    """
    # As pip does: the newest version of all indexes, not of the first index that has the package.
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name in sorted(settings.keys() & TRANSLATED):
        values = map(os.path.expanduser, settings[name].split())
        # uv splits folders of wheels at commas, and pip at spaces.
        variables[TRANSLATED[name]] = ("," if name == "find-links" else " ").join(values)
    return variables


def install_with_uv(arguments: list[str], constraints: str) -> None:
    """Install with uv, or without a network if that fails: from uv's cache and from local folders.

    Args:
        arguments: What `pip install` takes, such as `--editable .`.
        constraints: File of constraints; empty for none.

    Raises:
        ValueError: If uv is not to be had, or fails.
    """
    variables = translate(read_pip_settings())
    # An option would replace the file that pip's configuration names.
    variables["UV_CONSTRAINT"] = " ".join(filter(None, [constraints, variables.get("UV_CONSTRAINT")]))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", UV]
    if subprocess.run(pip, stderr=subprocess.DEVNULL, check=False).returncode:
        raise ValueError(f"pip finds no {UV}")

    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
    errors = []
    for network in ([], ["--offline"]):
        command = [*uv, *network, *arguments]
        done = subprocess.run(command, env=os.environ | variables, stderr=subprocess.PIPE, text=True, check=False)
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
    except ValueError as error:
        print(f"{error}: pip installs instead, which takes minutes", file=sys.stderr, flush=True)
        limits = ["--constraint", constraints] if constraints else []
        command = [sys.executable, "-m", "pip", "install", "--quiet", *limits, *arguments]
        return subprocess.run(command, check=False).returncode
    return 0


if __name__ == "__main__":
    # Ctrl-C ends this without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
