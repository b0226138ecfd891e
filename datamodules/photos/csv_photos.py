"""Photos that a CSV file lists with their labels."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jsonargparse.typing import OpenUnitInterval
from numpy.typing import ArrayLike

from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, SplitSource, number_classes
from headstart.output.errors import UserError, reason_of
from headstart.output.seeds import Seed

NEEDED = ("path", "label")
SPLITS = ("train", "validation", "val")


class CsvPhotos(SplitSource):
    """Photos that a CSV file lists, one per line, with the columns path, label and optionally split.

    Paths are relative to the file's folder. The classes are numbered in the order of their labels. The split is train,
    validation or val. Without that column, a seeded part is held out for validation.

    Args:
        file: The CSV file, in UTF-8. Its name without the ending is the data set's name in the results.
        validation_fraction: Share of each class that is held out for validation, if there is no column split.
        split_seed: Seed of that split.
    """

    def __init__(self, file: str, validation_fraction: OpenUnitInterval = 0.2, split_seed: Seed = 0) -> None:
        self.file = Path(file).expanduser()
        self.name = self.file.stem
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, Photos | None]:
        """List the photos."""
        table = self._read()
        photos = self._photos(table)
        if "split" not in table:
            return photos, None
        is_train = (table["split"] == "train").to_numpy()
        return photos.subset(np.flatnonzero(is_train)), photos.subset(np.flatnonzero(~is_train))

    def pictures(self) -> Photos:
        """Return all photos in the order of the lines; those without a label have -1."""
        return self._photos(self._read(needed=("path",)))

    def _photos(self, table: pd.DataFrame) -> PhotoFiles:
        labels, classes = number_classes(table["label"] if "label" in table else [""] * len(table))
        return PhotoFiles(self.file.parent, [*table["path"]], labels, classes)

    def _read(self, needed: Sequence[str] = NEEDED) -> pd.DataFrame:
        """Read one row for each photo, with the columns that are needed; a UserError names the first wrong row."""
        try:
            table = pd.read_csv(self.file, dtype=str, na_filter=False, skipinitialspace=True, encoding="utf-8-sig")
            if not isinstance(table.index, pd.RangeIndex):
                raise ValueError("its rows have more fields than its header")
        except (OSError, ValueError) as error:
            raise UserError(
                f"file: {self.file} cannot be read ({reason_of(error)}); give a CSV file in UTF-8 with the columns "
                "path and label"
            ) from error
        table.columns = table.columns.str.strip()
        optional = [name for name in (*NEEDED, "split") if name not in needed]
        if not {*needed} <= {*table} <= {*needed, *optional}:
            raise UserError(
                f"file: {self.file} must have the columns {', '.join(needed)} and perhaps {', '.join(optional)}; "
                f"it has {', '.join(table)}"
            )
        if table.empty:
            raise UserError(f"file: {self.file} lists no photo")

        # A space or tab outside of quotes keeps them.
        table = table.apply(lambda column: column.str.strip().str.strip('"'))
        self._require_right(table, needed)
        return table

    def _require_right(self, table: pd.DataFrame, needed: Sequence[str]) -> None:
        # A Path for each of many files takes long.
        paths = [os.path.normpath(os.path.join(self.file.parent, path)) for path in table["path"]]  # noqa: PTH118
        problems: dict[str, ArrayLike] = {f"has no {name}": table[name] == "" for name in needed}
        if "split" in table:
            problems[f"has a split that is none of {', '.join(SPLITS)}"] = ~table["split"].isin(SPLITS)
        problems["repeats the photo of an earlier row"] = pd.Series(paths).duplicated()
        problems["names no file"] = [not os.path.isfile(path) for path in paths]  # noqa: PTH113

        for problem, wrong in problems.items():
            if (rows := np.flatnonzero(wrong)).size:
                row = f"row {rows[0] + 1} ({table['path'][rows[0]]!r})"
                raise UserError(f"file: {self.file}: {row} {problem}; so do {len(rows) - 1} more")
