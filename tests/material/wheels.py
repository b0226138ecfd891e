"""Wheels for a local index: an empty package, and uv as it is installed here."""

import base64
import hashlib
import importlib.metadata
import stat
import zipfile
from pathlib import Path


def write_wheel(folder: Path, name: str, version: str, files: dict[str, bytes], tag: str = "py3-none-any") -> None:
    """Write a wheel.

    Args:
        folder: Where.
        name: Name of the package.
        version: Its version.
        files: Contents by paths in the wheel.
        tag: For which Python and platform it is.
    """
    information = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{information}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    record = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*record, f"{information}/RECORD,,", ""]).encode()

    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (stat.S_IFREG | 0o755) << 16
            wheel.writestr(entry, content)


def write_uv_wheel(folder: Path) -> None:
    """Write the wheel of the installed uv.

    Raises:
        PackageNotFoundError: uv is not installed.
    """
    distribution = importlib.metadata.distribution("uv")
    paths = distribution.files or []
    modules = {str(path): path.read_binary() for path in paths if path.parts[0] == "uv" and path.suffix == ".py"}
    (program,) = (path for path in paths if path.name == "uv")
    script = f"uv-{distribution.version}.data/scripts/uv"
    write_wheel(folder, "uv", distribution.version, {**modules, script: program.read_binary()})


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
