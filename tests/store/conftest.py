"""Tables whose rows are checked whenever they are asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.store.row_store import RowStore, StoredRows
from headstart.tests.material.counted_rows import KEY, NAMES, ROWS, CountedRows
from headstart.tests.material.named_rows import Table


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., StoredRows]:
    """Ask for all rows of a table, and check whether they were computed."""

    def ask(computed: bool, key: dict[str, Any] = KEY, **source: Any) -> StoredRows:
        count = tmp_path / "count"
        before = count.read_text() if count.exists() else ""
        result = RowStore(tmp_path / "store").get(key, NAMES, lambda _: CountedRows(count, **source))
        assert result.computed == (10 if computed else 0)
        assert (count.read_text() != before) == computed
        assert np.array_equal(result.rows, source.get("rows", ROWS))
        assert result.notes == {"rows": 10}
        assert result.remarks == {3: "odd"}
        return result

    return ask


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "rows")
