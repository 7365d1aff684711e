"""The jobs behind the functions of the Python API that judge code and store no run."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from redstart.app.api_jobs import load_settings, refuse_unknown
from redstart.app.api_options import Listener, PathLike, SandboxOptions, TriageOptions, VerifyOptions
from redstart.app.settings import Settings
from redstart.app.triage.triage import TriageRequest, triage
from redstart.app.verify.revisions import RevisionRequest
from redstart.app.verify.suite_specs import SuiteOptions
from redstart.app.verify.verify import VerifyRequest, verify
from redstart.app.wire import AppContext, open_app
from redstart.core.events import Progress
from redstart.core.triage import Triage
from redstart.core.verification import ProofRequirement, Verification

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportJob(Generic[T]):
    settings: Settings
    options: SandboxOptions
    work: Callable[[AppContext], Awaitable[T]]
    on_event: Listener | None = None

    async def carry_out(self, listen: Listener | None) -> T:
        sandbox = self.options.get("sandbox")
        with open_app(self.settings, listen=listen) as app:
            return await self.work(app.with_sandbox(None if isinstance(sandbox, str) else sandbox))


def verify_job(path: PathLike, options: VerifyOptions) -> ReportJob[Verification]:
    refuse_unknown("verify", options, VerifyOptions)
    settings = load_settings({**options, "verify": options.get("level")}, Path(path))
    patch, base_junit = options.get("patch"), options.get("base_junit")
    request = VerifyRequest(
        RevisionRequest(
            options.get("base") or "",
            options.get("head") or "",
            None if patch is None else Path(patch),
            options.get("staged", False),
        ),
        ProofRequirement(options.get("require") or ProofRequirement.no_worse),
        settings.verify,
        tuple(options.get("accept", ())),
        _choose_command(settings, options),
        options.get("junit") or "",
        (*settings.tests.files, *options.get("test_files", ())),
        options.get("python"),
        options.get("max_minutes"),
        options.get("mutants"),
        base_junit=None if base_junit is None else Path(base_junit),
    )
    return ReportJob(settings, options, lambda app: verify(app, Path(path), request, report=_ignore_progress))


def triage_job(path: PathLike, options: TriageOptions) -> ReportJob[Triage]:
    refuse_unknown("triage", options, TriageOptions)
    settings = load_settings(options, Path(path))
    junit, log = options.get("junit"), options.get("log")
    request = TriageRequest(
        RevisionRequest(options.get("base") or "", options.get("head") or ""),
        SuiteOptions(_choose_command(settings, options), python=options.get("python")),
        None if junit is None else Path(junit),
        None if log is None else Path(log),
        options.get("bisect", False),
    )
    return ReportJob(settings, options, lambda app: triage(app, Path(path), request, report=_ignore_progress))


def _choose_command(settings: Settings, options: VerifyOptions | TriageOptions) -> tuple[str, ...]:
    return tuple(options.get("test_command") or shlex.split(settings.tests.command))


def _ignore_progress(progress: Progress) -> None: ...
