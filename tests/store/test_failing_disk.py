"""A message names the errors of a ledger's disk, where SQLite itself would report damage."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart.store.ledger_file import FILE
from headstart.tests.material.ledgers import store

# Reading the ledger's file fails with EIO: its pages from the offset FAIL_FROM on, FAIL_TIMES times.
FAULTY_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed = 0;

static int fails(int descriptor, off_t end) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, "traces.sqlite") || end <= atol(getenv("FAIL_FROM"))) return 0;
    if (failed >= atol(getenv("FAIL_TIMES"))) return 0;
    failed++;
    errno = EIO;
    return 1;
}

ssize_t read(int descriptor, void *buffer, size_t count) {
    ssize_t (*original)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    return fails(descriptor, lseek(descriptor, 0, SEEK_CUR) + count) ? -1 : original(descriptor, buffer, count);
}

ssize_t pread64(int descriptor, void *buffer, size_t count, off_t offset) {
    ssize_t (*original)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");
    return fails(descriptor, offset + count) ? -1 : original(descriptor, buffer, count, offset);
}

ssize_t pread(int descriptor, void *buffer, size_t count, off_t offset) {
    return pread64(descriptor, buffer, count, offset);
}
"""
USES = {
    "used": "from headstart.store.ledger import Ledger as Kind",
    "read": "from headstart.store.ledger_reader import LedgerReader as Kind",
}


@pytest.fixture(scope="module")
def faulty_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a faulty disk needs a C compiler and Linux")
    folder = tmp_path_factory.mktemp("disk")
    (folder / "disk.c").write_text(FAULTY_DISK)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "disk.so", folder / "disk.c", "-ldl"],
        check=True,
        capture_output=True,
    )
    return folder / "disk.so"


@pytest.mark.parametrize("verb", USES)
# Behind the first page, an error is reported that happens again in the check, which follows a first reading.
@pytest.mark.parametrize(
    ("first", "times"), [(0, 1), (4096, 2), (8192, 2), *((first, 1000) for first in (0, 4096, 8192))]
)
def test_an_error_of_the_disk_is_reported_as_such(
    verb: str, first: int, times: int, faulty_disk: Path, tmp_path: Path
) -> None:
    folder = store(tmp_path / "ledger", {"baseline": np.ones((4, 3), np.int64)})
    assert (folder / FILE).stat().st_size > first
    code = f"{USES[verb]}\nfrom pathlib import Path\nKind(Path({str(folder)!r})).streams()"
    faults = {"LD_PRELOAD": str(faulty_disk), "FAIL_FROM": str(first), "FAIL_TIMES": str(times)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **faults}, capture_output=True, text=True, check=False
    )
    reason = f"Input/output error in {FILE}; the disk or the network may be failing, try again"
    if times < 1000:
        # SQLite reports an error in the first page as it is.
        reason = "disk I/O error" if first == 0 else "the disk failed for a moment; try again"
    assert f"LedgerError: {str(folder)!r} cannot be {verb} ({reason})" in ended.stderr
