"""Bare Temporal: a workflow whose activities make the same rows durable in the same segments, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity, workflow

QUEUES = {"think": "bare-think", "act": "bare-act"}


@dataclass(frozen=True)
class Segment:
    """Which rows of which run."""

    run: str
    begin: int
    end: int


@dataclass(frozen=True)
class Plan:
    run: str
    segments: list[tuple[str, int, int]]
    """The pool, and the first row and the one after the last."""


@workflow.defn(name="bare-run")
class BareRun:
    @workflow.run
    async def run(self, plan: Plan) -> int:
        for pool, begin, end in plan.segments:
            await workflow.execute_activity(
                "bare-insert",
                Segment(plan.run, begin, end),
                task_queue=QUEUES[pool],
                start_to_close_timeout=timedelta(minutes=5),
                heartbeat_timeout=timedelta(seconds=15),
            )
        return len(plan.segments)


class Inserts:
    def __init__(self, insert: Callable[[str, int], None]) -> None:
        self._insert = insert

    @activity.defn(name="bare-insert", no_thread_cancel_exception=True)
    def rows(self, segment: Segment) -> int:
        activity.heartbeat()
        for number in range(segment.begin, segment.end):
            self._insert(segment.run, number)
        return segment.end - segment.begin
