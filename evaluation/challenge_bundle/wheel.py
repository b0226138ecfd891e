"""Pack the running suite as a wheel, and describe a container with its requirements. Neither needs a network."""

import hashlib
import io
from base64 import urlsafe_b64encode
from contextlib import suppress
from importlib import metadata

from packaging.requirements import Requirement

import headstart
from headstart.evaluation.challenge_bundle.material import fill, write_zip
from headstart.output.errors import UserError
from headstart.output.import_paths import ROOT, SUITE_NAMES

WHEEL = f"headstart-{headstart.__version__}-py3-none-any.whl"
# Files and folders of a checkout that are installed, without suffixes.
INSTALLED = (SUITE_NAMES - {"benchmarks", "tests"}) | {"configs", "py"}
TAGS = b"Wheel-Version: 1.0\nGenerator: headstart\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def pack_wheel() -> bytes:
    """Return a wheel of the running suite, which may be a checkout.

    Raises:
        UserError: The suite is not installed, so its requirements are unknown.
    """
    tops = [path for path in ROOT.iterdir() if path.name.partition(".")[0] in INSTALLED]
    paths = [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    code = [path.relative_to(ROOT) for path in paths if "__pycache__" not in path.parts]
    # A checkout may have hidden files of the user, such as passwords in portal/.env.
    visible = [path for path in code if not any(part.startswith(".") for part in path.parts)]
    files = {f"headstart/{path.as_posix()}": (ROOT / path).read_bytes() for path in visible}

    dist_info = f"headstart-{headstart.__version__}.dist-info"
    for name in ("METADATA", "entry_points.txt", "licenses/LICENSE"):
        files[f"{dist_info}/{name}"] = (_installed().read_text(name) or "").encode()
    files[f"{dist_info}/WHEEL"] = TAGS
    record = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in sorted(files.items())]
    files[f"{dist_info}/RECORD"] = "".join([*record, f"{dist_info}/RECORD,,\n"]).encode()
    with io.BytesIO() as file:
        write_zip(file, files)
        return file.getvalue()


def describe_container(wheel: str) -> bytes:
    """Return a Containerfile that installs a wheel of the suite and the installed versions of its requirements.

    Args:
        wheel: File name of the wheel.

    Raises:
        UserError: As for `pack_wheel`.
    """
    pins = []
    for requirement in scoring_requirements():
        with suppress(metadata.PackageNotFoundError):
            # Local versions such as 2.13.0+cpu are on a single package index.
            pins.append(f"{requirement.name}=={metadata.version(requirement.name).partition('+')[0]}")
    return fill("Containerfile", {"wheel": wheel, "pins": " ".join(sorted(pins))})


def scoring_requirements() -> list[Requirement]:
    """Return the requirements for scoring submissions, from the metadata of the installed suite.

    Raises:
        UserError: As for `pack_wheel`.
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
