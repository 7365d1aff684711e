"""Mirroring the graph with the official driver to a real server that speaks Bolt and Cypher: ArcadeDB."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from neo4j import GraphDatabase
from sqlalchemy import update

from redstart.app.graph_export import GraphFormat, render_graph
from redstart.app.wire import mirror_to
from redstart.core.errors import ConfigError, PortError
from redstart.core.graph import ENDS, Graph, KeptEdge, MirrorCounts, build_graph
from redstart.core.learning import EdgeKind, NewMemories
from redstart.core.run import Step
from redstart.ports.memory import neo4j as adapter
from redstart.ports.memory.neo4j import Neo4jServer, generate_statements, mirror
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import runs
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, make_card
from support.bolt import serve_bolt
from support.user import User

pytestmark = pytest.mark.slow

Ask = Callable[..., list[dict[str, Any]]]
HOSTILE = [
    "app.py",
    "it's.py",
    "C:\\users\\u0027) DETACH DELETE n //",
    "'; MATCH (n) DETACH DELETE n; //",
    "two\nlines\r\n\tand a tab",
    "\\",
    "\\\x01\x7f",
    "`back` $rows",
    "Ω „x“ \U0001f426",
]


def build_sample_graph(tenant: str = "home", *, card: bool = True) -> Graph:
    edges = [KeptEdge(EdgeKind.iteration, "run-1", "run-1/1", "shop", 1.0)]
    edges += [KeptEdge(EdgeKind.changed_file, "run-1/1", item, "sh/op", 1.0) for item in HOSTILE]
    edges += [KeptEdge(kind, "run-1/1", "x", "shop", 2.0) for kind in ENDS if kind is not EdgeKind.iteration]
    return build_graph(tenant, [tie for tie in edges if card or tie.kind is not EdgeKind.has_fix_card])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    with serve_bolt(tmp_path_factory.mktemp("bolt")) as running:
        yield Neo4jServer(*running)


@pytest.fixture
def ask(server: Neo4jServer) -> Iterator[Ask]:
    """Query the server, after removing the data of other tests."""
    with GraphDatabase.driver(server.url, auth=(server.user, server.password)) as driver:

        def run_query(text: Any, **bound: object) -> list[dict[str, Any]]:
            result = driver.execute_query(text, bound, database_=server.database)
            return [record.data() for record in result.records]

        run_query("MATCH (n) DETACH DELETE n")
        yield run_query


def dump_graph(ask: Ask) -> tuple[list[str], list[str]]:
    nodes = ask("MATCH (n) RETURN labels(n) AS label, n.key AS key, n.tenant AS of, n.name AS name, n.repo AS repo")
    links = ask(
        "MATCH (a)-[r]->(b) RETURN a.key AS source, type(r) AS type, b.key AS target, r.repo AS repo, r.created AS at"
    )
    return sorted(map(repr, nodes)), sorted(map(repr, links))


@pytest.mark.soak
def test_mirroring_twice_changes_nothing(server: Neo4jServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "AT_ONCE", 4)
    expected_graph = build_sample_graph()
    assert mirror(expected_graph, server) == MirrorCounts(len(expected_graph.nodes), len(expected_graph.links), 0)
    first_dump = dump_graph(ask)
    assert (len(first_dump[0]), len(first_dump[1])) == (len(expected_graph.nodes), len(expected_graph.links))
    rows = ask("MATCH (:Iteration)-[:CHANGED_FILE]->(f:File) RETURN f.name AS name")
    assert {item["name"] for item in rows} == {*HOSTILE, "x"}
    mirror(expected_graph, server)
    assert dump_graph(ask) == first_dump


def test_forgotten_card_is_removed_for_its_own_tenant_only(server: Neo4jServer, ask: Ask) -> None:
    mirror(build_sample_graph("other"), server)
    other_dump = dump_graph(ask)
    mirror(build_sample_graph(), server)
    assert mirror(build_sample_graph(card=False), server).removed == 1
    remaining = ask("MATCH (n:FixCard) RETURN n.tenant AS of")
    assert remaining == [{"of": "other"}]
    ask("MATCH (n) WHERE n.tenant = 'home' DETACH DELETE n")
    assert dump_graph(ask) == other_dump


def test_exported_script_builds_the_same_graph(server: Neo4jServer, ask: Ask) -> None:
    mirror(build_sample_graph(), server)
    copied = dump_graph(ask)
    ask("MATCH (n) DETACH DELETE n")
    for _ in range(2):
        for line in render_graph(build_sample_graph(), GraphFormat.cypher):
            ask(line.removesuffix(";"))
        assert dump_graph(ask) == copied


def test_command_mirrors_finished_runs(server: Neo4jServer, ask: Ask, tmp_path: Path) -> None:
    user = User(tmp_path, tmp_path)
    with Database.open(user.home / "redstart.db") as database:
        store = SqlStore(database, Clock())
        new, fence = asyncio.run(begin(store))
        asyncio.run(store.commit(commit(new, Step.remember, remembered=NewMemories(card=make_card("it's"))), fence))
    refused = user.redstart("memory", "mirror", server.url, "--database", server.database)
    assert refused.code == 2
    assert "NEO4J_PASSWORD" in refused.err
    user.environ |= {"NEO4J_USERNAME": server.user, "NEO4J_PASSWORD": server.password}
    result = user.redstart("memory", "mirror", server.url, "--database", server.database)
    assert (result.code, result.err) == (0, "")
    assert result.out == "the copy has 4 nodes and 3 edges\n"
    (row,) = ask("MATCH (r:Run)-[:ITERATION]->(:Iteration)-[:HAS_FIX_CARD]->(c:FixCard) RETURN r.name, c.name")
    assert set(row.values()) == {new.run_id, "it's"}
    with Database.open(user.home / "redstart.db") as database, database.connect_for_statement() as connection:
        connection.execute(update(runs).values(status="ended"))
    assert user.redstart("memory", "forget", "it's").code == 0
    second_result = user.redstart("memory", "mirror", server.url, "--database", server.database)
    assert second_result.out == "the copy has 3 nodes and 2 edges; removed 1 forgotten card\n"


def test_wrong_password_and_wrong_database_raise_different_errors(server: Neo4jServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not accept"):
        mirror(build_sample_graph(), server._replace(password="wrong"))
    with pytest.raises(PortError, match="does not work"):
        mirror(build_sample_graph(), server._replace(database="nobody"))


@pytest.mark.parametrize("url", ["http://localhost:7474", "bolt://ada:secret@localhost", "localhost:7687", "bolt://"])
def test_address_error_hides_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mirror_to(build_sample_graph(), url, "", {})
    assert "secret" not in f"{caught.value} {caught.value.remedy}"


def test_unreachable_server_is_an_outage(unused_port: int) -> None:
    with pytest.raises(PortError):
        mirror_to(
            build_sample_graph(), f"bolt://127.0.0.1:{unused_port}", "", {"NEO4J_USERNAME": "a", "NEO4J_PASSWORD": "b"}
        )


@pytest.fixture
def unused_port() -> Iterator[int]:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def test_names_are_parameters_and_never_part_of_a_statement() -> None:
    texts = " ".join(statement.text for statement in generate_statements(build_sample_graph()))
    assert "run-1" not in texts
    assert not any(name in texts for name in HOSTILE if len(name) > 1)
