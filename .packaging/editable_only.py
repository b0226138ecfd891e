"""Build backend: setuptools for an editable install, and a refusal of everything else.

The suite's modules have names that belong to others in a folder of installed packages (`train`, `metrics`, `store`),
and they read `configs/` beside them, which is no package. So there is nothing to put into a wheel.
"""

from __future__ import annotations

from typing import NoReturn

from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
]


def refuse(*_: object) -> NoReturn:
    """End the build.

    Raises:
        SystemExit: Always, with the one line that says what to do instead.
    """
    raise SystemExit(
        "headstart is run from a checkout and is no wheel: type `make demo` there, or `pip install --editable .`"
    )


# The requirements are asked for first, before any dependency is downloaded.
build_sdist = build_wheel = get_requires_for_build_sdist = get_requires_for_build_wheel = refuse
