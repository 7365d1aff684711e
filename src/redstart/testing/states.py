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


def make_snapshot(**overrides: Any) -> Snapshot:
    tree = overrides.get("tree", "a" * 40)
    return Snapshot.model_validate({"tree": tree, "base": tree, "pack": "b" * 64, **overrides})


def make_spec(**overrides: Any) -> RunSpec:
    """Make the spec of a `fix` with pytest."""
    defaults = {"mode": Mode.fix, "base": make_snapshot(), "suite": Suite(runner="pytest"), "repo": "shop"}
    return RunSpec.model_validate({**defaults, **overrides})


def make_state(**overrides: Any) -> RunState:
    """Make the state of a new run. `base` defaults to that of the spec."""
    run_spec = overrides.get("spec") or make_spec()
    defaults = {"run_id": "run-1", "spec": run_spec, "base": run_spec.base, "now": Attempt(entry=Step.reproduce)}
    return RunState.model_validate({**defaults, **overrides})


def make_signature(**overrides: Any) -> Signature:
    defaults = {"exception": "KeyError", "message": "KeyError: 'price'", "frame": "shop/cart.py:Cart.total"}
    return Signature.model_validate({**defaults, **overrides})


def make_case(id: str = "tests/test_cart.py::test_total", outcome: Outcome = Outcome.failed, **overrides: Any) -> Case:  # noqa: A002
    defaults = {"id": id, "outcome": outcome, "message": "" if outcome is Outcome.passed else "KeyError: 'price'"}
    return Case.model_validate({**defaults, **overrides})


def report(failed: Sequence[str] = (), passed: int = 1, **overrides: Any) -> Report:
    """Make a pytest report in which these tests failed and `passed` tests passed."""
    defaults = {
        "runner": "pytest",
        "counts": OutcomeCounts(passed=passed, failed=len(failed)),
        "cases": tuple(make_case(item) for item in failed[:FIRST]),
        "cause": ExitCause.failed if failed else ExitCause.ok,
        "exit_code": 1 if failed else 0,
        "signature": make_signature() if failed else None,
    }
    return Report.model_validate({**defaults, **overrides})


def make_card(id: str = "card-1", failure_signature: Signature | None = None, **overrides: Any) -> FixCard:  # noqa: A002
    """Make a fix card for this signature."""
    failure = failure_signature or make_signature()
    defaults: dict[str, Any] = {
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
    return FixCard.model_validate({**defaults, **overrides})


def make_failure(id: str = "failure-1", failure_signature: Signature | None = None, **overrides: Any) -> FailureRecord:  # noqa: A002
    """Make the record of a failed attempt to fix this signature."""
    resolved_signature = failure_signature or make_signature()
    defaults = {
        "id": id,
        "error_signature": resolved_signature.key,
        "family": resolved_signature.family,
        "test_id": "tests/test_cart.py::test_total",
        "patch": "c" * 16,
        "what_failed": "The test is still red.",
    }
    return FailureRecord.model_validate({**defaults, **overrides})


def make_lesson(id: str = "lesson-1", failure_signature: Signature | None = None, **overrides: Any) -> Lesson:  # noqa: A002
    """Make a lesson from a verified run that had this signature."""
    defaults: dict[str, Any] = {
        "id": id,
        "when": "A total fails with KeyError on an item",
        "advice": "Read the key with a default instead of taking it for granted",
        "family": (failure_signature or make_signature()).family,
        "tenant": "home",
        "repo": "shop",
        "provenance": Provenance(repo="shop", commit="a" * 40, run=f"run of {id}", model="a:1", outcome="verified"),
        "made_at": 0.0,
    }
    return Lesson.model_validate({**defaults, **overrides})


def make_pattern(id: str = "pattern-1", **overrides: Any) -> SolutionPattern:  # noqa: A002
    """Make the pattern of a small program that a run created."""
    defaults: dict[str, Any] = {
        "id": id,
        "goal": "A command line tool that sorts a CSV file by a column.",
        "summary": "Sorting in one module, the command line in another.",
        "subtasks": ("Sort rows", "A command line"),
        "shape": (SolutionFile(path="csvsort/rows.py", role="module: sort_rows"),),
        "mode": "create",
        "outcome": "verified",
        "provenance": {"repo": "shop", "commit": "a" * 40, "run": "run-1", "model": "scripted"},
    }
    return SolutionPattern.model_validate({**defaults, **overrides})


def make_event(run: str = "run-1", seq: int = 0, **overrides: Any) -> Event:
    defaults = {"run": run, "seq": seq, "time": 0.0, "attempt": 1, "name": "reproduce", "phase": Phase.note}
    return Event.model_validate({**defaults, **overrides})


def commit(
    before: RunState,
    step: Step = Step.reproduce,
    *,
    artifact: str = "{}",
    events: int = 2,
    remembered: NewMemories | None = None,
    **changes: Any,
) -> StepCommit:
    """Make the commit of one step after `before`, with `events` events. `changes` are fields of the new state."""
    seqs = range(before.seq, before.seq + events)
    updates = {"version": before.version + 1, "seq": before.seq + events, "last": step, **changes}
    step_events = [make_event(before.run_id, seq, name=step.value, attempt=before.now.number) for seq in seqs]
    return StepCommit(before, before.model_copy(update=updates), step, artifact, step_events, remembered)


def record(call: CallPlace, **overrides: Any) -> JournalRecord:
    """Make the record of a model call whose fields differ from those of other calls."""
    default = JournalRecord(call, "model", f"hash of {call}", "d" * 64, f'{{"text": "{call}"}}', f"digest of {call}")
    return default._replace(**overrides)
