"""Results of evaluations: the contract, separate by tenant, written by two processes at once, and safe from a kill."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.ports.sql.engine import Database
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.trials.port import EvaluationTrial
from redstart.testing.contracts.store import Clock
from redstart.testing.contracts.trials import FIRST, TrialsContract

WRITER = """
import os, signal, sys
from pathlib import Path
from redstart.ports.sql.engine import Database
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.trials.port import EvaluationTrial
where, name = sys.argv[1:]
with Database.open(where if "://" in where else Path(where)) as database:
    trials = SqlTrials(database, lambda: 0.0)
    print("ready", flush=True)
    sys.stdin.readline()
    trials.begin("one", name)
    for number in range(40):
        for task in (f"{name} {number}", f"both {number}"):
            trials.assign("one", EvaluationTrial(task, 0, 1), f"{name} run")
            trials.settle("one", EvaluationTrial(task, 0, 1), f"{name} {task}", final=True)
    # What was written is there although nobody closes anything.
    os.kill(os.getpid(), signal.SIGKILL)
"""


class TestSqlTrials(TrialsContract):
    @pytest.fixture
    def trials(self, database: Database) -> SqlTrials:
        return SqlTrials(database, Clock())


def test_tenants_have_separate_evaluations(database: Database) -> None:
    own_trials, other_trials = SqlTrials(database, Clock()), SqlTrials(database.for_tenant("other"), Clock())
    for trials, label in ((own_trials, "mine"), (other_trials, "others")):
        assert trials.begin("one", label) == label
        trials.assign("one", FIRST, label)
        trials.settle("one", FIRST, label, final=True)
    for trials, label in ((own_trials, "mine"), (other_trials, "others")):
        assert (trials.plan("one"), trials.get_assigned_runs("one"), trials.list_outcomes("one")) == (
            label,
            {FIRST: label},
            [label],
        )
    assert SqlTrials(database.for_tenant("third"), Clock()).list_evaluations() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_concurrent_writes_of_two_processes_are_all_kept(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    new: Callable[[], str] | None = request.getfixturevalue("new_postgres") if kind == "postgres" else None
    location = new() if new else str(tmp_path / "store.db")
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, location, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=300)[0] for writer in writers] == ["", ""]
    assert [writer.returncode for writer in writers] == [-9, -9]
    with Database.open(location if "://" in location else Path(location)) as database:
        trials = SqlTrials(database, Clock())
        assert trials.plan("one") in ("left", "right")
        tasks = sorted(f"{name} {number}" for name in ("left", "right", "both") for number in range(40))
        assert sorted(trials.get_assigned_runs("one")) == [EvaluationTrial(task, 0, 1) for task in tasks]
        outcomes = trials.list_outcomes("one")
        assert [outcome.partition(" ")[2] for outcome in outcomes] == tasks
        assert {outcome.split()[0] for outcome in outcomes if "both" not in outcome} == {"left", "right"}
