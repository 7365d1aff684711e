"""A step's commit: a transaction in SQLite, and in Postgres one statement, which is a transaction in one round trip."""

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
    Select,
    String,
    Table,
    Text,
    Update,
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
from sqlalchemy.types import TypeEngine

from redstart.core.errors import Fenced
from redstart.core.graph import edges_of
from redstart.core.learning import CardState, FailureRecord, FixCard, NewMemories
from redstart.core.lesson import Lesson
from redstart.core.pattern import SolutionPattern
from redstart.core.run import Result, RunState, Status
from redstart.core.standing import Control
from redstart.core.uses import uses_of
from redstart.ports.sql.engine import Database, SqlDriver
from redstart.ports.sql.schema import cards, events, lessons, metadata, patterns, runs, steps
from redstart.ports.store.port.runs import StepCommit

Row = dict[str, Any]
Found = Sequence[Sequence[Any]]
"""The rows that the update of the run returns; empty if the run was not in the expected state."""


class CommitRows(NamedTuple):
    """A commit as rows."""

    held: Row
    """The key, fence and version that the run must have for the commit to be written."""
    progress: Row
    step: Row
    events: list[Row]
    learned: dict[str, list[Row]]
    """By table name, the rows that an attempt writes only once. A kind without rows has no key."""
    refused: Row | None
    """The run whose cards, lessons and patterns are quarantined, if the run ends here without being verified."""


def progress(state: RunState, now: float) -> Row:
    """Return the columns of a run that change from step to step."""
    return {
        "status": state.status.value,
        "result": "" if state.result is None else state.result.value,
        "version": state.version,
        "state": state.model_dump_json(),
        "updated": now,
    }


def rows_of(commit: StepCommit, tenant: str, fence: int, now: float) -> CommitRows:
    before, new = commit.before, progress(commit.after, now)
    of_run = {"tenant": tenant, "run_id": before.run_id}
    left = commit.remembered or NewMemories()
    learned = {
        "cards": _learned(left.card, tenant, before, now),
        "failures": _learned(left.failure, tenant, before, now),
        "lessons": _learned(left.lesson, tenant, before, now),
        "patterns": _learned(left.pattern, tenant, before, now),
        "edits": _edits(commit, tenant),
        "edges": _edges(commit, tenant, now),
        "uses": _uses(commit.after, tenant, now),
    }
    return CommitRows(
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
        learned={name: rows for name, rows in learned.items() if rows},
        refused=_refused(commit.after, tenant),
    )


def _edges(commit: StepCommit, tenant: str, now: float) -> list[Row]:
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
        {**of_all, "kind": edge.kind.value, "source": edge.source, "target": edge.target}
        for edge in edges_of(run, commit.remembered)
    ]


def _refused(run: RunState, tenant: str) -> Row | None:
    """Return the run if it ends unverified. Only verified runs leave cards that may be shown."""
    if run.status is not Status.finished or run.result is Result.verified:
        return None
    return {"of_tenant": tenant, "of_run": run.run_id}


def _learned(
    learned: FixCard | FailureRecord | Lesson | SolutionPattern | None, tenant: str, run: RunState, now: float
) -> list[Row]:
    if learned is None:
        return []
    key, family = _names(learned)
    row: Row = {
        "id": learned.id,
        "tenant": tenant,
        "repo": run.spec.repo,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "key": key,
        "family": family,
        "body": learned.model_dump_json(),
        "created": now,
    }
    if isinstance(learned, FixCard):
        row |= {"state": learned.state.value, "embedded": ""}
    if isinstance(learned, SolutionPattern):
        state = CardState.shown if learned.outcome == Result.verified else CardState.quarantined
        row |= {"state": state.value, "embedded": ""}
    if isinstance(learned, Lesson):
        row |= {"scope": learned.scope.value, "status": learned.status.value, "same_as": learned.same_as}
    return [row]


