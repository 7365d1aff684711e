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

    async def list_lessons(self) -> list[Lesson]:
        visible = or_(lessons.c.tenant == self._tenant, lessons.c.scope == LessonScope.everyone.value)
        query = select(lessons.c.body, lessons.c.status).where(visible).order_by(lessons.c.created, lessons.c.id)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        # The status column takes precedence: it quarantines the lessons of a refused run.
        return [parse(Lesson, row.body).model_copy(update={"status": LessonStatus(row.status)}) for row in rows]

    async def list_uses(self, lesson_ids: Sequence[str]) -> dict[str, list[LessonUse]]:
        uses_by_lesson: dict[str, list[LessonUse]] = {name: [] for name in lesson_ids}
        conditions = (uses.c.tenant == self._tenant, uses.c.lesson.in_(uses_by_lesson))
        with self._database.connect_for_reading() as connection:
            for row in connection.execute(select(uses).where(*conditions).order_by(uses.c.created, uses.c.run_id)):
                green = None if row.green is None else bool(row.green)
                use = LessonOutcome(probability=row.probability, shown=bool(row.shown), green=green, cost=row.cost)
                uses_by_lesson[row.lesson].append(LessonUse(use, row.created))
        return uses_by_lesson

    async def put(self, lesson: Lesson, *, unless_status: LessonStatus | None = None) -> bool:
        conditions = [lessons.c.tenant == self._tenant, lessons.c.id == lesson.id]
        if unless_status is not None:
            conditions.append(lessons.c.status != unless_status.value)
        values = {"body": lesson.model_dump_json(), "status": lesson.status.value, "scope": lesson.scope.value}
        with self._database.connect_for_statement() as connection:
            return bool(connection.execute(update(lessons).where(*conditions).values(values)).rowcount)

    async def preview_forget(self, lesson_id: str) -> ForgottenTexts | None:
        with self._database.connect_for_snapshot() as connection:
            same_lessons = self._find_same_lessons(connection, lesson_id)
            if not same_lessons:
                return None
            scrubbed_runs = self._make_scrubbed_runs(connection, same_lessons)
            scrubbed_runs.find_runs(
                KIND, [item.id for item in same_lessons], [item.provenance.run for item in same_lessons]
            )
        return scrubbed_runs.forgotten

    async def forget(self, lesson_id: str) -> ForgottenTexts | None:
        forgotten = None
        with self._database.connect_for_writing() as connection:
            if same_lessons := self._find_same_lessons(connection, lesson_id):
                ids = [item.id for item in same_lessons]
                scrubbed_runs = self._make_scrubbed_runs(connection, same_lessons)
                scrubbed_runs.scrub_runs(
                    scrubbed_runs.find_runs(KIND, ids, [item.provenance.run for item in same_lessons])
                )
                connection.execute(delete(uses).where(uses.c.tenant == self._tenant, uses.c.lesson.in_(ids)))
                connection.execute(delete(lessons).where(lessons.c.tenant == self._tenant, lessons.c.id.in_(ids)))
                forgotten = scrubbed_runs.forgotten
        sweep(self._database)
        return forgotten

    def _find_same_lessons(self, connection: Connection, lesson_id: str) -> list[Lesson]:
        """Return the lesson and those that say the same."""
        condition = or_(lessons.c.id == lesson_id, lessons.c.same_as == lesson_id)
        query = select(lessons.c.body).where(lessons.c.tenant == self._tenant, condition)
        return [parse(Lesson, body) for body in connection.execute(query).scalars()]

    def _make_scrubbed_runs(self, connection: Connection, same_lessons: Sequence[Lesson]) -> ScrubbedRuns:
        texts = [text for item in same_lessons for text in (item.when, item.advice)]
        return ScrubbedRuns(connection, self._tenant, JsonScrubber([item.id for item in same_lessons], texts))
