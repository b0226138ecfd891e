"""Zip files whose bytes depend on nothing but what is in them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TypeAlias, Union
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

# What is in a zip file, by name: bytes, a file on the disk, or another zip file.
Files: TypeAlias = Mapping[str, Union[bytes, Path, "Files"]]


def write_zip(target: Path | IO[bytes], files: Files) -> None:
    """Write a zip file; files are copied in pieces, so that data sets may be larger than the memory.

    Args:
        target: Where to, a path or a stream.
        files: Its content.
    """
    with ZipFile(target, "w") as archive:
        for name, content in sorted(files.items()):
            # Every member has the date with which ZIP's calendar begins.
            member = ZipInfo(name)
            member.compress_type, member.external_attr = ZIP_DEFLATED, 0o644 << 16
            with archive.open(member, "w", force_zip64=not isinstance(content, bytes)) as file:
                if isinstance(content, bytes):
                    file.write(content)
                elif isinstance(content, Path):
                    with content.open("rb") as source:
                        shutil.copyfileobj(source, file)
                else:
                    write_zip(file, content)
