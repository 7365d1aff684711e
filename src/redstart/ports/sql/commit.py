"""A step's commit: in SQLite a transaction, in Postgres one statement, which is a transaction and one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Insert,
    Integer,
    Select,
    String,
    Table,
    Text,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from redstart.core.edges import edges_of
from redstart.core.errors import Fenced
from redstart.core.learning import CardState, FailureRecord, FixCard
from redstart.core.pattern import Pattern
from redstart.core.run import Result, RunState, Status
from redstart.ports.sql.engine import Database, Driver
from redstart.ports.sql.schema import cards, edges, edits, events, failures, patterns, runs, steps
from redstart.ports.store.port import Commit, Control

Row = dict[str, Any]
Found = Sequence[Sequence[Any]]
"""What the run's row says after it; nothing where it did not stand as it had to."""


class Rows(NamedTuple):
    """A commit as rows. What is learned is None, or has no rows, where the step taught nothing of that kind."""

    held: Row
    """The run as it has to stand for the commit to be written."""
    progress: Row
    step: Row
    events: list[Row]
    card: Row | None
    failure: Row | None
    pattern: Row | None
    edits: list[Row]
    edges: list[Row]
    refused: Row | None
    """Whose cards and patterns go into quarantine, where the run ends here and is not verified."""


def progress(state: RunState, now: float) -> Row:
    """The columns of a run that change from step to step."""
    return {
        "status": state.status.value,
        "result": "" if state.result is None else state.result.value,
        "version": state.version,
        "state": state.model_dump_json(),
        "updated": now,
    }


def rows_of(commit: Commit, tenant: str, fence: int, now: float) -> Rows:
    before, new = commit.before, progress(commit.after, now)
    of_run = {"tenant": tenant, "run_id": before.run_id}
    learned = commit.remembered
    return Rows(
        held={"held_tenant": tenant, "held_id": before.run_id, "held_fence": fence, "held_version": before.version},
        progress=new,
        step={
            **of_run,
            "version": commit.after.version,
            "attempt": before.now.number,
            "step": commit.step.value,
            "artifact": commit.artifact,
            "state": new["state"],
        },
        events=[{**of_run, "seq": event.seq, "body": event.model_dump_json()} for event in commit.events],
        card=_learned(learned.card, tenant, before, now) if learned else None,
        failure=_learned(learned.failure, tenant, before, now) if learned else None,
        pattern=_pattern(learned.pattern, tenant, before, now) if learned else None,
        edits=_edits(commit, tenant),
        edges=_edges(commit, tenant, now),
        refused=_refused(commit.after, tenant),
    )


def _edges(commit: Commit, tenant: str, now: float) -> list[Row]:
    if commit.remembered is None:
        return []
    run = commit.before
    of_all = {
        "tenant": tenant,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "repo": run.spec.repo,
        "created": now,
    }
    return [
        {**of_all, "kind": one.kind.value, "source": one.source, "target": one.target}
        for one in edges_of(run, commit.remembered)
    ]


def _refused(run: RunState, tenant: str) -> Row | None:
    """Only verified runs leave cards that may be shown: what was green on the way is not enough."""
    if run.status is not Status.ended or run.result is Result.verified:
        return None
    return {"of_tenant": tenant, "of_run": run.run_id}


def _learned(learned: FixCard | FailureRecord | None, tenant: str, run: RunState, now: float) -> Row | None:
    if learned is None:
        return None
    of_card = {"state": learned.state.value, "embedded": ""} if isinstance(learned, FixCard) else {}
    return {
        **of_card,
        "id": learned.id,
        "tenant": tenant,
        "repo": run.spec.repo,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "key": learned.error_signature,
        "family": learned.family,
        "body": learned.model_dump_json(),
        "created": now,
    }


def _pattern(left: Pattern | None, tenant: str, run: RunState, now: float) -> Row | None:
    if left is None:
        return None
    state = CardState.shown if left.outcome == Result.verified else CardState.quarantined
    return {
        "id": left.id,
        "tenant": tenant,
        "repo": run.spec.repo,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "key": left.key,
        "family": left.mode,
        "body": left.model_dump_json(),
        "created": now,
        "state": state.value,
        "embedded": "",
    }


