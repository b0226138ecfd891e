"""An organiser's settings of a portal, which are the options of its commands."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from jsonargparse import Namespace
from jsonargparse.typing import NonNegativeInt, PositiveInt
from sqlalchemy.engine import URL

from headstart.evaluation.embeddings import Extraction
from headstart.output.errors import UserError
from headstart.output.parser import OneLineErrorParser
from headstart.output.shipped_files import CONFIGS

CONFIG = CONFIGS / "portal" / "default.yaml"
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Settings:
    """The challenge that a portal hosts, its files and addresses, and what it shows.

    Args:
        challenge: Rules of the challenge: a YAML file, or the name of one in configs/challenge.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        datasets: Folder with one folder per data set; by default that of HACKATHON_DATASET_ROOT.
        data: Folder for the portal's own data.
        database: URL of the database, such as postgresql+psycopg://portal@localhost/portal; by default that of the
            variable DATABASE_URL, else an SQLite file in `data`.
        host: Address to listen at; 0.0.0.0 for all addresses of the machine.
        port: Port to listen at; 0 for any free port.
        url: Address that browsers use, if it differs, such as https://challenge.example.org behind a proxy.
        worker: Whether to run a worker beside the server; otherwise start one by `headstart portal worker`.
        max_submission_bytes: Largest size of a submission.
        bytes_per_day: Bytes that a team can submit per day, including refused documents and their problems.
        documents_per_minute: Documents that a team can submit or check per minute.
        scoring_minutes: Longest time of a scoring; after it, the scoring fails and its worker restarts.
        demonstration: Whether to draw missing stimuli and to add a team `demo`, to try the portal.
        extraction: How embeddings are computed.
    """

    challenge: str = "contract"
    registry: str | None = None
    catalog: str | None = None
    datasets: str | None = None
    data: str = "runs/portal"
    database: str | None = None
    host: str = "127.0.0.1"
    port: NonNegativeInt = 8000
    url: str | None = None
    worker: bool = True
    max_submission_bytes: PositiveInt = 1_000_000
    bytes_per_day: PositiveInt = 50_000_000
    documents_per_minute: PositiveInt = 60
    scoring_minutes: PositiveInt = 120
    demonstration: bool = False
    extraction: Extraction = Extraction()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Check the URL beyond its type."""
        if self.url is not None and not re.fullmatch(r"https?://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?/?", self.url):
            raise UserError(
                f"url: {self.url!r} is not a portal's address; give https:// or http:// and the host, without a path"
            )

    @property
    def database_url(self) -> str | URL:
        """URL of the database."""
        file = str((self.folder / "portal.sqlite3").absolute())
        return self.database or os.environ.get("DATABASE_URL") or URL.create("sqlite", database=file)

    @property
    def folder(self) -> Path:
        """The folder of the portal's own data."""
        return Path(self.data).expanduser()

    @property
    def behind_tls(self) -> bool:
        """Return whether browsers connect over TLS."""
        return self.url is not None and self.url.startswith("https://")

    @property
    def hosts(self) -> set[str]:
        """Hosts that requests may name: those of `url` and of this machine. Empty without `url`: any host may."""
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
            raise UserError(f"datasets: {self.datasets!r} is not a folder; give the folder that contains the data sets")
        return folder


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
    return Settings(**{name: parsed[name] for name in Settings.__dataclass_fields__})


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
