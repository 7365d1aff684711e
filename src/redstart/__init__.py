"""Redstart: a coding agent that starts red and ends green, or says honestly why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redstart.app.api import (
        aaudit,
        acreate,
        afix,
        aimprove,
        aresume,
        atriage,
        audit,
        averify,
        create,
        fix,
        improve,
        resume,
        start_audit,
        start_create,
        start_fix,
        start_improve,
        start_resume,
        triage,
        verify,
    )
    from redstart.app.api_options import (
        AuditOptions,
        CreateOptions,
        FixOptions,
        ImproveOptions,
        ResumeOptions,
        TriageOptions,
        VerifyOptions,
    )
    from redstart.app.live_run import Run
    from redstart.app.proof.schema import Proof
    from redstart.app.results import AuditResult, RunResult
    from redstart.core.chat import Answer, Ask, Usage
    from redstart.core.errors import (
        BlobMissing,
        BudgetExceeded,
        ConfigError,
        Fenced,
        InternalError,
        ModelBusy,
        ModelError,
        ModelGarbled,
        ModelRefused,
        ModelTimeout,
        ModelUnreachable,
        NewerFormat,
        PolicyViolation,
        PortError,
        RedstartError,
        ReplayDiverged,
        SandboxDied,
        SandboxUnavailable,
        StoreError,
    )
    from redstart.core.events import Event
    from redstart.core.finding import Finding
    from redstart.core.report import Verdict
    from redstart.core.run import Limits, RunSpec, RunState
    from redstart.core.shell import Completed, Execution
    from redstart.core.triage import Triage
    from redstart.core.verification import Verification
    from redstart.ports.model.port import Model
    from redstart.ports.sandbox.port import Sandbox, Workspaces

    __version__: str

__all__ = [
    "Answer",
    "Ask",
    "AuditOptions",
    "AuditResult",
    "BlobMissing",
    "BudgetExceeded",
    "Completed",
    "ConfigError",
    "CreateOptions",
    "Event",
    "Execution",
    "Fenced",
    "Finding",
    "FixOptions",
    "ImproveOptions",
    "InternalError",
    "Limits",
    "Model",
    "ModelBusy",
    "ModelError",
    "ModelGarbled",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnreachable",
    "NewerFormat",
    "PolicyViolation",
    "PortError",
    "Proof",
    "RedstartError",
    "ReplayDiverged",
    "ResumeOptions",
    "Run",
    "RunResult",
    "RunSpec",
    "RunState",
    "Sandbox",
    "SandboxDied",
    "SandboxUnavailable",
    "StoreError",
    "Triage",
    "TriageOptions",
    "Usage",
    "Verdict",
    "Verification",
    "VerifyOptions",
    "Workspaces",
    "__version__",
    "aaudit",
    "acreate",
    "afix",
    "aimprove",
    "aresume",
    "atriage",
    "audit",
    "averify",
    "create",
    "fix",
    "improve",
    "resume",
    "start_audit",
    "start_create",
    "start_fix",
    "start_improve",
    "start_resume",
    "triage",
    "verify",
]

_HOMES = (
    *("core.errors", "core.events", "core.chat", "core.finding", "core.run", "core.report", "core.shell"),
    *("core.triage", "core.verification"),
    *("ports.model.port", "ports.sandbox.port", "app.api_options", "app.live_run", "app.results", "app.api"),
)
"""The modules to search for a public name, fast-loading ones first."""


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that importing the package alone is fast."""
    if name not in __all__:
        raise AttributeError(f"module 'redstart' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("redstart")
    else:
        from importlib import import_module

        homes = (import_module(f"redstart.{module}") for module in _HOMES)
        value = next(getattr(module, name) for module in homes if hasattr(module, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
