"""The dependencies of rows are known without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headstart.datamodules import row_policy
from headstart.datamodules.row_policy import Policy, device_kind, pass_size


@pytest.mark.parametrize(
    ("device", "kind"), [("cpu", "cpu"), ("cuda", "cuda"), ("cuda:1", "cuda"), ("mps", "mps"), ("mps:0", "mps")]
)
def test_kind_of_a_device(device: str, kind: str) -> None:
    assert device_kind(device) == kind


def test_kind_is_that_which_torch_would_choose() -> None:
    script = (
        "import sys; from headstart.datamodules.row_policy import device_kind; "
        "print(device_kind('auto'), 'torch' in sys.modules)"
    )
    root = Path(row_policy.__file__).parent.parent
    run = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    kind, imported = run.stdout.split()
    assert kind == ("cuda" if torch.cuda.is_available() else "cpu")
    assert imported == "False" or torch.version.hip is not None


@pytest.mark.parametrize(("available", "kind"), [(True, "cuda"), (False, "cpu")])
def test_torch_is_asked_where_it_is_there(monkeypatch: pytest.MonkeyPatch, available: bool, kind: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert device_kind("auto") == kind


def test_passes_are_part_of_what_rows_depend_on() -> None:
    on_cpu, on_gpu = (Policy(device=device).identity(224) for device in ("cpu", "cuda:0"))
    assert (on_cpu["device"], on_cpu["pass"]) == ("cpu", 4)
    assert (on_gpu["device"], on_gpu["pass"]) == ("cuda", 256)
    assert json.loads(json.dumps(on_cpu)) == on_cpu


@pytest.mark.parametrize("side", [32, 64, 224, 225, 518, 5000])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_passes_are_bounded_in_pixels(side: int, device: str) -> None:
    size = pass_size(side, device)
    bound = (4 if device == "cpu" else 256) * 224**2
    assert size >= 1
    assert size * side**2 <= bound or size == 1
    assert (size + 1) * side**2 > bound
