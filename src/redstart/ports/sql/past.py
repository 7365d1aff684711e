"""Many runs at once, for counting: some hundred of them a page, and four queries a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, or_, select

from redstart.core.events import Event, Phase
from redstart.core.formats import current_status
from redstart.core.run import Status, Step
from redstart.core.run_options import RunOptions
from redstart.core.standing import Control, Holder, RunRow, Stop
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.journal import record_of
from redstart.ports.sql.schema import events, journal, runs, steps
from redstart.ports.store.port.journal import Record
from redstart.ports.store.port.runs import Past

PAGE = 200
SHOWN = [column for column in runs.c if column.name not in ("state", "first_state")]
"""What a row of the list is made of."""


def run_row(row: Row[Any]) -> RunRow:
    return RunRow(
        run_id=row.id,
        mode=row.mode,
        status=Status(current_status(row.status, row.result)),
        result=row.result,
        goal=row.goal,
        repo=row.repo,
        folder=row.folder,
        created=datetime.fromtimestamp(row.created, UTC),
        updated=datetime.fromtimestamp(row.updated, UTC),
        control=Control(row.control),
        holder=holder_of(row.holder),
        beat=row.beat,
        stop=Stop(Status(row.stopped), row.stop_reason) if row.stopped else None,
        options=parse(RunOptions, row.options) if row.options else None,
    )


def holder_of(text: str) -> Holder | None:
    if not text:
        return None
    host, _, pid = text.rpartition("/")
    return Holder(host, int(pid))


def pages(database: Database, since: datetime | None, size: int = PAGE) -> Iterator[list[Past]]:
    """What `Store.past` gives, a page at a time; between two pages nothing is held open."""
    query = select(*SHOWN).where(runs.c.tenant == database.tenant).order_by(runs.c.created, runs.c.id).limit(size)
    if since is not None:
        query = query.where(runs.c.created >= since.timestamp())
    following = query
    while True:
        with database.reading() as connection:
            rows = connection.execute(following).all()
            found = _pasts(connection, database.tenant, rows) if rows else []
        if found:
            yield found
        if len(rows) < size:
            return
        last = rows[-1]
        later = and_(runs.c.created == last.created, runs.c.id > last.id)
        following = query.where(or_(runs.c.created > last.created, later))


def _pasts(connection: Connection, tenant: str, rows: Sequence[Row[Any]]) -> list[Past]:
    ids = [row.id for row in rows]
    ends: dict[str, list[Event]] = defaultdict(list)
    mine = (events.c.tenant == tenant, events.c.run_id.in_(ids))
    # The database only sorts out most of the others: what the phase is, the event itself says.
    phase = events.c.body.contains(f'"phase":"{Phase.end.value}"', autoescape=True)
    for row in connection.execute(select(events.c.run_id, events.c.body).where(*mine, phase).order_by(events.c.seq)):
        event = parse(Event, row.body)
        if event.phase is Phase.end:
            ends[row.run_id].append(event)
    reproduced: dict[str, list[str]] = defaultdict(list)
    mine = (steps.c.tenant == tenant, steps.c.run_id.in_(ids), steps.c.step == Step.reproduce.value)
    for row in connection.execute(select(steps.c.run_id, steps.c.artifact).where(*mine).order_by(steps.c.version)):
        reproduced[row.run_id].append(row.artifact)
    answers: dict[str, list[Record]] = defaultdict(list)
    mine = (journal.c.tenant == tenant, journal.c.run_id.in_(ids), journal.c.kind == "model")
    for row in connection.execute(select(journal).where(*mine).order_by(journal.c.attempt, journal.c.position)):
        answers[row.run_id].append(record_of(row))
    return [Past(run_row(row), ends[row.id], reproduced[row.id], answers[row.id]) for row in rows]
