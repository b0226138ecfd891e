"""A callback by which runs of a sweep break down, once for each fault that lies in the folder `plan`."""

import errno
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback


class Faults(Callback):
    """Claims a fault at its batch, in whichever run comes first."""

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        for path in sorted(Path("plan").glob(f"{batch_idx}.*")):
            try:
                path.rename(path.with_name(f"claimed.{path.name}"))
            except FileNotFoundError:
                # Another run was faster.
                continue
            getattr(self, path.suffix[1:])()

    def hang(self) -> None:
        time.sleep(3600)

    def suspend(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def crash(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fill_disk(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def leak(self) -> None:
        """Use all memory that there is, which the process keeps."""
        used = int((Path("/proc") / str(os.getpid()) / "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, resource.getrlimit(resource.RLIMIT_AS)[1]))
        self.kept = []
        while True:
            self.kept.append(bytearray(2**20))