def _edits(commit: Commit, tenant: str) -> list[Row]:
    """What became of an answer's edits. Of a model that nobody can name nothing is learned."""
    if not commit.model:
        return []
    run = commit.before
    of_all = {"tenant": tenant, "run_id": run.run_id, "attempt": run.now.number, "model": commit.model}
    return [
        {**of_all, "number": number, "kind": one.kind.value, "rung": "" if one.rung is None else one.rung.value}
        for number, one in enumerate(commit.edits, 1)
    ]


def write(database: Database, rows: Rows) -> Control:
    """Writes all of it and returns what people ask for. Raises `Fenced`, with nothing written; see `Store.commit`."""
    put = _at_once if database.is_postgres else _one_by_one
    with database.driven() as driver:
        found = put(driver, rows)
        if not found:
            raise Fenced
    return Control(found[0][0])


_HELD = (
    runs.c.tenant == bindparam("held_tenant"),
    runs.c.id == bindparam("held_id"),
    runs.c.fence == bindparam("held_fence"),
    runs.c.version == bindparam("held_version"),
)
_CHANGES = ("status", "result", "version", "state", "updated")
_ADVANCE = (
    update(runs).where(*_HELD).values({name: bindparam(f"new_{name}") for name in _CHANGES}).returning(runs.c.control)
)
_OF_ATTEMPT = ("tenant", "run_id", "attempt")
_QUARANTINED: ColumnElement[str] = literal_column(f"'{CardState.quarantined.value}'")
_QUARANTINES = {
    table.name: update(table)
    .where(
        table.c.tenant == bindparam("of_tenant"),
        table.c.run_id == bindparam("of_run"),
        table.c.state != _QUARANTINED,
    )
    .values(state=_QUARANTINED)
    for table in (cards, patterns)
}


def _sqlite(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=SQLiteDialect(paramstyle="named")))


# Made once, when the first commit asks for it: most commands make none.
@cache
def _sqlite_advance() -> str:
    return _sqlite(_ADVANCE)


@cache
def _sqlite_quarantines() -> tuple[str, ...]:
    return tuple(_sqlite(one) for one in _QUARANTINES.values())


@cache
def _sqlite_add(table: Table) -> str:
    return _sqlite(insert(table))


@cache
def _sqlite_kept(table: Table) -> str:
    """Whether the attempt left something in that table before."""
    return _sqlite(select(table.c.run_id).where(*(table.c[name] == bindparam(name) for name in _OF_ATTEMPT)))


def _one_by_one(driver: Driver, rows: Rows) -> Found:
    found = driver.execute(_sqlite_advance(), {**_prefixed("new_", rows.progress), **rows.held}).fetchall()
    if not found:
        return found
    driver.execute(_sqlite_add(steps), rows.step)
    for event in rows.events:
        driver.execute(_sqlite_add(events), event)
    learned = (
        (cards, [rows.card]),
        (failures, [rows.failure]),
        (patterns, [rows.pattern]),
        (edits, rows.edits),
        (edges, rows.edges),
    )
    for table, added in learned:
        new = [row for row in added if row is not None]
        # What was left there stays as it is.
        if new and not driver.execute(_sqlite_kept(table), new[0]).fetchall():
            for row in new:
                driver.execute(_sqlite_add(table), row)
    if rows.refused is not None:
        for quarantine in _sqlite_quarantines():
            driver.execute(quarantine, rows.refused)
    return found


# In Postgres: the same as one statement. Every part of it sees the tables as they were before, and writes only where
# the first part found the run as it has to stand. What comes in several rows comes as an array a column, so that the
# statement is the same text however many they are, and the server plans it once.
_advanced = _ADVANCE.cte("advanced")
_SENT_ONCE = {"step_state": "new_state", "step_version": "new_version"}
"""What two tables get is bound under one name: a state may be large."""


def _bound(prefix: str, column: Column[Any]) -> BindParameter[Any]:
    name = prefix + column.name
    return bindparam(_SENT_ONCE.get(name, name), type_=column.type)


