"""The true status of a run, from its row, its lease and the process that drives it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from redstart.core.run import Status
from redstart.core.run_status import LEASE, Control, DriveStop, RunHolder, RunRow, is_driven, resolve_status

NOW = 1_000_000.0
MOMENT = datetime.fromtimestamp(NOW, UTC)
HERE = RunHolder("here", 7)


def make_row(status: Status = Status.running, **changes: object) -> RunRow:
    return RunRow("run-1", "fix", status, "", "", "shop", "/shop", MOMENT, MOMENT)._replace(**changes)


def is_run_driven(run: RunRow, *, alive: bool = True, later: float = 0.0) -> bool:
    return is_driven(run, now=NOW + later, host="here", is_alive=lambda pid: alive)


@pytest.mark.parametrize(
    ("run", "is_held", "status"),
    [
        (make_row(), True, Status.running),
        (make_row(), False, Status.paused),
        (make_row(stop=DriveStop(Status.failed, "refused")), False, Status.failed),
        (make_row(stop=DriveStop(Status.queued)), False, Status.queued),
        (make_row(stop=DriveStop(Status.queued)), True, Status.running),
        (make_row(control=Control.cancel), False, Status.cancelled),
        (make_row(control=Control.cancel), True, Status.running),
        (make_row(control=Control.cancel, stop=DriveStop(Status.failed)), False, Status.cancelled),
        (make_row(control=Control.pause), False, Status.paused),
        (make_row(Status.needs_input), False, Status.needs_input),
        (make_row(Status.needs_input, control=Control.cancel), False, Status.cancelled),
        (make_row(Status.paused), True, Status.running),
        (make_row(Status.finished, control=Control.cancel), False, Status.finished),
    ],
)
def test_run_is_running_only_while_it_is_driven(run, is_held, status):
    assert resolve_status(run, has_driver=is_held) is status


def test_driver_is_alive_while_its_process_lives_and_its_lease_holds():
    held_row = make_row(holder=HERE, beat=NOW)
    assert is_run_driven(held_row)
    assert not is_run_driven(held_row, alive=False)
    assert not is_run_driven(held_row, later=LEASE + 1), "another process may have its ID by now"
    assert not is_run_driven(make_row())


def test_driver_on_another_host_is_judged_by_its_lease_alone():
    held_row = make_row(holder=RunHolder("elsewhere", 7), beat=NOW)
    assert is_run_driven(held_row, alive=False)
    assert not is_run_driven(held_row, alive=False, later=LEASE + 1)


def test_unknown_status_is_rejected():
    with pytest.raises(ValueError, match="sleeping"):
        Status("sleeping")
