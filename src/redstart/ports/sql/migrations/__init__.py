"""The history of the schema. Never edit a released revision: add a new one and update `HEAD`."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from redstart.core.errors import StoreError

_one_at_a_time = threading.Lock()  # Alembic keeps the current migration in module globals.


def create_config() -> Config:
    """Create Alembic's configuration without reading a file."""
    made = Config()
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    return made


def upgrade(connection: Connection) -> None:
    """Migrate the database to the newest revision, inside the connection's transaction.

    Raises `StoreError` if the database is at a revision that this version does not know.
    """
    setup = create_config()
    setup.attributes["connection"] = connection
    try:
        with _one_at_a_time:
            command.upgrade(setup, "head")
    except CommandError as error:
        raise StoreError(
            f"the run store was written by another version of redstart ({error})",
            remedy="Upgrade redstart, or use another directory for its data.",
        ) from error
