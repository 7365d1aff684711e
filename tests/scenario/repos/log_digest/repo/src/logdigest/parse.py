"""Lines such as `GET /orders 200 35ms`."""

from typing import NamedTuple


class Record(NamedTuple):
    method: str
    path: str
    status: int
    millis: int


def parse_line(line: str) -> Record:
    """One line as a record; a path keeps no query and no trailing slash, but the root stays `/`."""
    method, target, status, took = line.split()
    path = target.partition("?")[0].rstrip("/")
    return Record(method, path, int(status), int(took.removesuffix("ms")))
