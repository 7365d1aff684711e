"""The bare engines: the same bytes made durable step by step, with nothing of ours around it."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypedDict

import psycopg
from langgraph.graph import END, START, StateGraph
from langsmith import tracing_context

from _environments import run_pip
from noop.canned import Written

TABLE = "CREATE TABLE IF NOT EXISTS bare (run text, version int, state text, again text, artifact text, said text"
TABLE += ", PRIMARY KEY (run, version))"
"""A commit of ours writes the state twice: as the run's own, and as that after the step."""
Insert = Callable[[str, int, Written], None]


def open_sqlite(path: Path) -> tuple[Insert, Callable[[], None]]:
    """One row, one transaction, one fsync; and how to close it."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL").close()
    connection.execute("PRAGMA synchronous = FULL").close()
    connection.execute(TABLE).close()

    def insert(run: str, version: int, row: Written) -> None:
        connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", (run, version, row.state, *row)).close()

    return insert, connection.close


def open_postgres(url: str) -> tuple[Insert, Callable[[], None]]:
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(TABLE.encode())

    def insert(run: str, version: int, row: Written) -> None:
        connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s)", (run, version, row.state, *row))

    return insert, connection.close


class At(TypedDict):
    at: int
    run: str


def create_bare_graph(trail: tuple[Written, ...], insert: Insert) -> Callable[[str], Coroutine[Any, Any, int]]:
    """A graph of eleven nodes in a ring, compiled once as ours is; runs as many steps as the trail has."""
    graph = StateGraph(At)
    names = [f"step{number}" for number in range(11)]

    async def run_node(flow: At) -> At:
        insert(flow["run"], flow["at"], trail[flow["at"]])
        return At(at=flow["at"] + 1, run=flow["run"])

    async def choose_node(flow: At) -> str:
        return names[flow["at"] % len(names)] if flow["at"] < len(trail) else END

    for name in names:
        graph.add_node(name, run_node)
        graph.add_conditional_edges(name, choose_node, [*names, END])
    graph.add_conditional_edges(START, choose_node, [*names, END])
    compiled = graph.compile()

    async def invoke(run: str) -> int:
        with tracing_context(enabled=False):
            result = await compiled.ainvoke(At(at=0, run=run), {"recursion_limit": 10_000})
        return result["at"]

    return invoke


class Carried(TypedDict):
    at: int
    run: dict[str, Any]


def run_saved_graph(trail: tuple[Written, ...], saver: Any, run: str) -> int:
    """The same ring with LangGraph's own checkpointer instead of an INSERT: the state is what each node changes."""
    graph = StateGraph(Carried)
    names = [f"step{number}" for number in range(11)]
    states = [json.loads(item.state) for item in trail]

    def run_node(flow: Carried) -> Carried:
        return Carried(at=flow["at"] + 1, run=states[flow["at"]])

    def choose_node(flow: Carried) -> str:
        return names[flow["at"] % len(names)] if flow["at"] < len(trail) else END

    for name in names:
        graph.add_node(name, run_node)
        graph.add_conditional_edges(name, choose_node, [*names, END])
    graph.add_conditional_edges(START, choose_node, [*names, END])
    config = {"recursion_limit": 10_000, "configurable": {"thread_id": run}}
    with tracing_context(enabled=False):
        result = graph.compile(checkpointer=saver).invoke(Carried(at=0, run={}), config, durability="sync")
    return result["at"]


def install_saver(folder: Path) -> Callable[[Path], Any]:
    """Opens LangGraph's SQLite saver, which is installed into `folder` for it."""
    packages = ("langgraph-checkpoint-sqlite==3.1.2", "aiosqlite", "sqlite-vec")
    run_pip("install", "--quiet", "--no-deps", "--target", folder, *packages)
    sys.path.append(str(folder))
    import langgraph.checkpoint

    langgraph.checkpoint.__path__.append(str(folder / "langgraph" / "checkpoint"))
    from langgraph.checkpoint.sqlite import SqliteSaver

    return lambda path: SqliteSaver(sqlite3.connect(path, check_same_thread=False))
