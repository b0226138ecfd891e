"""Numbers that are measured once and kept: a later measurement that differs is noticed."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headstart.output.files import write_together
from headstart.store.feature_table import explain_os_errors
from headstart.store.json_digest import digest_of


def first_measured(folder: Path, key: Mapping[str, Any], number: int) -> int:
    """Return the number that was measured first; store this one if it is the first.

    Args:
        folder: Folder of such numbers, created where it is missing.
        key: Everything that identifies the number; JSON values.
        number: The number as it was measured now.

    Returns:
        The stored number; this one if none can be read.

    Raises:
        StoreError: The number cannot be written.
    """
    path = folder / f"{digest_of(key)}.json"
    try:
        # Reading from a pipe would wait forever.
        return int(json.loads(path.read_text() if path.is_file() else "")["number"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        text = json.dumps({"number": number, "key": dict(key)}) + "\n"
        with explain_os_errors(folder, "written"):
            write_together(folder, {path.name: partial(Path.write_text, data=text)})
        return number