def _names(learned: FixCard | FailureRecord | Lesson | SolutionPattern) -> tuple[str, str]:
    """Return the key that identifies the memory and the family that it belongs to."""
    if isinstance(learned, SolutionPattern):
        return learned.key, learned.mode
    return ("" if isinstance(learned, Lesson) else learned.error_signature), learned.family


def _uses(run: RunState, tenant: str, now: float) -> list[Row]:
    of_all = {"tenant": tenant, "run_id": run.run_id, "attempt": run.now.number, "created": now}
    return [
        {
            **of_all,
            "lesson": name,
            "probability": use.probability,
            "shown": int(use.shown),
            "green": None if use.green is None else int(use.green),
            "cost": use.cost,
        }
        for name, use in uses_of(run).items()
    ]


def _edits(commit: StepCommit, tenant: str) -> list[Row]:
    """Return the outcomes of an answer's edits. Nothing is recorded for an unknown model."""
    if not commit.model:
        return []
    run = commit.before
    of_all = {"tenant": tenant, "run_id": run.run_id, "attempt": run.now.number, "model": commit.model}
    return [
        {**of_all, "number": number, "kind": edit.kind.value, "rung": "" if edit.rung is None else edit.rung.value}
        for number, edit in enumerate(commit.edits, 1)
    ]


def write(database: Database, rows: CommitRows) -> Control:
    """Write the commit and return the requested control. Raises `Fenced`, with nothing written; see `Store.commit`."""
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


def _quarantine(state: Column[str]) -> Update:
    """Build the update that quarantines a run's rows. Lessons and cards use the same status value."""
    table = state.table
    of_run = (table.c.tenant == bindparam("of_tenant"), table.c.run_id == bindparam("of_run"))
    return update(table).where(*of_run, state != _QUARANTINED).values({state.name: _QUARANTINED})


_QUARANTINES = {
    "cards": _quarantine(cards.c.state),
    "lessons": _quarantine(lessons.c.status),
    "patterns": _quarantine(patterns.c.state),
}


def _sqlite(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=SQLiteDialect(paramstyle="named")))


# Compiled once, at the first commit: most commands make none.
@cache
def _sqlite_advance() -> str:
    return _sqlite(_ADVANCE)


@cache
def _sqlite_quarantines() -> tuple[str, ...]:
    return tuple(_sqlite(quarantine) for quarantine in _QUARANTINES.values())


@cache
def _sqlite_add(table: Table) -> str:
    return _sqlite(insert(table))


@cache
def _sqlite_kept(table: Table) -> str:
    """Build the query whether the attempt already has rows in that table."""
    return _sqlite(select(table.c.run_id).where(*(table.c[name] == bindparam(name) for name in _OF_ATTEMPT)))


def _one_by_one(driver: SqlDriver, rows: CommitRows) -> Found:
    found = driver.execute(_sqlite_advance(), {**_prefixed("new_", rows.progress), **rows.held}).fetchall()
    if not found:
        return found
    driver.execute(_sqlite_add(steps), rows.step)
    for event in rows.events:
        driver.execute(_sqlite_add(events), event)
    for name, added in rows.learned.items():
        table = metadata.tables[name]
        # Existing rows stay unchanged.
        if not driver.execute(_sqlite_kept(table), added[0]).fetchall():
            for row in added:
                driver.execute(_sqlite_add(table), row)
    if rows.refused is not None:
        for quarantine in _sqlite_quarantines():
            driver.execute(quarantine, rows.refused)
    return found


# In Postgres: the same as one statement. Every part of it sees the tables as they were before, and writes only if the
# first part found the run in the expected state. Multiple rows are passed as one array per column, so that the text of
# the statement does not depend on their number, and the server plans it once.
_advanced = _ADVANCE.cte("advanced")
_SENT_ONCE = {"step_state": "new_state", "step_version": "new_version"}
"""Values that two tables get are bound under one name, because a state may be large."""


