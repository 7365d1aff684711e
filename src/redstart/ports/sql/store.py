"""Run in SQL: each single run, and pages of some hundred runs for statistics."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    Update,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from redstart.core.change import EditKind, FitCounts
from redstart.core.errors import StoreError
from redstart.core.events import Event, Phase
from redstart.core.formats import STATE, to_current_status
from redstart.core.run import Attempt, RunState, Status, Step
from redstart.core.run_options import RunOptions
from redstart.core.run_status import Control, DriveStop, RunHolder, RunRow
from redstart.ports.sql.commit import build_progress, build_rows, write
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.journal import parse_record
from redstart.ports.sql.schema import MAX_GOAL_LENGTH, edits, events, journal, person_messages, runs, steps
from redstart.ports.store.port.journal import JournalRecord
from redstart.ports.store.port.runs import PastRun, PersonMessage, PersonWord, RunClaim, StepCommit, StepRow

PAGE = 200
SUMMARY_COLUMNS = [column for column in runs.c if column.name not in ("state", "first_state")]
"""The columns of a row in the list of runs."""


def run_row(row: Row[Any]) -> RunRow:
    return RunRow(
        run_id=row.id,
        mode=row.mode,
        status=Status(to_current_status(row.status, row.result)),
        result=row.result,
        goal=row.goal,
        repo=row.repo,
        folder=row.folder,
        created=datetime.fromtimestamp(row.created, UTC),
        updated=datetime.fromtimestamp(row.updated, UTC),
        control=Control(row.control),
        holder=parse_holder(row.holder),
        beat=row.beat,
        stop=DriveStop(Status(row.stopped), row.stop_reason) if row.stopped else None,
        options=parse(RunOptions, row.options) if row.options else None,
    )


def parse_holder(text: str) -> RunHolder | None:
    if not text:
        return None
    host, _, pid = text.rpartition("/")
    return RunHolder(host, int(pid))


def iter_pages(database: Database, since: datetime | None, size: int = PAGE) -> Iterator[list[PastRun]]:
    """Yield the runs of `Store.past` page by page. No transaction is open between two pages."""
    query = (
        select(*SUMMARY_COLUMNS).where(runs.c.tenant == database.tenant).order_by(runs.c.created, runs.c.id).limit(size)
    )
    if since is not None:
        query = query.where(runs.c.created >= since.timestamp())
    page_query = query
    while True:
        with database.connect_for_reading() as connection:
            rows = connection.execute(page_query).all()
            page = _load_past_runs(connection, database.tenant, rows) if rows else []
        if page:
            yield page
        if len(rows) < size:
            return
        last = rows[-1]
        same_time = and_(runs.c.created == last.created, runs.c.id > last.id)
        page_query = query.where(or_(runs.c.created > last.created, same_time))


def _load_past_runs(connection: Connection, tenant: str, rows: Sequence[Row[Any]]) -> list[PastRun]:
    ids = [row.id for row in rows]
    ends: dict[str, list[Event]] = defaultdict(list)
    conditions = (events.c.tenant == tenant, events.c.run_id.in_(ids))
    # The database only filters out most other events: the event itself contains the actual phase.
    phase = events.c.body.contains(f'"phase":"{Phase.end.value}"', autoescape=True)
    for row in connection.execute(
        select(events.c.run_id, events.c.body).where(*conditions, phase).order_by(events.c.seq)
    ):
        event = parse(Event, row.body)
        if event.phase is Phase.end:
            ends[row.run_id].append(event)
    reproduced: dict[str, list[str]] = defaultdict(list)
    conditions = (steps.c.tenant == tenant, steps.c.run_id.in_(ids), steps.c.step == Step.reproduce.value)
    for row in connection.execute(
        select(steps.c.run_id, steps.c.artifact).where(*conditions).order_by(steps.c.version)
    ):
        reproduced[row.run_id].append(row.artifact)
    answers: dict[str, list[JournalRecord]] = defaultdict(list)
    conditions = (journal.c.tenant == tenant, journal.c.run_id.in_(ids), journal.c.kind == "model")
    for row in connection.execute(select(journal).where(*conditions).order_by(journal.c.attempt, journal.c.position)):
        answers[row.run_id].append(parse_record(row))
    return [PastRun(run_row(row), ends[row.id], reproduced[row.id], answers[row.id]) for row in rows]


# Built once: building a statement costs more than executing it.
_OWN_RUN = (runs.c.tenant == bindparam("my_tenant"), runs.c.id == bindparam("my_id"))
_CLAIM = (
    update(runs)
    .where(*_OWN_RUN)
    .values(fence=runs.c.fence + 1, holder=bindparam("by"), beat=bindparam("moment"), stopped="", stop_reason="")
    .returning(runs.c.state, runs.c.fence)
)
_LOAD = select(runs.c.state).where(*_OWN_RUN)
_CONTROL_QUERY = select(runs.c.control).where(*_OWN_RUN)


class SqlStore:
    """The runs of the database's tenant. It does not know or store runs of other tenants.

    `now` returns seconds since the epoch, for the time when a run was last changed and when a card was written.
    """

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._tenant = database.tenant
        self._clock = now

    async def create(
        self, state: RunState, *, folder: str, created: datetime, options: RunOptions | None = None
    ) -> None:
        spec = state.spec
        if spec.tenant != self._tenant:
            raise StoreError(
                f"run {state.run_id} belongs to tenant {spec.tenant}, but this run store belongs to {self._tenant}"
            )
        row = {
            "id": state.run_id,
            "tenant": spec.tenant,
            "mode": spec.mode.value,
            "goal": _strip_zero_bytes(spec.goal[:MAX_GOAL_LENGTH]),
            "repo": spec.repo,
            "folder": folder,
            "parent": spec.parent,
            "fence": 0,
            "control": Control.none.value,
            "holder": "",
            "errand": int("." in state.run_id),
            "created": created.timestamp(),
            "options": "" if options is None else options.model_dump_json(),
            **build_progress(state, created.timestamp()),
        }
        with self._database.connect_for_statement() as connection:
            try:
                connection.execute(insert(runs), {**row, "first_state": row["state"]})
            except IntegrityError as error:
                raise StoreError(f"there is a run {state.run_id} already") from error

    async def claim(self, run_id: str) -> RunClaim:
        await self.load(run_id)  # A run that cannot be read stays unchanged.
        with self._database.connect_for_statement() as connection:
            bound = {**self._build_key(run_id), "by": _format_holder(), "moment": self._clock()}
            row = connection.execute(_CLAIM, bound).one_or_none()
        if row is None:
            raise _build_unknown_error(run_id)
        return RunClaim(parse(RunState, row.state), row.fence)

    async def renew(self, run_id: str, fence: int) -> None:
        self._change(update(runs).where(*_OWN_RUN, runs.c.fence == fence).values(beat=self._clock()), run_id)

    async def release(self, run_id: str, fence: int, stop: DriveStop | None = None) -> None:
        statement = update(runs).where(*_OWN_RUN, runs.c.fence == fence)
        self._change(statement.values(holder="", **_build_stop_columns(stop)), run_id)

    async def mark(self, run_id: str, stop: DriveStop) -> None:
        self._change(update(runs).where(*_OWN_RUN, runs.c.holder == "").values(**_build_stop_columns(stop)), run_id)

    async def choose(self, run_id: str, options: RunOptions) -> None:
        if self._change(update(runs).where(*_OWN_RUN).values(options=options.model_dump_json()), run_id) == 0:
            raise _build_unknown_error(run_id)

    async def get_holder(self, run_id: str) -> RunHolder | None:
        with self._database.connect_for_reading() as connection:
            text = connection.execute(select(runs.c.holder).where(*_OWN_RUN), self._build_key(run_id)).scalar()
        return parse_holder(text or "")

    async def commit(self, commit: StepCommit, fence: int) -> Control:
        return write(self._database, build_rows(commit, self._tenant, fence, self._clock()))

    async def load(self, run_id: str) -> RunState:
        with self._database.connect_for_reading() as connection:
            text = connection.execute(_LOAD, self._build_key(run_id)).scalar()
        if text is None:
            raise _build_unknown_error(run_id)
        return parse(RunState, text)

    async def load_first(self, run_id: str) -> RunState:
        with self._database.connect_for_reading() as connection:
            text = connection.execute(select(runs.c.first_state).where(*_OWN_RUN), self._build_key(run_id)).scalar()
        if text is None:
            raise _build_unknown_error(run_id)
        return parse(RunState, text)

    async def list_steps(self, run_id: str) -> list[StepRow]:
        query = select(steps).where(*self._mine(steps, run_id)).order_by(steps.c.version)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [
            StepRow(row.version, row.attempt, Step(row.step), _upgrade_artifact(row), parse(RunState, row.state))
            for row in rows
        ]

    async def list_events(self, run_id: str, after: int = -1) -> list[Event]:
        conditions = self._mine(events, run_id)
        query = select(events.c.body).where(*conditions, events.c.seq > after).order_by(events.c.seq)
        with self._database.connect_for_reading() as connection:
            bodies = connection.execute(query).scalars().all()
        return [parse(Event, body) for body in bodies]

    async def list_runs(
        self, *, folder: str | None = None, prefix: str = "", limit: int = 50, include_child_runs: bool = False
    ) -> list[RunRow]:
        query = select(*SUMMARY_COLUMNS).where(runs.c.tenant == self._tenant)
        query = query.order_by(runs.c.created.desc(), runs.c.id.desc()).limit(limit)
        if folder is not None:
            query = query.where(runs.c.folder == folder)
        if prefix:
            # Not LIKE: its case sensitivity depends on the database.
            query = query.where(runs.c.id >= prefix, runs.c.id < prefix + chr(sys.maxunicode))
        if not include_child_runs and "." not in prefix:
            query = query.where(runs.c.errand == 0)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [run_row(row) for row in rows]

    async def iter_past_runs(self, since: datetime | None = None) -> AsyncIterator[PastRun]:
        for page in iter_pages(self._database, since):
            for item in page:
                yield item

    async def control(self, run_id: str, control: Control) -> None:
        if self._change(update(runs).where(*_OWN_RUN).values(control=control.value), run_id) == 0:
            raise _build_unknown_error(run_id)

    async def get_control(self, run_id: str) -> Control:
        with self._database.connect_for_reading() as connection:
            text = connection.execute(_CONTROL_QUERY, self._build_key(run_id)).scalar()
        if text is None:
            raise _build_unknown_error(run_id)
        return Control(text)

    async def send_message(self, run_id: str, kind: PersonWord, text: str, *, version: int) -> None:
        last_number = select(func.coalesce(func.max(person_messages.c.number), -1)).where(
            *self._mine(person_messages, run_id)
        )
        row = {"word": kind.value, "text": _strip_zero_bytes(text), "version": version, "time": self._clock()}
        with self._database.connect_for_writing() as connection:
            # The lock on the run's row prevents two concurrent writers from using the same number.
            lock_query = select(runs.c.id).where(*_OWN_RUN).with_for_update(key_share=True)
            if connection.execute(lock_query, self._build_key(run_id)).first() is None:
                raise _build_unknown_error(run_id)
            statement = insert(person_messages).values(number=last_number.scalar_subquery() + 1)
            connection.execute(statement, {**row, "tenant": self._tenant, "run_id": run_id})

    async def list_messages(self, run_id: str) -> list[PersonMessage]:
        query = select(person_messages).where(*self._mine(person_messages, run_id)).order_by(person_messages.c.number)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [
            PersonMessage(PersonWord(row.word), row.text, row.version, datetime.fromtimestamp(row.time, UTC))
            for row in rows
        ]

    async def count_fits(self, model: str, *, tenant: str) -> dict[EditKind, FitCounts]:
        fit_count = func.sum(case((edits.c.rung != "", 1), else_=0))
        conditions = (edits.c.tenant == self._tenant, edits.c.tenant == tenant, edits.c.model == model)
        query = select(edits.c.kind, fit_count, func.count()).where(*conditions)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query.group_by(edits.c.kind)).all()
        return {EditKind(kind): FitCounts(fitting, total) for kind, fitting, total in rows}

    def _change(self, change: Update, run_id: str) -> int:
        """Execute the update and return the number of changed rows, which is 0 or 1."""
        with self._database.connect_for_statement() as connection:
            return connection.execute(change, self._build_key(run_id)).rowcount

    def _build_key(self, run_id: str) -> dict[str, str]:
        return {"my_tenant": self._tenant, "my_id": run_id}

    def _mine(self, table: Table, run_id: str) -> tuple[ColumnElement[bool], ...]:
        return table.c.tenant == self._tenant, table.c.run_id == run_id


def _build_stop_columns(stop: DriveStop | None) -> dict[str, str]:
    """Return the columns that describe the stop."""
    if stop is None:
        return {"stopped": "", "stop_reason": ""}
    return {"stopped": stop.status.value, "stop_reason": _strip_zero_bytes(stop.reason)}


def _format_holder() -> str:
    return f"{platform.node()}/{os.getpid()}"


def _upgrade_artifact(row: Row[Any]) -> str:
    """Return a step's artifact as this version writes it, or unchanged if it cannot be read."""
    version = json.loads(row.state).get(STATE.key, 0)
    if version == STATE.version:
        return row.artifact
    try:
        data = STATE.upgrade({"now": {row.step: json.loads(row.artifact)}}, version)["now"][row.step]
        shape: Any = Attempt.model_fields[row.step].annotation
        return TypeAdapter[Any](shape).validate_json(json.dumps(data), extra="ignore").model_dump_json()
    except ValueError:
        return row.artifact


def _build_unknown_error(run_id: str) -> StoreError:
    return StoreError(f"there is no run '{run_id}'")


def _strip_zero_bytes(text: str) -> str:
    """Remove zero bytes, which Postgres cannot store in a text."""
    return text.replace("\0", "")
