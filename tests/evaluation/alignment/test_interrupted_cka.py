"""Ctrl-C, `timeout` and SIGTERM while rows are computed: one line on the error stream."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headstart.tests.material.arena import Arena

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")]


def children(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@pytest.fixture
def many(arena: Arena) -> Arena:
    """Add stimuli that take some seconds."""
    generator, stimuli = np.random.default_rng(0), []
    folder = arena.folder / "datasets" / "noise"
    folder.mkdir()
    for i in range(4000):
        Image.fromarray(generator.integers(0, 256, (32, 32, 3)).astype(np.uint8)).save(folder / f"{i}.png")
        stimuli.append({"dataset_name": "noise", "image_identifier": f"{i}.png"})
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in stimuli))
    return arena


@pytest.mark.parametrize(
    ("number", "send"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.killpg), (signal.SIGTERM, os.kill)]
)
def test_one_line(many: Arena, number: signal.Signals, send: Callable[[int, int], None]) -> None:
    models = "[squeezenet1_1, shufflenet_v2_x0_5, mobilenet_v2_narrow]"
    options = [f"--models={models}", f"--registry={many.registry}", f"--catalog={many.catalog}", "--logger=false"]
    options += [f"--output={many.folder / 'out'}", "--extraction.num_workers=2", "--extraction.device=cpu"]
    command = [sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "]
    command[-1] += "from headstart.__main__ import main; main(sys.argv[1:])"
    environment = {**os.environ, "HEADSTART_CACHE": str(many.folder / "cache")}
    process = subprocess.Popen(
        [*command, "cka", *options], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )

    deadline = time.monotonic() + 120
    while len(decoding := children(process.pid)) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    send(process.pid, number)
    error = process.communicate(timeout=60)[1]

    lines = [line for line in error.splitlines() if not line.startswith("embeddings of ")]
    assert lines == [f"error: {'interrupted' if number == signal.SIGINT else 'terminated'}"]
    assert process.returncode == 128 + number
    assert not any(map(is_alive, decoding))
    assert not (many.folder / "out").exists()
