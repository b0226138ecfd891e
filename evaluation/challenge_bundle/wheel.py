"""The suite that runs, as a wheel, and the container that has what it needs; neither takes a checkout or a network."""

import hashlib
import io
from base64 import urlsafe_b64encode
from contextlib import suppress
from importlib import metadata

from packaging.requirements import Requirement

import headstart
from headstart.evaluation.challenge_bundle.material import fill, write_zip
from headstart.output.errors import UserError
from headstart.output.import_paths import NAMES, ROOT

WHEEL = f"headstart-{headstart.__version__}-py3-none-any.whl"
# What of a checkout is installed, without the endings.
INSTALLED = (NAMES - {"benchmarks", "tests"}) | {"configs", "py"}
TAGS = b"Wheel-Version: 1.0\nGenerator: headstart\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def pack_wheel() -> bytes:
    """Return a wheel of the suite that runs, whether it is installed or a checkout.

    Raises:
        UserError: The suite was not installed, so that nothing says what it requires.
    """
    tops = [path for path in ROOT.iterdir() if path.name.partition(".")[0] in INSTALLED]
    paths = [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    code = [path.relative_to(ROOT) for path in paths if "__pycache__" not in path.parts]
    # A checkout may have hidden files of the user's own, such as passwords in portal/.env.
    shown = [path for path in code if not any(part.startswith(".") for part in path.parts)]
    files = {f"headstart/{path.as_posix()}": (ROOT / path).read_bytes() for path in shown}

    about = f"headstart-{headstart.__version__}.dist-info"
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        files[f"{about}/{name}"] = (_installed().read_text(name) or "").encode()
    files[f"{about}/WHEEL"] = TAGS
    record = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in sorted(files.items())]
    files[f"{about}/RECORD"] = "".join([*record, f"{about}/RECORD,,\n"]).encode()
    with io.BytesIO() as file:
        write_zip(file, files)
        return file.getvalue()


def describe_container(wheel: str) -> bytes:
    """Return a Containerfile for a wheel of the suite and what it requires, in the versions that are installed here.

    Args:
        wheel: File name of the wheel.

    Raises:
        UserError: As of `pack_wheel`.
    """
    pins = []
    for requirement in scoring_requirements():
        with suppress(metadata.PackageNotFoundError):
            # Versions such as 2.13.0+cpu are of one index alone.
            pins.append(f"{requirement.name}=={metadata.version(requirement.name).partition('+')[0]}")
    return fill("Containerfile", {"wheel": wheel, "pins": " ".join(sorted(pins))})


def scoring_requirements() -> list[Requirement]:
    """Return what the suite requires to score submissions, as declared when it was installed.

    Raises:
        UserError: As of `pack_wheel`.
    """
    declared = map(Requirement, _installed().requires or ())
    return [entry for entry in declared if entry.marker is None or entry.marker.evaluate({"extra": "open_clip"})]


def _installed() -> metadata.Distribution:
    try:
        return metadata.distribution("headstart")
    except metadata.PackageNotFoundError as error:
        raise UserError("the suite is not installed here; install it with pip") from error


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
