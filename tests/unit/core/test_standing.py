"""The true status of a run, from its row, its lease and the process that drives it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from redstart.core.run import Status
from redstart.core.standing import LEASE, Control, DriveStop, RunHolder, RunRow, is_driven, status_of

NOW = 1_000_000.0
MOMENT = datetime.fromtimestamp(NOW, UTC)
HERE = RunHolder("here", 7)


def row(status: Status = Status.running, **over: object) -> RunRow:
    return RunRow("run-1", "fix", status, "", "", "shop", "/shop", MOMENT, MOMENT)._replace(**over)


def driven(run: RunRow, *, alive: bool = True, later: float = 0.0) -> bool:
    return is_driven(run, now=NOW + later, host="here", is_alive=lambda pid: alive)


@pytest.mark.parametrize(
    ("run", "is_held", "status"),
    [
        (row(), True, Status.running),
        (row(), False, Status.paused),
        (row(stop=DriveStop(Status.failed, "refused")), False, Status.failed),
        (row(stop=DriveStop(Status.queued)), False, Status.queued),
        (row(stop=DriveStop(Status.queued)), True, Status.running),
        (row(control=Control.cancel), False, Status.cancelled),
        (row(control=Control.cancel), True, Status.running),
        (row(control=Control.cancel, stop=DriveStop(Status.failed)), False, Status.cancelled),
        (row(control=Control.pause), False, Status.paused),
        (row(Status.needs_input), False, Status.needs_input),
        (row(Status.needs_input, control=Control.cancel), False, Status.cancelled),
        (row(Status.paused), True, Status.running),
        (row(Status.finished, control=Control.cancel), False, Status.finished),
    ],
)
def test_a_run_is_running_only_while_somebody_drives_it(run, is_held, status):
    assert status_of(run, driven=is_held) is status


def test_a_driver_is_alive_while_its_process_is_and_its_lease_holds():
    held = row(holder=HERE, beat=NOW)
    assert driven(held)
    assert not driven(held, alive=False)
    assert not driven(held, later=LEASE + 1), "another process may have its ID by now"
    assert not driven(row())


def test_of_a_driver_on_another_host_the_lease_alone_is_known():
    held = row(holder=RunHolder("elsewhere", 7), beat=NOW)
    assert driven(held, alive=False)
    assert not driven(held, alive=False, later=LEASE + 1)


def test_a_word_that_no_version_knew_is_refused():
    with pytest.raises(ValueError, match="sleeping"):
        Status("sleeping")
