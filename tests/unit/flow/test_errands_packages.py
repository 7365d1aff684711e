"""Packages that a child run was allowed or installed pass to the parent, and so to the next child run."""

from __future__ import annotations

from redstart.core.change import Snapshot
from redstart.core.packages import Installed
from redstart.core.run import Action, Attempt, ChildTask, Decision, Limits, Mode, RunSpec, RunState, Status, Step, Suite
from redstart.flow.errands import begun, ended
from redstart.flow.route import settle

BASE = Snapshot(tree="t", base="t", pack="p")
MADE = Installed(asked="a", environment="e", locks={"requirements.lock": "l"})


def parent() -> RunState:
    spec = RunSpec(mode=Mode.improve, base=BASE, suite=Suite(runner="pytest", environment="own"))
    return RunState(run_id="p", spec=spec, base=BASE, now=Attempt(entry=Step.decide))


def test_packages_go_up_and_down():
    decision = Decision(action=Action.spawn, reason="r", approved=("python:a",), installed=MADE)
    after = settle(parent(), Step.decide, decision)
    assert (after.approved, after.installed) == (("python:a",), MADE)
    child = begun(after, ChildTask(number=2, mode=Mode.improve, base=BASE, limits=Limits()))
    assert (child.approved, child.installed) == (("python:a",), MADE)
    assert child.suited.suite.environment == "e"
    assert parent().suited.suite.environment == "own"
    told = ended(child.model_copy(update={"status": Status.finished}))
    assert told is not None
    assert (told.approved, told.installed) == (("python:a",), MADE)
    assert settle(after, Step.decide, Decision(action=Action.spawn, reason="r")).installed == MADE
