"""`headstart cache verify` finds and removes cached rows and remarks that differ from what the photos give."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from headstart.cli.cache_verify import cache_verify
from headstart.datamodules.photos.photo_source import PhotoFiles
from headstart.output.errors import UserError
from headstart.store.cache import cache_folder
from headstart.tests.material.stored_rows import parts_in

CHANGED = "train/dark/1.jpg"
# Options of a comparison, by the kind of rows that it stores.
OPTIONS = {
    "features": (),
    "activations": ("--data=headstart.datamodules.PhotoStream", "--data.trainable_from=features.18"),
    "photos": ("--data=headstart.datamodules.PhotoStream", "--data.trainable_from=all"),
}
Fit = Callable[..., Path]


@pytest.fixture(params=["features", *(pytest.param(kind, marks=pytest.mark.slow) for kind in [*OPTIONS][1:])])
def run(request: pytest.FixtureRequest, fit: Fit) -> Callable[..., Path]:
    return lambda *options, **named: fit(*OPTIONS[request.param], "--data.max_samples=10", *options, **named)


def misread_one_photo(patch: pytest.MonkeyPatch, broken: bool) -> None:
    """Make the decoder return another image for one photo, or fail, as if its file had changed for a moment."""
    read = PhotoFiles.read

    def wrong(photos: PhotoFiles, index: int) -> Image.Image:
        if photos.names[index] != CHANGED:
            return read(photos, index)
        if broken:
            raise OSError("broken data stream")
        return read(photos, index).rotate(90).point(lambda value: 255 - value)

    # The key of the cache contains both names.
    wrong.__module__, wrong.__qualname__ = read.__module__, read.__qualname__
    patch.setattr(PhotoFiles, "read", wrong)


@pytest.mark.slow
def test_right_rows_are_kept(run: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = run()
    before = parts_in(cache_folder())
    check = cache_verify(str(folder))
    assert (check.wrong, check.removed) == (0, 0)
    assert check.checked >= 24
    assert parts_in(cache_folder()) == before
    assert f"{check.checked} rows checked, none wrong" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_wrong_rows_and_remarks_are_removed(
    run: Callable[..., Path], broken: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        misread_one_photo(patch, broken)
        folder = run("--data.on_bad_image=skip", "--data.num_workers=0")
    with pytest.raises(UserError, match=r"^[12] of \d+ rows were wrong; 1 parts were removed") as error:
        cache_verify(str(folder))
    assert "\n" not in str(error.value)
    pattern = r"training photos: (\d+) of \1 rows are stored in 1 parts; \1 computed again, [12] wrong, 1 parts removed"
    assert re.search(pattern, capsys.readouterr().out)
    assert cache_verify(str(folder)).wrong == 0


@pytest.mark.slow
def test_missing_runs_are_refused_and_an_empty_cache_has_no_rows(tmp_path: Path, fit: Fit) -> None:
    with pytest.raises(UserError, match=r"^run: '.*' does not exist; give the folder of a run"):
        cache_verify(str(tmp_path / "nowhere"))
    folder: Any = fit("--data.max_samples=10")
    shutil.rmtree(cache_folder())
    assert cache_verify(str(folder)).checked == 0
