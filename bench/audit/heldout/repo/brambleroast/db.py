"""Connection handling of the shop database."""
import logging
import os
import sqlite3
from contextlib import contextmanager

from brambleroast.schema import SCHEMA

log = logging.getLogger(__name__)

DB_PATH = os.environ.get("BRAMBLE_DB", "bramble.sqlite3")


@contextmanager
def connection(path=DB_PATH):
    conn = sqlite3.connect(path)
    conn.row_factory = sqlite3.Row
    try:
        yield conn
        conn.commit()
    finally:
        conn.close()


def install(conn):
    """Create whatever tables are missing and return all table names."""
    conn.executescript(SCHEMA)
    rows = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = sorted(row["name"] for row in rows)
    log.info("schema ready, %d tables", len(names))
    return names