def _added(table: Table, prefix: str) -> Select[Any]:
    """A row whose values are bound by the names of its columns after `prefix`, if the run was advanced."""
    return select(*(_bound(prefix, column) for column in table.c)).select_from(_advanced)


def _spread(table: Table, prefix: str, many: tuple[str, ...]) -> Select[Any]:
    """As many rows as the arrays bound for the columns `many` are long; the other columns are alike in all of them."""
    arrays = [bindparam(f"{prefix}{name}", type_=ARRAY(_plain(table, name))) for name in many]
    each = func.unnest(*arrays).table_valued(*many, name=f"{prefix}rows").render_derived()
    return select(
        *(each.c[column.name] if column.name in many else _bound(prefix, column) for column in table.c)
    ).select_from(_advanced.join(each, literal_column("true")))


def _plain(table: Table, name: str) -> Integer | Text:
    return Text() if isinstance(table.c[name].type, String) else Integer()


def _kept_once(table: Table, prefix: str) -> Insert:
    adding = upsert(table).from_select(list(table.c), _added(table, prefix))
    return adding.on_conflict_do_nothing(index_elements=list(_OF_ATTEMPT))


def _many_once(table: Table, prefix: str, many: tuple[str, ...]) -> Insert:
    of_attempt = [table.c[name] == bindparam(f"{prefix}{name}") for name in _OF_ATTEMPT]
    adding = _spread(table, prefix, many).where(~exists().where(*of_attempt))
    return insert(table).from_select(list(table.c), adding)


_EDIT, _EDGE = ("number", "kind", "rung"), ("kind", "source", "target")
"""The columns in which the rows of a commit differ."""
_COMMIT = select(_advanced.c.control).add_cte(
    insert(steps).from_select(list(steps.c), _added(steps, "step_")).cte("stepped"),
    insert(events).from_select(list(events.c), _spread(events, "event_", ("seq", "body"))).cte("said"),
)
_LEARNING = {
    "card": _kept_once(cards, "card_").cte("carded"),
    "failure": _kept_once(failures, "failure_").cte("failed"),
    "pattern": _kept_once(patterns, "pattern_").cte("shaped"),
    "edits": _many_once(edits, "edit_", _EDIT).cte("edited"),
    "edges": _many_once(edges, "edge_", _EDGE).cte("tied"),
    **{
        f"refused {name}": quarantine.where(exists(select(_advanced.c.control))).cte(f"quarantined_{name}")
        for name, quarantine in _QUARANTINES.items()
    },
}


@cache
def _postgres(learned: tuple[str, ...]) -> str:
    """The statement for a commit that taught something of these kinds."""
    statement = _COMMIT
    for kind in learned:
        statement = statement.add_cte(_LEARNING[kind])
    return str(statement.compile(dialect=PGDialect_psycopg(paramstyle="pyformat")))


def _at_once(driver: Driver, rows: Rows) -> Found:
    of_run = {"event_tenant": rows.step["tenant"], "event_run_id": rows.step["run_id"]}
    bound: Row = {
        **rows.held,
        **_prefixed("new_", rows.progress),
        **{name: value for name, value in _prefixed("step_", rows.step).items() if name not in _SENT_ONCE},
        **of_run,
        "event_seq": [event["seq"] for event in rows.events],
        "event_body": [event["body"] for event in rows.events],
    }
    learned: list[str] = []
    for name, row in (("card", rows.card), ("failure", rows.failure), ("pattern", rows.pattern)):
        if row is not None:
            learned.append(name)
            bound |= _prefixed(f"{name}_", row)
    for name, prefix, added, many in (("edits", "edit_", rows.edits, _EDIT), ("edges", "edge_", rows.edges, _EDGE)):
        if added:
            learned.append(name)
            bound |= _prefixed(prefix, added[0])
            bound |= {prefix + column: [row[column] for row in added] for column in many}
    if rows.refused is not None:
        learned += [f"refused {name}" for name in _QUARANTINES]
        bound |= rows.refused
    return driver.execute(_postgres(tuple(learned)), bound).fetchall()


def _prefixed(prefix: str, row: Row) -> Row:
    return {prefix + name: value for name, value in row.items()}