def _bound(prefix: str, column: Column[Any]) -> BindParameter[Any]:
    name = prefix + column.name
    return bindparam(_SENT_ONCE.get(name, name), type_=column.type)


def _added(table: Table, prefix: str) -> Select[Any]:
    """Select one row if the run was advanced. Its values are bound to the column names with `prefix`."""
    return select(*(_bound(prefix, column) for column in table.c)).select_from(_advanced)


def _spread(table: Table, prefix: str, many: tuple[str, ...]) -> Select[Any]:
    """Select one row per element of the arrays bound for the columns `many`. The other columns are constant."""
    arrays = [bindparam(f"{prefix}{name}", type_=ARRAY(_plain(table, name))) for name in many]
    each = func.unnest(*arrays).table_valued(*many, name=f"{prefix}rows").render_derived()
    return select(
        *(each.c[column.name] if column.name in many else _bound(prefix, column) for column in table.c)
    ).select_from(_advanced.join(each, literal_column("true")))


def _plain(table: Table, name: str) -> TypeEngine[Any]:
    """Return the type of a column without its collation."""
    kind: TypeEngine[Any] = table.c[name].type
    return Text() if isinstance(kind, String) else kind


def _kept_once(table: Table) -> Insert:
    adding = upsert(table).from_select(list(table.c), _added(table, f"{table.name}_"))
    return adding.on_conflict_do_nothing(index_elements=list(_OF_ATTEMPT))


def _many_once(table: Table, many: tuple[str, ...]) -> Insert:
    prefix = f"{table.name}_"
    of_attempt = [table.c[name] == bindparam(f"{prefix}{name}") for name in _OF_ATTEMPT]
    adding = _spread(table, prefix, many).where(~exists().where(*of_attempt))
    return insert(table).from_select(list(table.c), adding)


_MANY = {
    "edits": ("number", "kind", "rung"),
    "edges": ("kind", "source", "target"),
    "uses": ("lesson", "probability", "shown"),
}
"""The columns in which the rows of a commit differ, for tables that may get several."""
_COMMIT = select(_advanced.c.control).add_cte(
    insert(steps).from_select(list(steps.c), _added(steps, "step_")).cte("stepped"),
    insert(events).from_select(list(events.c), _spread(events, "event_", ("seq", "body"))).cte("said"),
)


@cache
def _postgres(learned: tuple[str, ...], *, refused: bool) -> str:
    """Build the statement of a commit with rows for these tables."""
    statement = _COMMIT
    for name in learned:
        table = metadata.tables[name]
        adding = _many_once(table, _MANY[name]) if name in _MANY else _kept_once(table)
        statement = statement.add_cte(adding.cte(f"added_{name}"))
    for name, quarantine in _QUARANTINES.items() if refused else ():
        statement = statement.add_cte(quarantine.where(exists(select(_advanced.c.control))).cte(f"quarantined_{name}"))
    return str(statement.compile(dialect=PGDialect_psycopg(paramstyle="pyformat")))


def _at_once(driver: SqlDriver, rows: CommitRows) -> Found:
    of_run = {"event_tenant": rows.step["tenant"], "event_run_id": rows.step["run_id"]}
    bound: Row = {
        **rows.held,
        **_prefixed("new_", rows.progress),
        **{name: value for name, value in _prefixed("step_", rows.step).items() if name not in _SENT_ONCE},
        **of_run,
        "event_seq": [event["seq"] for event in rows.events],
        "event_body": [event["body"] for event in rows.events],
    }
    for name, added in rows.learned.items():
        bound |= _prefixed(f"{name}_", added[0])
        bound |= {f"{name}_{column}": [row[column] for row in added] for column in _MANY.get(name, ())}
    bound |= rows.refused or {}
    return driver.execute(_postgres(tuple(rows.learned), refused=rows.refused is not None), bound).fetchall()


def _prefixed(prefix: str, row: Row) -> Row:
    return {prefix + name: value for name, value in row.items()}
