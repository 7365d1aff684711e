"""Small valid values for tests. Fields that a test does not set have defaults; misspelled fields are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redstart.core.change import Snapshot
from redstart.core.events import Event, Phase
from redstart.core.learning import FailureRecord, FixCard, NewMemories, Signature
from redstart.core.lesson import Lesson, Provenance
from redstart.core.pattern import SolutionFile, SolutionPattern
from redstart.core.report import FIRST, Case, Outcome, OutcomeCounts, Report
from redstart.core.run import Attempt, Mode, RunSpec, RunState, Step, Suite
from redstart.core.shell import ExitCause
from redstart.ports.store.port.journal import CallPlace, JournalRecord
from redstart.ports.store.port.runs import StepCommit


def snapshot(**over: Any) -> Snapshot:
    tree = over.get("tree", "a" * 40)
    return Snapshot.model_validate({"tree": tree, "base": tree, "pack": "b" * 64, **over})


def spec(**over: Any) -> RunSpec:
    """Make the spec of a `fix` with pytest."""
    plain = {"mode": Mode.fix, "base": snapshot(), "suite": Suite(runner="pytest"), "repo": "shop"}
    return RunSpec.model_validate({**plain, **over})


def state(**over: Any) -> RunState:
    """Make the state of a new run. `base` defaults to that of the spec."""
    asked = over.get("spec") or spec()
    plain = {"run_id": "run-1", "spec": asked, "base": asked.base, "now": Attempt(entry=Step.reproduce)}
    return RunState.model_validate({**plain, **over})


def signature(**over: Any) -> Signature:
    plain = {"exception": "KeyError", "message": "KeyError: 'price'", "frame": "shop/cart.py:Cart.total"}
    return Signature.model_validate({**plain, **over})


def case(id: str = "tests/test_cart.py::test_total", outcome: Outcome = Outcome.failed, **over: Any) -> Case:  # noqa: A002
    plain = {"id": id, "outcome": outcome, "message": "" if outcome is Outcome.passed else "KeyError: 'price'"}
    return Case.model_validate({**plain, **over})


def report(red: Sequence[str] = (), passed: int = 1, **over: Any) -> Report:
    """Make a pytest report in which these tests failed and `passed` tests passed."""
    plain = {
        "runner": "pytest",
        "counts": OutcomeCounts(passed=passed, failed=len(red)),
        "cases": tuple(case(item) for item in red[:FIRST]),
        "cause": ExitCause.failed if red else ExitCause.ok,
        "exit_code": 1 if red else 0,
        "signature": signature() if red else None,
    }
    return Report.model_validate({**plain, **over})


def card(id: str = "card-1", of: Signature | None = None, **over: Any) -> FixCard:  # noqa: A002
    """Make a fix card for this signature."""
    failure = of or signature()
    plain: dict[str, Any] = {
        "id": id,
        "summary": "An item without a price broke the total.",
        "root_cause": "The price was taken for granted.",
        "fix": "Items without a price count as 0.",
        "verification": "1 test fixed, nothing else changed",
        "error_signature": failure.key,
        "family": failure.family,
        "files_changed": ("shop/cart.py",),
        "debug_steps": (),
        "outcome": "verified",
        "provenance": {},
    }
    return FixCard.model_validate({**plain, **over})


def failure(id: str = "failure-1", of: Signature | None = None, **over: Any) -> FailureRecord:  # noqa: A002
    """Make the record of a failed attempt to fix this signature."""
    seen = of or signature()
    plain = {
        "id": id,
        "error_signature": seen.key,
        "family": seen.family,
        "test_id": "tests/test_cart.py::test_total",
        "patch": "c" * 16,
        "what_failed": "The test is still red.",
    }
    return FailureRecord.model_validate({**plain, **over})


def lesson(id: str = "lesson-1", of: Signature | None = None, **over: Any) -> Lesson:  # noqa: A002
    """Make a lesson from a verified run that had this signature."""
    plain: dict[str, Any] = {
        "id": id,
        "when": "A total fails with KeyError on an item",
        "advice": "Read the key with a default instead of taking it for granted",
        "family": (of or signature()).family,
        "tenant": "home",
        "repo": "shop",
        "provenance": Provenance(repo="shop", commit="a" * 40, run=f"run of {id}", model="a:1", outcome="verified"),
        "made_at": 0.0,
    }
    return Lesson.model_validate({**plain, **over})


def pattern(id: str = "pattern-1", **over: Any) -> SolutionPattern:  # noqa: A002
    """Make the pattern of a small program that a run created."""
    plain: dict[str, Any] = {
        "id": id,
        "goal": "A command line tool that sorts a CSV file by a column.",
        "summary": "Sorting in one module, the command line in another.",
        "subtasks": ("Sort rows", "A command line"),
        "shape": (SolutionFile(path="csvsort/rows.py", role="module: sort_rows"),),
        "mode": "create",
        "outcome": "verified",
        "provenance": {"repo": "shop", "commit": "a" * 40, "run": "run-1", "model": "scripted"},
    }
    return SolutionPattern.model_validate({**plain, **over})


def event(run: str = "run-1", seq: int = 0, **over: Any) -> Event:
    plain = {"run": run, "seq": seq, "time": 0.0, "attempt": 1, "name": "reproduce", "phase": Phase.note}
    return Event.model_validate({**plain, **over})


def commit(
    before: RunState,
    step: Step = Step.reproduce,
    *,
    artifact: str = "{}",
    events: int = 2,
    remembered: NewMemories | None = None,
    **after: Any,
) -> StepCommit:
    """Make the commit of one step after `before`, with `events` events. `after` are fields of the new state."""
    seqs = range(before.seq, before.seq + events)
    moved = {"version": before.version + 1, "seq": before.seq + events, "last": step, **after}
    said = [event(before.run_id, seq, name=step.value, attempt=before.now.number) for seq in seqs]
    return StepCommit(before, before.model_copy(update=moved), step, artifact, said, remembered)


def record(call: CallPlace, **over: Any) -> JournalRecord:
    """Make the record of a model call whose fields differ from those of other calls."""
    plain = JournalRecord(call, "model", f"hash of {call}", "d" * 64, f'{{"text": "{call}"}}', f"digest of {call}")
    return plain._replace(**over)
