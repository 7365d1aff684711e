"""Runs in SQL."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, Table, bindparam, case, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from redstart.core.change import EditKind, Tally
from redstart.core.errors import Fenced, StoreError
from redstart.core.events import Event
from redstart.core.learning import FailureRecord, FixCard
from redstart.core.run import RunState, Step
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.schema import GOAL_SHOWN, cards, edits, events, failures, runs, steps, told
from redstart.ports.store.port import Claim, Commit, Control, Holder, RunRow, StepRow, Told, Word

# Made once: putting a statement together costs more than running it.
_ADVANCE = (
    update(runs)
    .where(
        runs.c.id == bindparam("held_id"),
        runs.c.fence == bindparam("held_fence"),
        runs.c.version == bindparam("held_version"),
    )
    .returning(runs.c.control)
)
_ADD_STEP = insert(steps)
_ADD_EVENTS = insert(events)
_ADD_EDITS = insert(edits)
_SHOWN = [column for column in runs.c if column.name not in ("state", "first_state")]


class SqlStore:
    """`now` gives seconds since the epoch: when a run was last changed, and when a card was written."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def create(self, state: RunState, *, folder: str, created: datetime) -> None:
        spec = state.spec
        row = {
            "id": state.run_id,
            "tenant": spec.tenant,
            "mode": spec.mode.value,
            "goal": spec.goal[:GOAL_SHOWN],
            "repo": spec.repo,
            "folder": folder,
            "parent": spec.parent,
            "fence": 0,
            "control": Control.none.value,
            "holder": "",
            "created": created.timestamp(),
            **_progress(state, created.timestamp()),
        }
        with self._database.writing() as connection:
            try:
                connection.execute(insert(runs), {**row, "first_state": row["state"]})
            except IntegrityError as error:
                raise StoreError(f"there is a run {state.run_id} already") from error

    async def claim(self, run_id: str) -> Claim:
        taken = update(runs).where(runs.c.id == run_id).values(fence=runs.c.fence + 1, holder=_this_process())
        with self._database.writing() as connection:
            row = connection.execute(taken.returning(runs.c.state, runs.c.fence)).one_or_none()
        if row is None:
            raise _unknown(run_id)
        return Claim(parse(RunState, row.state), row.fence)

    async def release(self, run_id: str, fence: int) -> None:
        with self._database.writing() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id, runs.c.fence == fence).values(holder=""))

    async def holder(self, run_id: str) -> Holder | None:
        with self._database.reading() as connection:
            text = connection.execute(select(runs.c.holder).where(runs.c.id == run_id)).scalar()
        if not text:
            return None
        host, _, pid = text.rpartition("/")
        return Holder(host, int(pid))

    async def commit(self, commit: Commit, fence: int) -> Control:
        before, now = commit.before, self._now()
        progress = _progress(commit.after, now)
        step = {
            "run_id": before.run_id,
            "version": commit.after.version,
            "attempt": before.now.number,
            "step": commit.step.value,
            "artifact": commit.artifact,
            "state": progress["state"],
        }
        said = [{"run_id": before.run_id, "seq": event.seq, "body": event.model_dump_json()} for event in commit.events]
        with self._database.writing() as connection:
            control = _advance(connection, before, progress, fence)
            connection.execute(_ADD_STEP, step)
            if said:
                connection.execute(_ADD_EVENTS, said)
            if commit.remembered is not None:
                _keep(connection, cards, commit.remembered.card, before, now)
                _keep(connection, failures, commit.remembered.failure, before, now)
            _keep_edits(connection, commit)
        return control

    async def load(self, run_id: str) -> RunState:
        with self._database.reading() as connection:
            text = connection.execute(select(runs.c.state).where(runs.c.id == run_id)).scalar()
        if text is None:
            raise _unknown(run_id)
        return parse(RunState, text)

    async def first(self, run_id: str) -> RunState:
        with self._database.reading() as connection:
            text = connection.execute(select(runs.c.first_state).where(runs.c.id == run_id)).scalar()
        if text is None:
            raise _unknown(run_id)
        return parse(RunState, text)

    async def steps(self, run_id: str) -> list[StepRow]:
        query = select(steps).where(steps.c.run_id == run_id).order_by(steps.c.version)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            StepRow(row.version, row.attempt, Step(row.step), row.artifact, parse(RunState, row.state)) for row in rows
        ]

    async def events(self, run_id: str, after: int = -1) -> list[Event]:
        query = select(events.c.body).where(events.c.run_id == run_id, events.c.seq > after).order_by(events.c.seq)
        with self._database.reading() as connection:
            bodies = connection.execute(query).scalars().all()
        return [parse(Event, body) for body in bodies]

    async def runs(
        self, *, folder: str | None = None, prefix: str = "", limit: int = 50, errands: bool = False
    ) -> list[RunRow]:
        query = select(*_SHOWN).order_by(runs.c.created.desc(), runs.c.id.desc()).limit(limit)
        if folder is not None:
            query = query.where(runs.c.folder == folder)
        if prefix:
            # Not LIKE: whether that minds upper and lower case depends on the database.
            query = query.where(func.substr(runs.c.id, 1, len(prefix)) == prefix)
        if not errands and "." not in prefix:
            query = query.where(runs.c.id.notlike("%.%"))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            RunRow(
                run_id=row.id,
                mode=row.mode,
                status=row.status,
                result=row.result,
                goal=row.goal,
                repo=row.repo,
                folder=row.folder,
                created=datetime.fromtimestamp(row.created, UTC),
                updated=datetime.fromtimestamp(row.updated, UTC),
            )
            for row in rows
        ]

    async def control(self, run_id: str, control: Control) -> None:
        asked = update(runs).where(runs.c.id == run_id).values(control=control.value)
        with self._database.writing() as connection:
            if connection.execute(asked).rowcount == 0:
                raise _unknown(run_id)

    async def tell(self, run_id: str, word: Word, text: str, *, version: int) -> None:
        last = select(func.coalesce(func.max(told.c.number), -1)).where(told.c.run_id == run_id)
        row = {"run_id": run_id, "word": word.value, "text": text, "version": version, "time": self._now()}
        with self._database.writing() as connection:
            # The lock on the run's row is what keeps two tellers from taking one number where writers run at once.
            held = select(runs.c.id).where(runs.c.id == run_id).with_for_update()
            if connection.execute(held).first() is None:
                raise _unknown(run_id)
            connection.execute(insert(told).values(number=last.scalar_subquery() + 1), row)

    async def told(self, run_id: str) -> list[Told]:
        query = select(told).where(told.c.run_id == run_id).order_by(told.c.number)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [Told(Word(row.word), row.text, row.version, datetime.fromtimestamp(row.time, UTC)) for row in rows]

    async def tally(self, model: str, *, tenant: str) -> dict[EditKind, Tally]:
        fitted = func.sum(case((edits.c.rung != "", 1), else_=0))
        counted = select(edits.c.kind, fitted, func.count()).where(edits.c.tenant == tenant, edits.c.model == model)
        with self._database.reading() as connection:
            rows = connection.execute(counted.group_by(edits.c.kind)).all()
        return {EditKind(kind): Tally(fitting, tried) for kind, fitting, tried in rows}


