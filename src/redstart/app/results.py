"""The results that the Python API returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field

from redstart.app.exit_codes import exit_code
from redstart.app.proof.schema import Proof
from redstart.core.finding import Finding, FindingList
from redstart.core.report import Verdict
from redstart.core.run import RunState


class RunResult(RunState):
    """How a run ended: the final state of the run, with its diff and its proof.

    `diff` and `proof` are not part of what `model_dump` gives, which is the state alone.
    """

    diff: str = Field(default="", exclude=True)
    """The verified, unproven or partial change as a unified diff; empty if there is none."""
    proof: Proof | None = Field(default=None, exclude=True)
    """The recorded evidence; None if the run proposed no patch."""

    @classmethod
    def from_state(cls, state: RunState, diff: str, proof: Proof | None) -> Self:
        fields = {name: getattr(state, name) for name in RunState.model_fields}
        return cls(**fields, diff=diff, proof=proof)

    @property
    def ok(self) -> bool:
        """Whether the run did what was asked: `redstart` would exit with 0."""
        return exit_code(self) == 0

    @property
    def verdict(self) -> Verdict | None:
        """The test-by-test verdict on the last patch; None if no patch was tested."""
        return self.now.test.verdict if self.now.test else None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        yield None, (self.result or self.status).value
        yield "run_id", self.run_id
        yield "attempts", self.tries
        yield "cost", f"${self.spend.usd:.3f}"

    def __repr__(self) -> str:
        parts = (f"{name}={value}" if name else str(value) for name, value in self.__repr_args__())
        return f"<RunResult {' '.join(parts)}>"

    __str__ = __repr__


class AuditResult(tuple[Finding, ...]):
    """The findings of an audit, most serious first, and what the audit could not do."""

    run_id: str
    warnings: tuple[str, ...]
    """What the audit could not do, one sentence each: for example, model answers that could not be read."""
    unreviewed: tuple[str, ...]
    """Files that the model was asked to review without giving a readable answer."""

    @classmethod
    def from_state(cls, state: RunState, report: FindingList) -> Self:
        result = cls(report.findings)
        result.run_id = state.run_id
        result.warnings = report.warnings
        result.unreviewed = report.unreviewed
        return result

    @property
    def ok(self) -> bool:
        """Whether the audit was complete and found nothing."""
        return not self and not self.warnings

    def __repr__(self) -> str:
        return f"<AuditResult findings={len(self)} warnings={len(self.warnings)} run_id={self.run_id}>"
