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
from redstart.core.graph import list_edges
from redstart.core.learning import CardState, FailureRecord, FixCard, NewMemories
from redstart.core.lesson import Lesson
from redstart.core.lesson_uses import collect_lesson_outcomes
from redstart.core.pattern import SolutionPattern
from redstart.core.run import Result, RunState, Status
from redstart.core.run_status import Control
from redstart.ports.sql.engine import Database, SqlDriver
from redstart.ports.sql.schema import cards, events, lessons, metadata, patterns, runs, steps
from redstart.ports.store.port.runs import StepCommit

Row = dict[str, Any]
UpdatedRows = Sequence[Sequence[Any]]
"""The rows that the update of the run returns; empty if the run was not in the expected state."""


class CommitRows(NamedTuple):
    """A commit as rows."""

    expected_run: Row
    """The key, fence and version that the run must have for the commit to be written."""
    progress: Row
    step: Row
    events: list[Row]
    attempt_rows: dict[str, list[Row]]
    """By table name, the rows that an attempt writes only once. A kind without rows has no key."""
    refused: Row | None
    """The run whose cards, lessons and patterns are quarantined, if the run ends here without being verified."""


def build_progress(state: RunState, now: float) -> Row:
    """Return the columns of a run that change from step to step."""
    return {
        "status": state.status.value,
        "result": "" if state.result is None else state.result.value,
        "version": state.version,
        "state": state.model_dump_json(),
        "updated": now,
    }


def build_rows(commit: StepCommit, tenant: str, fence: int, now: float) -> CommitRows:
    before, new = commit.before, build_progress(commit.after, now)
    run_key = {"tenant": tenant, "run_id": before.run_id}
    memories = commit.memories or NewMemories()
    rows_by_table = {
        "cards": _build_memory_rows(memories.card, tenant, before, now),
        "failures": _build_memory_rows(memories.failure, tenant, before, now),
        "lessons": _build_memory_rows(memories.lesson, tenant, before, now),
        "patterns": _build_memory_rows(memories.pattern, tenant, before, now),
        "edits": _build_edits(commit, tenant),
        "edges": _build_edges(commit, tenant, now),
        "uses": _build_uses(commit.after, tenant, now),
    }
    return CommitRows(
        expected_run={
            "held_tenant": tenant,
            "held_id": before.run_id,
            "held_fence": fence,
            "held_version": before.version,
        },
        progress=new,
        step={
            **run_key,
            "version": commit.after.version,
            "attempt": before.now.number,
            "step": commit.step.value,
            "artifact": commit.artifact,
            "state": new["state"],
        },
        events=[{**run_key, "seq": event.seq, "body": event.model_dump_json()} for event in commit.events],
        attempt_rows={name: rows for name, rows in rows_by_table.items() if rows},
        refused=_get_refused_run(commit.after, tenant),
    )


def _build_edges(commit: StepCommit, tenant: str, now: float) -> list[Row]:
    if commit.memories is None:
        return []
    run = commit.before
    common = {
        "tenant": tenant,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "repo": run.spec.repo,
        "created": now,
    }
    return [
        {**common, "kind": edge.kind.value, "source": edge.source, "target": edge.target}
        for edge in list_edges(run, commit.memories)
    ]


def _get_refused_run(run: RunState, tenant: str) -> Row | None:
    """Return the run if it ends unverified. Only verified runs leave cards that may be shown."""
    if run.status is not Status.finished or run.result is Result.verified:
        return None
    return {"of_tenant": tenant, "of_run": run.run_id}


def _build_memory_rows(
    memory: FixCard | FailureRecord | Lesson | SolutionPattern | None, tenant: str, run: RunState, now: float
) -> list[Row]:
    if memory is None:
        return []
    key, family = _get_keys(memory)
    row: Row = {
        "id": memory.id,
        "tenant": tenant,
        "repo": run.spec.repo,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "key": key,
        "family": family,
        "body": memory.model_dump_json(),
        "created": now,
    }
    if isinstance(memory, FixCard):
        row |= {"state": memory.state.value, "embedded": ""}
    if isinstance(memory, SolutionPattern):
        state = CardState.shown if memory.outcome == Result.verified else CardState.quarantined
        row |= {"state": state.value, "embedded": ""}
    if isinstance(memory, Lesson):
        row |= {"scope": memory.scope.value, "status": memory.status.value, "same_as": memory.same_as}
    return [row]


def _get_keys(memory: FixCard | FailureRecord | Lesson | SolutionPattern) -> tuple[str, str]:
    """Return the key that identifies the memory and the family that it belongs to."""
    if isinstance(memory, SolutionPattern):
        return memory.key, memory.mode
    return ("" if isinstance(memory, Lesson) else memory.error_signature), memory.family


