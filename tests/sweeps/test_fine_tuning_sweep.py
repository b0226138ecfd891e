"""A sweep of methods that train a network gives the same traces wherever its runs are."""

from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.sweeps import run, traces, write
from headstart.tests.material.training import CONFIGS

OPTIONS = [
    f"--config={CONFIGS / 'demo.yaml'}",
    "--data=headstart.datamodules.PhotoStream",
    "--data.photos.train_size=60",
    "--data.max_samples=12",
    "--data.validation_size=30",
    "--data.dropout=true",
    f"--model={CONFIGS / 'model' / 'fine_tuning.yaml'}",
    "--criterion.evaluation=lazy",
    "--criterion.consecutive=4",
    "--criterion.threshold=0.6",
    "--trainer.accelerator=cpu",
    "--trainer.logger=false",
]


@pytest.mark.slow
def test_one_after_the_other_by_workers_and_on_ray(tmp_path: Path, cluster: Any) -> None:
    parameters: dict[str, Any] = {
        "data__trainable_from": {"values": ["all", "features.14"]},
        "data__first_ordering": {"values": [0, 2]},
        "data__orderings": {"value": 2},
    }
    file = write(tmp_path, OPTIONS, **parameters)
    assert len(run(file, tmp_path / "serial")) == 4
    stored = traces(tmp_path / "serial")
    # Ten methods, four orderings, of two networks.
    assert len(stored) == 80
    cluster.add_node(num_cpus=2)
    for name, option in (("workers", "--workers=2"), ("ray", f"--ray={cluster.address}")):
        run(file, tmp_path / name, option)
        assert traces(tmp_path / name) == stored
