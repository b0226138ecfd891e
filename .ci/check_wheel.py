"""Check that an installed wheel has all files of the checkout's packages, such as configurations and templates."""

from __future__ import annotations

import sys
from pathlib import Path

# The container is built in a checkout.
LEFT_OUT = {"portal/Containerfile", "portal/compose.yaml"}


def main(checkout: Path, installed: Path) -> None:
    """Check that nothing is missing.

    Args:
        checkout: The checkout.
        installed: The folder of the installed package.
    """
    folders = [path.relative_to(installed) for path in installed.rglob("*") if path.is_dir()]
    files = [path for folder in folders for path in (checkout / folder).glob("*") if path.is_file()]
    names = {path.relative_to(checkout).as_posix() for path in files} - LEFT_OUT
    missing = sorted(name for name in names if not (installed / name).exists())
    assert len(names) > 300, f"only {len(names)} files are compared"
    assert not missing, f"the wheel lacks {', '.join(missing)}; see package-data in pyproject.toml"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
