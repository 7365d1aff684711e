"""Packages that a child run was allowed or installed pass to the parent, and so to the next child run."""

from __future__ import annotations

from redstart.core.change import Snapshot
from redstart.core.packages import Installed
from redstart.core.run import Action, Attempt, ChildTask, Decision, Limits, Mode, RunSpec, RunState, Status, Step, Suite
from redstart.flow.child_runs import create_child_run, get_child_result
from redstart.flow.route import settle

BASE = Snapshot(tree="t", base="t", pack="p")
MADE = Installed(asked="a", environment="e", locks={"requirements.lock": "l"})


def build_parent() -> RunState:
    spec = RunSpec(mode=Mode.improve, base=BASE, suite=Suite(runner="pytest", environment="own"))
    return RunState(run_id="p", spec=spec, base=BASE, now=Attempt(entry=Step.decide))


def test_packages_pass_between_parent_and_child_runs():
    decision = Decision(action=Action.spawn, reason="r", approved=("python:a",), installed=MADE)
    settled_parent = settle(build_parent(), Step.decide, decision)
    assert (settled_parent.approved, settled_parent.installed) == (("python:a",), MADE)
    child = create_child_run(settled_parent, ChildTask(number=2, mode=Mode.improve, base=BASE, limits=Limits()))
    assert (child.approved, child.installed) == (("python:a",), MADE)
    assert child.suited.suite.environment == "e"
    assert build_parent().suited.suite.environment == "own"
    child_result = get_child_result(child.model_copy(update={"status": Status.finished}))
    assert child_result is not None
    assert (child_result.approved, child_result.installed) == (("python:a",), MADE)
    assert settle(settled_parent, Step.decide, Decision(action=Action.spawn, reason="r")).installed == MADE
