"""Photos that a CSV file lists with their labels."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.folder_listing import in_order
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, SplitSource
from headstart.output.errors import UserError, reason_of
from headstart.output.seeds import Seed

COLUMNS = ("path", "label", "split")
SPLITS = ("train", "validation", "val")
QUOTED = re.compile(r'^"(.*)"$')


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
        table = self._read(("path", "label"))
        classes = sorted(set(table["label"]), key=in_order)
        if "split" not in table:
            return self._photos(table, classes), None
        is_for_training = table["split"] == "train"
        return self._photos(table[is_for_training], classes), self._photos(table[~is_for_training], classes)

    def pictures(self) -> Photos:
        """Return all photos in the order of the lines; those without a label have -1."""
        table = self._read(("path",))
        return self._photos(table, sorted(set(table.get("label", ())) - {""}, key=in_order))

    def _photos(self, table: pd.DataFrame, classes: Sequence[str]) -> PhotoFiles:
        numbers = {name: number for number, name in enumerate(classes)}
        labels = [numbers.get(label, -1) for label in table.get("label", [""] * len(table))]
        return PhotoFiles(self.file.parent, list(table["path"]), labels, classes)

    def _read(self, needed: Sequence[str]) -> pd.DataFrame:
        """Read the table of photos, in which some columns are needed; a UserError names the first wrong line."""
        try:
            table = pd.read_csv(
                self.file,
                dtype=str,
                na_filter=False,
                skipinitialspace=True,
                skip_blank_lines=False,  # so that the index tells the line
                encoding="utf-8-sig",
            )
        # pandas' errors, and those of the encoding, are ValueErrors.
        except (OSError, ValueError) as error:
            raise UserError(
                f"file: {self.file} cannot be read ({reason_of(error)}); give a CSV file in UTF-8 with the columns "
                "path and label"
            ) from error

        # A tab before a field keeps its quotes.
        table = table.rename(columns=str.strip).apply(
            lambda column: column.str.strip().str.replace(QUOTED, r"\1", regex=True)
        )
        columns = list(table.columns)
        if not {*needed} <= {*columns} <= {*COLUMNS}:
            optional = [name for name in COLUMNS if name not in needed]
            raise UserError(
                f"file: {self.file} must have the columns {', '.join(needed)} and perhaps {', '.join(optional)}; "
                f"it has {', '.join(columns)}"
            )
        if not isinstance(table.index, pd.RangeIndex):
            raise UserError(f"file: {self.file} has lines of more fields than its first line, which names the columns")

        table = table[(table != "").any(axis=1)]
        if table.empty:
            raise UserError(f"file: {self.file} lists no photo")
        self._check(table, needed)
        return table

    def _check(self, table: pd.DataFrame, needed: Sequence[str]) -> None:
        """Check the lines of a table; a UserError names the first one with the first problem that there is."""
        paths = [os.path.normpath(os.path.join(self.file.parent, path)) for path in table["path"]]  # noqa: PTH118
        problems = {f"no {name}": table[name] == "" for name in needed}
        if "split" in table:
            problems[f"a split that is none of {', '.join(SPLITS)}"] = ~table["split"].isin(SPLITS)
        problems["the path of an earlier line"] = pd.Series(paths, table.index).duplicated()
        problems["the path of no file"] = ~pd.Series(map(os.path.isfile, paths), table.index, dtype=bool)

        for problem, is_wrong in problems.items():
            if is_wrong.any():
                row = is_wrong.idxmax()
                # The first line names the columns, and rows are counted from 0.
                raise UserError(
                    f"file: {self.file}: line {row + 2} has {problem}: {', '.join(table.loc[row])!r}; "
                    f"{is_wrong.sum()} such lines"
                )
