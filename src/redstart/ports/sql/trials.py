"""Outcomes of evaluations, in SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Insert, select
from sqlalchemy.dialects import postgresql, sqlite

from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import evaluations, trials
from redstart.ports.trials.port import EvaluationTrial

_KEY = ["tenant", "evaluation", "task", "seed", "run"]


class SqlTrials:
    """The evaluations of the database's tenant. Each write is one statement, so that writers do not interfere.

    `now` returns seconds since the epoch, for the time when an evaluation begins.
    """

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database, self._tenant, self._clock = database, database.tenant, now
        upsert = postgresql.insert if database.is_postgres else sqlite.insert
        new, not_final = upsert(trials), trials.c.final == 0
        self._begin = upsert(evaluations).on_conflict_do_nothing()
        self._assign = new.on_conflict_do_update(
            index_elements=_KEY, set_={"run_id": new.excluded.run_id}, where=not_final
        )
        updates = {name: new.excluded[name] for name in ("outcome", "final")}
        self._settle = new.on_conflict_do_update(index_elements=_KEY, set_=updates, where=not_final)

    def begin(self, evaluation: str, plan: str) -> str:
        row = {"tenant": self._tenant, "name": evaluation, "plan": plan, "created": self._clock()}
        with self._database.connect_for_statement() as connection:
            connection.execute(self._begin, row)
        return self.plan(evaluation) or plan

    def plan(self, evaluation: str) -> str | None:
        conditions = (evaluations.c.tenant == self._tenant, evaluations.c.name == evaluation)
        with self._database.connect_for_reading() as connection:
            return connection.execute(select(evaluations.c.plan).where(*conditions)).scalar()

    def list_evaluations(self) -> list[str]:
        query = select(evaluations.c.name).where(evaluations.c.tenant == self._tenant).order_by(evaluations.c.name)
        with self._database.connect_for_reading() as connection:
            return list(connection.execute(query).scalars())

    def assign(self, evaluation: str, trial: EvaluationTrial, run_id: str) -> None:
        self._write(self._assign, evaluation, trial, run_id=run_id, outcome="", final=0)

    def get_assigned_runs(self, evaluation: str) -> dict[EvaluationTrial, str]:
        columns = (trials.c.task, trials.c.seed, trials.c.run, trials.c.run_id)
        query = select(*columns).where(*self._build_conditions(evaluation), trials.c.run_id != "")
        with self._database.connect_for_reading() as connection:
            return {EvaluationTrial(task, seed, run): run_id for task, seed, run, run_id in connection.execute(query)}

    def settle(self, evaluation: str, trial: EvaluationTrial, outcome: str, *, final: bool) -> None:
        self._write(self._settle, evaluation, trial, run_id="", outcome=outcome, final=int(final))

    def list_outcomes(self, evaluation: str) -> list[str]:
        query = select(trials.c.outcome).where(*self._build_conditions(evaluation), trials.c.outcome != "")
        with self._database.connect_for_reading() as connection:
            ordered = query.order_by(trials.c.seed, trials.c.run, trials.c.task)
            return list(connection.execute(ordered).scalars())

    def _write(self, statement: Insert, evaluation: str, trial: EvaluationTrial, **values: Any) -> None:
        row = {"tenant": self._tenant, "evaluation": evaluation, **trial._asdict(), **values}
        with self._database.connect_for_statement() as connection:
            connection.execute(statement, row)

    def _build_conditions(self, evaluation: str) -> tuple[ColumnElement[bool], ...]:
        return trials.c.tenant == self._tenant, trials.c.evaluation == evaluation
