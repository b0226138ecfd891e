"""Permissions: what the portal keeps is its owner's alone, and what was open to others is closed at the start."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headstart.output.errors import UserError
from headstart.portal.admin import main
from headstart.portal.records.database import Database
from headstart.portal.records.private_files import make_private_folder
from headstart.portal.records.tables import FactRow
from headstart.tests.material import portals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs the permissions of POSIX")
FIRST_VERSION = Path(portals.__file__).with_name("portal_format_1.sql")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Make new files open to everybody, unless they are made otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_database(file: Path) -> set[str]:
    """Use a database, and return the names of all files while it is in use."""
    database = Database(f"sqlite:///{file}")
    database.create_tables()
    with database.writing() as session:
        session.merge(FactRow(name="used", value=""))
        session.flush()
        names = {path.name for path in file.parent.iterdir()}
        assert {mode(path) for path in file.parent.iterdir()} == {0o600}
    database.close()
    return names


def test_a_new_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert open_database(tmp_path / "p.sqlite3") == {"p.sqlite3", "p.sqlite3-wal", "p.sqlite3-shm"}


def test_files_that_others_could_read_are_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "p.sqlite3"
    open_database(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE more (id)")
        for path in tmp_path.iterdir():
            path.chmod(0o666)
        open_database(file)


def test_copies_of_the_database_are_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(FIRST_VERSION.read_text())
    # Among the files is the copy from before the migration.
    assert len([name for name in open_database(file) if "before" in name]) == 1
    database = Database(f"sqlite:///{file}")
    assert mode(database.back_up(tmp_path / "copy")) == 0o600


def test_the_folder_of_the_data_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    make_private_folder(folder)
    assert mode(folder) == 0o700
    folder.chmod(0o755)
    main([f"--data={folder}", "freeze"])
    assert mode(folder) == 0o700
    assert mode(folder / "portal.sqlite3") == 0o600


def test_what_belongs_to_another_user_is_refused_where_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    folder, file = tmp_path / "data", tmp_path / "p.sqlite3"
    folder.mkdir(0o750)
    file.touch(0o640)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(UserError, match=r"^data: .* belongs to another user, who can run `chmod go= .*`"):
        make_private_folder(folder)
    with pytest.raises(UserError, match=r"^database: .* belongs to another user"):
        Database(f"sqlite:///{file}").create_tables()