def _this_process() -> str:
    return f"{platform.node()}/{os.getpid()}"


def _unknown(run_id: str) -> StoreError:
    return StoreError(f"there is no run {run_id}")


def _progress(state: RunState, now: float) -> dict[str, str | int | float]:
    """The columns that change from step to step."""
    return {
        "status": state.status.value,
        "result": "" if state.result is None else state.result.value,
        "version": state.version,
        "state": state.model_dump_json(),
        "updated": now,
    }


def _advance(connection: Connection, before: RunState, progress: dict[str, str | int | float], fence: int) -> Control:
    """Replaces the state, if the run is still held with `fence` and still stands where `before` does."""
    held = {"held_id": before.run_id, "held_fence": fence, "held_version": before.version}
    control = connection.execute(_ADVANCE, {**progress, **held}).scalar()
    if control is None:
        raise Fenced
    return Control(control)


def _was_kept(connection: Connection, table: Table, run: RunState) -> bool:
    """Whether the attempt left something in that table before."""
    of_attempt = (table.c.run_id == run.run_id, table.c.attempt == run.now.number)
    return connection.execute(select(table.c.run_id).where(*of_attempt)).first() is not None


def _keep(
    connection: Connection, table: Table, learned: FixCard | FailureRecord | None, run: RunState, now: float
) -> None:
    """Keeps what an attempt taught, once: what it left before stays as it is."""
    if learned is None or _was_kept(connection, table, run):
        return
    row = {
        "id": learned.id,
        "tenant": run.spec.tenant,
        "repo": run.spec.repo,
        "run_id": run.run_id,
        "attempt": run.now.number,
        "key": learned.error_signature,
        "family": learned.family,
        "body": learned.model_dump_json(),
        "created": now,
    }
    connection.execute(insert(table), row)


def _keep_edits(connection: Connection, commit: Commit) -> None:
    """Keeps what became of an answer's edits, once an attempt. Of a model that nobody can name nothing is learned."""
    run = commit.before
    if not commit.edits or not commit.model or _was_kept(connection, edits, run):
        return
    of_all = {
        "run_id": run.run_id,
        "attempt": run.now.number,
        "tenant": run.spec.tenant,
        "model": commit.model,
    }
    rows = [
        {**of_all, "number": number, "kind": one.kind.value, "rung": "" if one.rung is None else one.rung.value}
        for number, one in enumerate(commit.edits, 1)
    ]
    connection.execute(_ADD_EDITS, rows)
