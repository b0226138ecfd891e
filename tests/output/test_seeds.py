"""Seeds are integers of a range, in every process."""

import pickle
import subprocess
import sys

from headstart.output.seeds import Seed
from headstart.tests.material.root import ROOT


def test_a_new_process_reads_a_pickled_seed() -> None:
    code = f"import pickle; print(pickle.loads({pickle.dumps(Seed(3))!r}) + 1)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4\n", "")
