"""One run's supervisor: asks for a driver of the right privilege, again and again, until the run has ended.

It holds nothing that the store does not: lost, it can be started anew. It runs in Temporal's sandbox for workflows,
so it imports little and reads no clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from redstart.core.standing import HaltReason
    from redstart.engines.temporal.orders import (
        OUTCOME,
        QUEUES,
        REASON,
        SUPERVISOR,
        DriveReport,
        SupervisorOrder,
        SupervisorState,
    )

DRIVE = "redstart-drive"
"""The activity's type."""
HEARTBEAT = timedelta(seconds=15)
"""A worker that has not been heard of for so long is taken for dead."""
LONGEST = timedelta(days=30)
"""Of one activity. The run's own limits come first; this is for a driver that hangs and still beats."""
RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=60)
)
"""For ever: what is retried is trouble of a machine, a store or an endpoint, and none of it is the run's."""

_ENDS = (HaltReason.fenced, HaltReason.let_go, HaltReason.cancel)
_OUTCOME = SearchAttributeKey.for_keyword(OUTCOME)


@workflow.defn(name=SUPERVISOR)
class RunSupervisor:
    @workflow.init
    def __init__(self, watch: SupervisorOrder) -> None:
        self._watch = watch
        self._phase = "queued"
        self._last = DriveReport(HaltReason.none, "running")
        self._told = HaltReason.none
        self._going_on = False

    @workflow.run
    async def run(self, watch: SupervisorOrder) -> DriveReport:
        begun = watch.drives
        while True:
            report = await self._drive()
            # What was told while the drive came to its end counts too.
            told, self._told = self._told, HaltReason.none
            self._watch = replace(self._watch, drives=self._watch.drives + 1)
            if report.ended or (told or report.halt) in _ENDS:
                return self._end(report if report.ended else replace(report, halt=told or report.halt))
            if report.halt.needed:
                self._watch = replace(self._watch, pool=report.halt.needed)
            waits = told is HaltReason.pause or not (report.halt.needed or report.halt is HaltReason.drain)
            if waits and (over := await self._wait(replace(report, halt=told or report.halt))):
                return self._end(replace(report, halt=over))
            if workflow.info().is_continue_as_new_suggested() or self._watch.drives - begun >= watch.history:
                workflow.continue_as_new(self._watch)

    async def _drive(self) -> DriveReport:
        """One activity, to its report; ended early where somebody says so."""
        # An answer that comes from here on may be one that this drive does not see: it is remembered.
        self._phase, self._going_on = "queued", False
        drive = workflow.start_activity(
            DRIVE,
            self._watch.order,
            task_queue=QUEUES[self._watch.pool],
            result_type=DriveReport,
            start_to_close_timeout=LONGEST,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RETRIES,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            priority=Priority(fairness_key=self._watch.order.tenant),
        )
        told = asyncio.create_task(workflow.wait_condition(lambda: bool(self._told)))
        await workflow.wait([drive, told], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not drive.done():
            # A driver that is at a step ends it and says so; one that waits for a worker ends here and now.
            drive.cancel()
        try:
            return await drive
        except (ActivityError, asyncio.CancelledError) as error:
            if self._told and is_cancelled_exception(error):
                return DriveReport(self._told, "running")
            return DriveReport(
                HaltReason.trouble, "running", reason=f"no driver could say how it ended: {error}"[:REASON]
            )

    async def _wait(self, report: DriveReport) -> HaltReason:
        """Until the run is to go on; else why it is over here."""
        self._phase, self._last = "waits", report
        _tell(report.outcome)
        await workflow.wait_condition(lambda: self._going_on or self._told in _ENDS)
        told, self._told = self._told, HaltReason.none
        return told if told in _ENDS else HaltReason.none

    def _end(self, report: DriveReport) -> DriveReport:
        self._phase, self._last = "ended", report
        _tell(report.outcome)
        return report

    @workflow.signal
    def go_on(self) -> None:
        """The run was answered, mended or is not to wait any more."""
        self._going_on = True

    @workflow.signal
    def pause(self) -> None:
        self._told = self._told or HaltReason.pause

    @workflow.signal
    def cancel(self) -> None:
        self._told = HaltReason.cancel

    @workflow.signal
    def let_go(self) -> None:
        """Somebody drives the run elsewhere."""
        self._told = HaltReason.let_go

    @workflow.query
    def standing(self) -> SupervisorState:
        last = self._last
        return SupervisorState(self._phase, self._watch.pool, last.halt, last.reason[:REASON], self._watch.drives)


def _tell(outcome: str) -> None:
    """Makes the outcome something that runs can be listed by."""
    workflow.upsert_search_attributes([_OUTCOME.value_set(outcome)])  # pyright: ignore[reportUnknownMemberType]
