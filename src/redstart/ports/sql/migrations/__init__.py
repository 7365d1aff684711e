"""The history of the schema. A revision that was released is never edited; a new one is added and `HEAD` moved."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from redstart.core.errors import StoreError

_one_at_a_time = threading.Lock()  # Alembic keeps the migration at hand in module globals.


def config() -> Config:
    """Alembic's configuration; it reads no file."""
    made = Config()
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    return made


def upgrade(connection: Connection) -> None:
    """Brings the database to the newest revision, inside the connection's transaction.

    Raises `StoreError` for a database that is at a revision which is not known here.
    """
    setup = config()
    setup.attributes["connection"] = connection
    try:
        with _one_at_a_time:
            command.upgrade(setup, "head")
    except CommandError as error:
        raise StoreError(
            f"the run store was written by another version of redstart ({error})",
            remedy="Upgrade redstart, or let it keep its data in another folder.",
        ) from error
