"""Every figure is compared with a stored one; `make figures` stores all of them again, to be looked at."""

import os
from pathlib import Path

import matplotlib
import pytest
from matplotlib.testing.compare import compare_images

from headstart.output import figures
from headstart.tests.material.root import ROOT

STORED = Path(__file__).parent / "stored_figures"
# Dots per inch, so that stored figures are small; root mean square of the differences, of 255: a letter is about 1.
DPI, TOLERANCE = 50, 0.5


@pytest.mark.slow
def test_figures_are_the_stored_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headstart.tests.material.sample_figures import sample_figures

    pinned = ROOT / "constraints.txt"
    if not pinned.is_file() or f"matplotlib=={matplotlib.__version__}\n" not in pinned.read_text():
        pytest.skip("another version of matplotlib draws texts differently")
    monkeypatch.setattr(figures, "DPI", DPI)
    files = {}
    for name, figure in sample_figures(tmp_path):
        files[name] = (STORED if os.environ.get("STORE_FIGURES") else tmp_path) / f"{name}.png"
        figures.save(figure, files[name])
    assert sorted(files) == sorted(path.stem for path in STORED.glob("*.png"))
    compared = [compare_images(str(STORED / path.name), str(path), TOLERANCE) for path in files.values()]
    assert not [difference for difference in compared if difference]
