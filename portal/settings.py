"""An organiser's settings of a portal, which are the options of its commands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeInt, PositiveInt

from headstart.contract.submissions import DEFAULT_MAX_BYTES
from headstart.evaluation.embeddings import Extraction
from headstart.output.errors import UserError, reason_of
from headstart.output.parser import OneLineErrorParser
from headstart.output.shipped_files import CONFIGS

CONFIG = CONFIGS / "portal" / "default.yaml"
MAX_PORT = 65_535
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class PhaseSettings:
    """The documents of one phase of a challenge; what is left out is that of the settings.

    Args:
        challenge: Rules of the phase: a YAML file, or the name of one in configs/challenge.
        registry: Model registry.
        catalog: Stimuli catalog.
        held_out_registry: Models that are not published, for the held-out score of the Red Team.
        held_out_catalog: Stimuli that are not published, for the held-out score of the Blue Team.
    """

    challenge: str
    registry: str | None = None
    catalog: str | None = None
    held_out_registry: str | None = None
    held_out_catalog: str | None = None


@dataclass(frozen=True)
class Oidc:
    """An organisation's sign-in by OpenID Connect, at which the portal is registered as a client.

    Args:
        issuer: Its address, as its own configuration names it.
        client_id: The portal's name there. The address of answers is `/sign-in/answer`.
        client_secret_file: File with the secret that it shares with the portal.
    """

    issuer: str
    client_id: str
    client_secret_file: str


@dataclass(frozen=True)
class Settings:
    """The challenge that a portal hosts, the files and addresses that it uses, and what it shows.

    Args:
        challenge: Challenge that is hosted: a YAML file, or the name of one in configs/challenge.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        held_out_registry: Models that are not published, for the held-out score of the Red Team; none by default.
        held_out_catalog: Stimuli that are not published, for the held-out score of the Blue Team; none by default.
        phases: Phases of the challenge, the first one first, each with rules of its own; by default `challenge` is the
            only one. Submissions belong to the first phase that is not over; all but the last need a deadline.
        datasets: Folder of the data sets by their names; by default that of HACKATHON_DATASET_ROOT.
        data: Folder of the portal's own data.
        database: URL of the database, such as postgresql+psycopg://portal@localhost/portal; by default an SQLite file
            in `data`.
        host: Address that is listened at; 0.0.0.0 for all of the machine's.
        port: Port that is listened at; 0 for any that is free.
        url: Address that browsers use where it is another one, such as https://challenge.example.org behind a proxy.
        worker: Whether the process that scores runs beside the server; else it is started by `headstart portal worker`.
        show_submissions: Whether everybody may see the page of a scored submission, or its team alone.
        show_matrix: Whether the page of a submission shows the similarity of all pairs of models.
        max_submission_bytes: Larger submissions are refused.
        bytes_per_day: Bytes that a team may submit on one day in all, refused documents and their problems among them.
        submissions_per_minute: Submissions that a team may send per minute; further ones have to wait.
        validations_per_minute: Documents that are validated per minute without being submitted, for each team, and for
            each address where nobody is logged in.
        scoring_minutes: A scoring that takes longer fails, and its process is started again.
        demonstration: Whether to draw missing stimuli and to add a team `demo`, so that all can be tried.
        oidc: Sign-in by an organisation's OpenID Connect, beside tokens; none by default.
        extraction: How embeddings are computed.
    """

    challenge: str = "contract"
    registry: str | None = None
    catalog: str | None = None
    held_out_registry: str | None = None
    held_out_catalog: str | None = None
    phases: list[PhaseSettings] = field(default_factory=list)
    datasets: str | None = None
    data: str = "runs/portal"
    database: str | None = None
    host: str = "127.0.0.1"
    port: NonNegativeInt = 8000
    url: str | None = None
    worker: bool = True
    show_submissions: bool = False
    show_matrix: bool = True
    max_submission_bytes: PositiveInt = DEFAULT_MAX_BYTES
    bytes_per_day: PositiveInt = 50_000_000
    submissions_per_minute: PositiveInt = 10
    validations_per_minute: PositiveInt = 120
    scoring_minutes: PositiveInt = 120
    demonstration: bool = False
    oidc: Oidc | None = None
    extraction: Extraction = Extraction()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Check the port and the URL, beyond their types."""
        if self.port > MAX_PORT:
            raise UserError(f"port: {self.port} is no port; give one up to {MAX_PORT}, or 0 for any that is free")
        if self.url is not None and not _is_root(self.url):
            raise UserError(
                f"url: {self.url!r} is no address of a portal; give https:// or http:// and the host, without a path"
            )

    @property
    def database_url(self) -> str:
        """URL of the database."""
        return self.database or f"sqlite:///{(self.folder / 'portal.sqlite3').absolute()}"

    @property
    def folder(self) -> Path:
        """The folder of the portal's own data."""
        return Path(self.data).expanduser()

    @property
    def address(self) -> str:
        """Address for links, without a slash at its end."""
        return (self.url or f"http://{self.host}:{self.port}").rstrip("/")

    @property
    def behind_tls(self) -> bool:
        """Whether browsers connect over TLS."""
        return self.url is not None and self.url.startswith("https://")

    @property
    def hosts(self) -> set[str]:
        """Hosts that requests may name: those of `url` and of this machine; empty where there is no `url`: any may."""
        return set() if self.url is None else {str(urlsplit(self.url).hostname), self.host, *THIS_MACHINE}

    def find_datasets(self) -> Path | None:
        """Return the folder of the data sets; None where the environment names it.

        Raises:
            UserError: There is no such folder: each submission would fail.
        """
        if self.datasets is None:
            return None
        folder = Path(self.datasets).expanduser().absolute()
        if not folder.is_dir():
            raise UserError(f"datasets: {self.datasets!r} is no folder; name the one that data sets are in")
        return folder


def read_file(option: str, file: str) -> str:
    """Read the text of a file; a UserError with the option that names it where that is impossible."""
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{option}: {file!r} cannot be read ({reason_of(error)}); name another file") from error


def settings_parser(description: str) -> OneLineErrorParser:
    """Return a parser whose options are settings, over those of `--config`, over configs/portal/default.yaml.

    Args:
        description: Purpose of the command.
    """
    parser = OneLineErrorParser(description=description, default_config_files=[str(CONFIG)])
    parser.add_argument("--config", action="config", help="File of settings, in YAML.")
    parser.add_class_arguments(Settings)
    return parser


def make_settings(parsed: Namespace) -> Settings:
    """Build settings from parsed options, and check them."""
    options: dict[str, Any] = {name: parsed[name] for name in Settings.__dataclass_fields__}
    return Settings(**options)


def parse_settings(description: str, args: Sequence[str] | None = None) -> Settings:
    """Read settings from the command line.

    Args:
        description: Purpose of the command.
        args: Options; those of the process by default.

    Raises:
        UserError: A setting is wrong.
    """
    parser = settings_parser(description)
    return make_settings(parser.instantiate(parser.parse_args(args)))


def _is_root(url: str) -> bool:
    """Whether it is the address of a host, without a path."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return known and parts.path in {"", "/"} and not (parts.query or parts.fragment or parts.username)