def _build_uses(run: RunState, tenant: str, now: float) -> list[Row]:
    common = {"tenant": tenant, "run_id": run.run_id, "attempt": run.now.number, "created": now}
    return [
        {
            **common,
            "lesson": name,
            "probability": use.probability,
            "shown": int(use.shown),
            "green": None if use.green is None else int(use.green),
            "cost": use.cost,
        }
        for name, use in collect_lesson_outcomes(run).items()
    ]


def _build_edits(commit: StepCommit, tenant: str) -> list[Row]:
    """Return the outcomes of an answer's edits. Nothing is recorded for an unknown model."""
    if not commit.model:
        return []
    run = commit.before
    common = {"tenant": tenant, "run_id": run.run_id, "attempt": run.now.number, "model": commit.model}
    return [
        {**common, "number": number, "kind": edit.kind.value, "rung": "" if edit.rung is None else edit.rung.value}
        for number, edit in enumerate(commit.edits, 1)
    ]


def write(database: Database, rows: CommitRows) -> Control:
    """Write the commit and return the requested control. Raises `Fenced`, with nothing written; see `Store.commit`."""
    write_rows = _write_postgres if database.is_postgres else _write_sqlite
    with database.open_driver() as driver:
        updated_rows = write_rows(driver, rows)
        if not updated_rows:
            raise Fenced
    return Control(updated_rows[0][0])


_HELD_RUN = (
    runs.c.tenant == bindparam("held_tenant"),
    runs.c.id == bindparam("held_id"),
    runs.c.fence == bindparam("held_fence"),
    runs.c.version == bindparam("held_version"),
)
_CHANGES = ("status", "result", "version", "state", "updated")
_ADVANCE = (
    update(runs)
    .where(*_HELD_RUN)
    .values({name: bindparam(f"new_{name}") for name in _CHANGES})
    .returning(runs.c.control)
)
_ATTEMPT_KEY = ("tenant", "run_id", "attempt")
_QUARANTINED: ColumnElement[str] = literal_column(f"'{CardState.quarantined.value}'")


def _build_quarantine(state: Column[str]) -> Update:
    """Build the update that quarantines a run's rows. Lessons and cards use the same status value."""
    table = state.table
    run_conditions = (table.c.tenant == bindparam("of_tenant"), table.c.run_id == bindparam("of_run"))
    return update(table).where(*run_conditions, state != _QUARANTINED).values({state.name: _QUARANTINED})


_QUARANTINES = {
    "cards": _build_quarantine(cards.c.state),
    "lessons": _build_quarantine(lessons.c.status),
    "patterns": _build_quarantine(patterns.c.state),
}


def _compile_sqlite(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=SQLiteDialect(paramstyle="named")))


# Compiled once, at the first commit: most commands make none.
@cache
def _compile_advance() -> str:
    return _compile_sqlite(_ADVANCE)


@cache
def _compile_quarantines() -> tuple[str, ...]:
    return tuple(_compile_sqlite(quarantine) for quarantine in _QUARANTINES.values())


@cache
def _compile_insert(table: Table) -> str:
    return _compile_sqlite(insert(table))


@cache
def _compile_exists(table: Table) -> str:
    """Build the query whether the attempt already has rows in that table."""
    return _compile_sqlite(select(table.c.run_id).where(*(table.c[name] == bindparam(name) for name in _ATTEMPT_KEY)))


def _write_sqlite(driver: SqlDriver, rows: CommitRows) -> UpdatedRows:
    updated_rows = driver.execute(
        _compile_advance(), {**_add_prefix("new_", rows.progress), **rows.expected_run}
    ).fetchall()
    if not updated_rows:
        return updated_rows
    driver.execute(_compile_insert(steps), rows.step)
    for event in rows.events:
        driver.execute(_compile_insert(events), event)
    for name, table_rows in rows.attempt_rows.items():
        table = metadata.tables[name]
        # Existing rows stay unchanged.
        if not driver.execute(_compile_exists(table), table_rows[0]).fetchall():
            for row in table_rows:
                driver.execute(_compile_insert(table), row)
    if rows.refused is not None:
        for quarantine in _compile_quarantines():
            driver.execute(quarantine, rows.refused)
    return updated_rows


# In Postgres: the same as one statement. Every part of it sees the tables as they were before, and writes only if the
# first part found the run in the expected state. Multiple rows are passed as one array per column, so that the text of
# the statement does not depend on their number, and the server plans it once.
_advanced = _ADVANCE.cte("advanced")
_SENT_ONCE = {"step_state": "new_state", "step_version": "new_version"}
"""Values that two tables get are bound under one name, because a state may be large."""


