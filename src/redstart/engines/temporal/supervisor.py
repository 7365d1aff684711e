"""The supervisor of one run: asks repeatedly for a driver with the right privilege, until the run has ended.

It holds nothing that is not in the store: if it is lost, a new one can be started. It runs in Temporal's sandbox for
workflows, so it imports little and reads no clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from redstart.core.run_status import HaltReason
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
"""The type of the activity."""
HEARTBEAT = timedelta(seconds=15)
"""Time without a heartbeat after which a worker is considered dead."""
LONGEST = timedelta(days=30)
"""Time limit of one activity. The run's own limits come first; this is for a driver that hangs but sends heartbeats."""
RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=60)
)
"""Retries without end: the retried problems are of a machine, a store or an endpoint, not of the run."""

_ENDS = (HaltReason.fenced, HaltReason.let_go, HaltReason.cancel)
_OUTCOME = SearchAttributeKey.for_keyword(OUTCOME)


@workflow.defn(name=SUPERVISOR)
class RunSupervisor:
    @workflow.init
    def __init__(self, watch: SupervisorOrder) -> None:
        self._watch = watch
        self._phase = "queued"
        self._last = DriveReport(HaltReason.none, "running")
        self._requested_halt = HaltReason.none
        self._going_on = False

    @workflow.run
    async def run(self, watch: SupervisorOrder) -> DriveReport:
        drives_at_start = watch.drives
        while True:
            report = await self._drive()
            # A signal that arrived while the drive ended counts too.
            halt_signal, self._requested_halt = self._requested_halt, HaltReason.none
            self._watch = replace(self._watch, drives=self._watch.drives + 1)
            if report.has_ended or (halt_signal or report.halt) in _ENDS:
                return self._end(report if report.has_ended else replace(report, halt=halt_signal or report.halt))
            if report.halt.needed:
                self._watch = replace(self._watch, pool=report.halt.needed)
            waits = halt_signal is HaltReason.pause or not (report.halt.needed or report.halt is HaltReason.drain)
            if waits and (end_reason := await self._wait(replace(report, halt=halt_signal or report.halt))):
                return self._end(replace(report, halt=end_reason))
            if workflow.info().is_continue_as_new_suggested() or self._watch.drives - drives_at_start >= watch.history:
                workflow.continue_as_new(self._watch)

    async def _drive(self) -> DriveReport:
        """Run one activity to its report. A signal ends it early."""
        # This drive may not see an answer that arrives from now on, so the answer is remembered.
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
        signal_task = asyncio.create_task(workflow.wait_condition(lambda: bool(self._requested_halt)))
        await workflow.wait([drive, signal_task], return_when=asyncio.FIRST_COMPLETED)
        signal_task.cancel()
        if not drive.done():
            # A driver in a step finishes it and reports; an activity that waits for a worker ends at once.
            drive.cancel()
        try:
            return await drive
        except (ActivityError, asyncio.CancelledError) as error:
            if self._requested_halt and is_cancelled_exception(error):
                return DriveReport(self._requested_halt, "running")
            return DriveReport(
                HaltReason.trouble, "running", reason=f"no driver could say how it ended: {error}"[:REASON]
            )

    async def _wait(self, report: DriveReport) -> HaltReason:
        """Wait until the run can continue. Return the reason if the supervisor must end instead."""
        self._phase, self._last = "waits", report
        _set_outcome(report.outcome)
        await workflow.wait_condition(lambda: self._going_on or self._requested_halt in _ENDS)
        halt_signal, self._requested_halt = self._requested_halt, HaltReason.none
        return halt_signal if halt_signal in _ENDS else HaltReason.none

    def _end(self, report: DriveReport) -> DriveReport:
        self._phase, self._last = "ended", report
        _set_outcome(report.outcome)
        return report

    @workflow.signal
    def go_on(self) -> None:
        """Continue: the run was answered or repaired, or must not wait any longer."""
        self._going_on = True

    @workflow.signal
    def pause(self) -> None:
        self._requested_halt = self._requested_halt or HaltReason.pause

    @workflow.signal
    def cancel(self) -> None:
        self._requested_halt = HaltReason.cancel

    @workflow.signal
    def let_go(self) -> None:
        """End the supervisor: the run is driven elsewhere."""
        self._requested_halt = HaltReason.let_go

    @workflow.query
    def standing(self) -> SupervisorState:
        last_report = self._last
        return SupervisorState(
            self._phase, self._watch.pool, last_report.halt, last_report.reason[:REASON], self._watch.drives
        )


def _set_outcome(outcome: str) -> None:
    """Set the outcome as a search attribute, by which runs can be listed."""
    workflow.upsert_search_attributes([_OUTCOME.value_set(outcome)])  # pyright: ignore[reportUnknownMemberType]
