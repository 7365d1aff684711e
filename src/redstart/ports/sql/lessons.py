"""Lessons in SQL. The commit of `remember` writes them; the commit of a run's last step writes their outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, or_, select, update

from redstart.core.lesson import Lesson, LessonOutcome, LessonScope, LessonStatus
from redstart.ports.memory.port import ForgottenTexts, LessonUse
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.schema import lessons, uses

KIND = "lessons"
"""The kind of the journaled calls that give lessons to runs."""


class SqlLessonStore:
    """The lessons that the database's tenant can see."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def lessons(self) -> list[Lesson]:
        seen = or_(lessons.c.tenant == self._tenant, lessons.c.scope == LessonScope.everyone.value)
        query = select(lessons.c.body, lessons.c.status).where(seen).order_by(lessons.c.created, lessons.c.id)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        # The status column takes precedence: it quarantines the lessons of a refused run.
        return [parse(Lesson, row.body).model_copy(update={"status": LessonStatus(row.status)}) for row in rows]

    async def uses(self, lesson_ids: Sequence[str]) -> dict[str, list[LessonUse]]:
        found: dict[str, list[LessonUse]] = {name: [] for name in lesson_ids}
        mine = (uses.c.tenant == self._tenant, uses.c.lesson.in_(found))
        with self._database.reading() as connection:
            for row in connection.execute(select(uses).where(*mine).order_by(uses.c.created, uses.c.run_id)):
                green = None if row.green is None else bool(row.green)
                use = LessonOutcome(probability=row.probability, shown=bool(row.shown), green=green, cost=row.cost)
                found[row.lesson].append(LessonUse(use, row.created))
        return found

    async def put(self, lesson: Lesson, *, unless: LessonStatus | None = None) -> bool:
        same = [lessons.c.tenant == self._tenant, lessons.c.id == lesson.id]
        if unless is not None:
            same.append(lessons.c.status != unless.value)
        values = {"body": lesson.model_dump_json(), "status": lesson.status.value, "scope": lesson.scope.value}
        with self._database.single() as connection:
            return bool(connection.execute(update(lessons).where(*same).values(values)).rowcount)

    async def told(self, lesson_id: str) -> ForgottenTexts | None:
        with self._database.steady() as connection:
            taught = self._taught(connection, lesson_id)
            if not taught:
                return None
            scrubbed = self._scrubbed(connection, taught)
            scrubbed.look(KIND, [item.id for item in taught], [item.provenance.run for item in taught])
        return scrubbed.forgotten

    async def forget(self, lesson_id: str) -> ForgottenTexts | None:
        gone = None
        with self._database.writing() as connection:
            if taught := self._taught(connection, lesson_id):
                ids = [item.id for item in taught]
                scrubbed = self._scrubbed(connection, taught)
                scrubbed.out_of_runs(scrubbed.look(KIND, ids, [item.provenance.run for item in taught]))
                connection.execute(delete(uses).where(uses.c.tenant == self._tenant, uses.c.lesson.in_(ids)))
                connection.execute(delete(lessons).where(lessons.c.tenant == self._tenant, lessons.c.id.in_(ids)))
                gone = scrubbed.forgotten
        sweep(self._database)
        return gone

    def _taught(self, connection: Connection, lesson_id: str) -> list[Lesson]:
        """Return the lesson and those that say the same."""
        same = or_(lessons.c.id == lesson_id, lessons.c.same_as == lesson_id)
        query = select(lessons.c.body).where(lessons.c.tenant == self._tenant, same)
        return [parse(Lesson, body) for body in connection.execute(query).scalars()]

    def _scrubbed(self, connection: Connection, taught: Sequence[Lesson]) -> ScrubbedRuns:
        said = [text for item in taught for text in (item.when, item.advice)]
        return ScrubbedRuns(connection, self._tenant, JsonScrubber([item.id for item in taught], said))
