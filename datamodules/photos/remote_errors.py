"""Errors of remote file systems, as errors of the operating system in one clear line; what may pass is tried again."""

import errno
import logging
import time
from collections.abc import Callable
from typing import TypeVar

Read = TypeVar("Read")

# Seconds before each further attempt.
WAITS = (0.5, 2.0, 8.0)
# Protocols whose file systems try again themselves.
PATIENT = ("s3", "s3a", "gs", "gcs", "hf")
# Answers of a server that may be others a moment later, besides all from 500.
PASSING = (408, 425, 429)

_S3 = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or FSSPEC_S3_ANON=true for a public bucket"
_GS = "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login"
_HF = "set HF_TOKEN, or run hf auth login"
_HTTP = 'set FSSPEC_HTTP=\'{"headers": {"Authorization": "Bearer ..."}}\''
CREDENTIALS = {"s3": _S3, "s3a": _S3, "gs": _GS, "gcs": _GS, "hf": _HF, "http": _HTTP, "https": _HTTP}

# It prints every error itself, with a traceback.
logging.getLogger("gcsfs").setLevel(logging.CRITICAL)


def patiently(location: str, read: Callable[[], Read]) -> Read:
    """Read from a remote file system, and again after a while if the network or the server fails.

    Args:
        location: The URL.
        read: Reads from it.

    Returns:
        The content.

    Raises:
        OSError: It cannot be read; with an `errno`, because the picture itself is not at fault.
    """
    waits = list(() if location.partition("://")[0] in PATIENT else WAITS)
    while True:
        try:
            return read()
        except MemoryError:
            raise
        except Exception as error:
            explained = _explain(error, location)
            if not waits or not _may_pass(error):
                raise explained from error
            time.sleep(waits.pop(0))


def _explain(error: Exception, location: str) -> OSError:
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such file or folder", location)
    if _lacks_access(error):
        protocol = location.partition("://")[0]
        remedy = CREDENTIALS.get(protocol, f"see the documentation of fsspec about {protocol}")
        return PermissionError(errno.EACCES, f"access is denied; {remedy}", location)
    reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return OSError(getattr(error, "errno", None) or errno.EIO, reason, location)


def _lacks_access(error: Exception) -> bool:
    # botocore and google.auth have several errors about credentials.
    is_named = any("Credential" in kind.__name__ for kind in type(error).__mro__)
    return isinstance(error, PermissionError) or is_named or _status(error) in (401, 403)


def _may_pass(error: Exception) -> bool:
    """Whether another attempt may succeed."""
    lasting = (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError, TypeError, ImportError)
    if isinstance(error, lasting) or _lacks_access(error):
        return False
    status = _status(error)
    return status is None or status >= 500 or status in PASSING


def _status(error: Exception) -> int | None:
    """Return the status of a server's answer, which libraries keep under different names."""
    for owner in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            value = getattr(owner, name, None)
            if isinstance(value, int | str) and str(value).isdecimal():
                return int(value)
    return None