def _bound(prefix: str, column: Column[Any]) -> BindParameter[Any]:
    name = prefix + column.name
    return bindparam(_SENT_ONCE.get(name, name), type_=column.type)


def _select_row(table: Table, prefix: str) -> Select[Any]:
    """Select one row if the run was advanced. Its values are bound to the column names with `prefix`."""
    return select(*(_bound(prefix, column) for column in table.c)).select_from(_advanced)


def _select_rows(table: Table, prefix: str, array_columns: tuple[str, ...]) -> Select[Any]:
    """Select one row per element of the arrays bound for the columns `array_columns`. The other columns are
    constant."""
    arrays = [bindparam(f"{prefix}{name}", type_=ARRAY(_get_plain_type(table, name))) for name in array_columns]
    elements = func.unnest(*arrays).table_valued(*array_columns, name=f"{prefix}rows").render_derived()
    return select(
        *(elements.c[column.name] if column.name in array_columns else _bound(prefix, column) for column in table.c)
    ).select_from(_advanced.join(elements, literal_column("true")))


def _get_plain_type(table: Table, name: str) -> TypeEngine[Any]:
    """Return the type of a column without its collation."""
    kind: TypeEngine[Any] = table.c[name].type
    return Text() if isinstance(kind, String) else kind


def _insert_row_once(table: Table) -> Insert:
    statement = upsert(table).from_select(list(table.c), _select_row(table, f"{table.name}_"))
    return statement.on_conflict_do_nothing(index_elements=list(_ATTEMPT_KEY))


def _insert_rows_once(table: Table, array_columns: tuple[str, ...]) -> Insert:
    prefix = f"{table.name}_"
    attempt_conditions = [table.c[name] == bindparam(f"{prefix}{name}") for name in _ATTEMPT_KEY]
    selection = _select_rows(table, prefix, array_columns).where(~exists().where(*attempt_conditions))
    return insert(table).from_select(list(table.c), selection)


_MULTI_ROW_COLUMNS = {
    "edits": ("number", "kind", "rung"),
    "edges": ("kind", "source", "target"),
    "uses": ("lesson", "probability", "shown"),
}
"""The columns in which the rows of a commit differ, for tables that may get several."""
_COMMIT = select(_advanced.c.control).add_cte(
    insert(steps).from_select(list(steps.c), _select_row(steps, "step_")).cte("stepped"),
    insert(events).from_select(list(events.c), _select_rows(events, "event_", ("seq", "body"))).cte("said"),
)


@cache
def _compile_postgres(tables: tuple[str, ...], *, refused: bool) -> str:
    """Build the statement of a commit with rows for these tables."""
    statement = _COMMIT
    for name in tables:
        table = metadata.tables[name]
        addition = (
            _insert_rows_once(table, _MULTI_ROW_COLUMNS[name])
            if name in _MULTI_ROW_COLUMNS
            else _insert_row_once(table)
        )
        statement = statement.add_cte(addition.cte(f"added_{name}"))
    for name, quarantine in _QUARANTINES.items() if refused else ():
        statement = statement.add_cte(quarantine.where(exists(select(_advanced.c.control))).cte(f"quarantined_{name}"))
    return str(statement.compile(dialect=PGDialect_psycopg(paramstyle="pyformat")))


def _write_postgres(driver: SqlDriver, rows: CommitRows) -> UpdatedRows:
    run_columns = {"event_tenant": rows.step["tenant"], "event_run_id": rows.step["run_id"]}
    bound: Row = {
        **rows.expected_run,
        **_add_prefix("new_", rows.progress),
        **{name: value for name, value in _add_prefix("step_", rows.step).items() if name not in _SENT_ONCE},
        **run_columns,
        "event_seq": [event["seq"] for event in rows.events],
        "event_body": [event["body"] for event in rows.events],
    }
    for name, table_rows in rows.attempt_rows.items():
        bound |= _add_prefix(f"{name}_", table_rows[0])
        bound |= {
            f"{name}_{column}": [row[column] for row in table_rows] for column in _MULTI_ROW_COLUMNS.get(name, ())
        }
    bound |= rows.refused or {}
    return driver.execute(
        _compile_postgres(tuple(rows.attempt_rows), refused=rows.refused is not None), bound
    ).fetchall()


def _add_prefix(prefix: str, row: Row) -> Row:
    return {prefix + name: value for name, value in row.items()}
