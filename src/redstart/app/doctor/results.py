"""The result of one doctor check, and of all of them."""

from __future__ import annotations

import re
from enum import StrEnum

from redstart.core.frozen import FrozenValue

VERSION = 1


class Health(StrEnum):
    ok = "ok"
    warn = "warn"
    """Redstart works, but not as well as it could, or not for everything."""
    fail = "fail"
    absent = "-"
    """An optional part that is not installed or not set."""


class DoctorCheck(FrozenValue):
    group: str
    name: str
    health: Health
    detail: str
    remedy: str = ""


class Examination(FrozenValue):
    """All checks, by group. `v` changes when a field is removed or changes its meaning."""

    v: int = VERSION
    ok: bool
    """Whether no check failed, so that a run can start."""
    checks: tuple[DoctorCheck, ...]

    @property
    def summary(self) -> str:
        """`ready`, or `not ready` with the rows that failed."""
        failed = [
            f"{check.name} {_extract_first_clause(check.detail)}"
            for check in self.checks
            if check.health is Health.fail
        ]
        return f"not ready: {'; '.join(failed)}" if failed else "ready"


def build_examination(checks: tuple[DoctorCheck, ...]) -> Examination:
    return Examination(ok=all(check.health is not Health.fail for check in checks), checks=checks)


def _extract_first_clause(detail: str) -> str:
    return re.split(r"[;(\n]|\. ", detail, maxsplit=1)[0].strip().removesuffix(".")
