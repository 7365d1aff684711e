"""A copy of the graph on a Bolt server such as Neo4j. It is never read: the run store is the source of truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, LiteralString, NamedTuple, cast

from neo4j import Driver, GraphDatabase
from neo4j.exceptions import AuthError, ConfigurationError, DriverError, Neo4jError

from redstart.core.errors import ConfigError, PortError
from redstart.core.graph import ENDS, Graph, MirrorCounts, NodeKind
from redstart.core.learning import EdgeKind

AT_ONCE = 1000
"""The most rows of one statement."""
TIMEOUT_SECONDS = 10.0
"""The timeout in seconds of a connection, and of retries of a statement after a temporary failure."""

# Its other parameters have no type annotations.
_open = cast("Callable[..., Driver]", GraphDatabase.driver)  # pyright: ignore[reportUnknownMemberType]
_ADDRESS = re.compile(r"(?:bolt|neo4j)(?:\+s|\+ssc)?://[^/@\s?#]+/?")
_LABELS: dict[NodeKind, LiteralString] = {
    NodeKind.run: "Run",
    NodeKind.iteration: "Iteration",
    NodeKind.step: "Step",
    NodeKind.file: "File",
    NodeKind.signature: "Signature",
    NodeKind.bug_type: "BugType",
    NodeKind.fix_card: "FixCard",
}
_TYPES: dict[EdgeKind, LiteralString] = {
    EdgeKind.iteration: "ITERATION",
    EdgeKind.step: "STEP",
    EdgeKind.retrieved_file: "RETRIEVED_FILE",
    EdgeKind.changed_file: "CHANGED_FILE",
    EdgeKind.failure_signature: "FAILURE_SIGNATURE",
    EdgeKind.bug_type: "BUG_TYPE",
    EdgeKind.has_fix_card: "HAS_FIX_CARD",
}


class Neo4jServer(NamedTuple):
    """The server of the copy. An empty `database` means the server's default, an empty `user` no authentication."""

    url: str
    user: str = ""
    password: str = ""
    database: str = ""


class Statement(NamedTuple):
    text: LiteralString
    bound: dict[str, Any]


def mirror(graph: Graph, server: Neo4jServer) -> MirrorCounts:
    """Update the copy to match the graph. Idempotent, and safe to repeat after an interruption.

    Every key starts with the tenant: data of others is not touched. Raises `ConfigError` for an address or name that
    the server does not accept, and `PortError` if it cannot be reached.
    """
    with _open_driver(server) as driver:
        removed = 0
        for statement in generate_statements(graph):
            result = driver.execute_query(statement.text, statement.bound, database_=server.database or None)
            removed += result.summary.counters.nodes_deleted
    return MirrorCounts(len(graph.nodes), len(graph.links), removed)


def reach(server: Neo4jServer, seconds: float = TIMEOUT_SECONDS) -> None:
    """Connect once. Raises as `mirror` does."""
    with _open_driver(server, seconds):
        pass


def generate_statements(graph: Graph) -> Iterator[Statement]:
    """Generate the statements for the server, in order. Names are parameters, never part of the text."""
    for kind, label in _LABELS.items():
        yield Statement(f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.key IS UNIQUE", {})
        rows = ({"key": node.key, "name": node.name, "repo": node.repo} for node in graph.nodes if node.kind is kind)
        text: LiteralString = (
            f"UNWIND $rows AS row MERGE (n:{label} {{key: row.key}}) "
            "SET n.tenant = $tenant, n.name = row.name, n.repo = row.repo"
        )
        yield from (Statement(text, {"rows": batch, "tenant": graph.tenant}) for batch in _split_batches(rows))
    for kind, type_ in _TYPES.items():
        source_label, ends = _LABELS[ENDS[kind][0]], _LABELS[ENDS[kind][1]]
        links = (
            {
                "source": link.source,
                "target": link.target,
                "repo": link.repo,
                "created": link.moment,
            }
            for link in graph.links
            if link.kind is kind
        )
        text = (
            f"UNWIND $rows AS row MATCH (a:{source_label} {{key: row.source}}) MATCH (b:{ends} {{key: row.target}}) "
            f"MERGE (a)-[r:{type_}]->(b) SET r.repo = row.repo, r.created = row.created"
        )
        yield from (Statement(text, {"rows": batch}) for batch in _split_batches(links))
    card_keys = [node.key for node in graph.nodes if node.kind is NodeKind.fix_card]
    yield Statement(
        "MATCH (n:FixCard {tenant: $tenant}) WHERE NOT n.key IN $kept DETACH DELETE n",
        {"tenant": graph.tenant, "kept": card_keys},
    )


@contextmanager
def _open_driver(server: Neo4jServer, seconds: float = TIMEOUT_SECONDS) -> Generator[Driver]:
    if not _ADDRESS.fullmatch(server.url):
        raise ConfigError(
            "the address of the graph database is invalid, or contains a user name or a password",
            remedy="Give bolt://host:port; NEO4J_USERNAME and NEO4J_PASSWORD are read from the environment.",
        )
    auth = (server.user, server.password) if server.user else None
    try:
        with _open(server.url, auth=auth, connection_timeout=seconds, max_transaction_retry_time=seconds) as driver:
            # Without it a missing server is tried for as long as a statement may be retried.
            driver.verify_connectivity()  # pyright: ignore[reportUnknownMemberType]
            yield driver
    except (AuthError, ConfigurationError, ValueError) as error:
        raise ConfigError(
            f"the graph database does not accept the login or the settings: {_get_first_line(error)}",
            remedy="Set NEO4J_USERNAME and NEO4J_PASSWORD in the environment.",
        ) from error
    except (Neo4jError, DriverError, OSError) as error:
        raise PortError(f"the graph database does not work: {_get_first_line(error)}") from error


def _get_first_line(error: Exception) -> str:
    message = error.message if isinstance(error, Neo4jError) else str(error)
    return ((message or "").strip().splitlines() or [type(error).__name__])[0]


def _split_batches(rows: Iterable[dict[str, str]]) -> Iterator[Sequence[dict[str, str]]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, AT_ONCE)):
        yield batch
