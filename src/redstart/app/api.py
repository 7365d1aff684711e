"""The Python API: the commands as functions.

Each function has a variant for a running event loop (`fix`, `afix`). Those that start a run have a third form that
returns a `Run` with its events (`start_fix`). `api_options` defines their options once.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar, Unpack

from redstart.app.api_jobs import ApiJob, audit_job, create_job, fix_job, improve_job, resume_job
from redstart.app.api_options import (
    AuditOptions,
    CreateOptions,
    FixOptions,
    ImproveOptions,
    PathLike,
    ResumeOptions,
    TriageOptions,
    VerifyOptions,
)
from redstart.app.api_reports import ReportJob, triage_job, verify_job
from redstart.app.live_run import Run
from redstart.app.results import AuditResult, RunResult
from redstart.core.errors import ConfigError
from redstart.core.triage import Triage
from redstart.core.verification import Verification

T = TypeVar("T")


def fix(path: PathLike = ".", **options: Unpack[FixOptions]) -> RunResult:
    """Make the failing tests of a repo pass. The repo is not changed.

    **Parameters:**

    * **path** - The repo, or a directory in it.
    * **model** - *(optional)* `provider:name`, or an object with the method of `redstart.Model`.
    * **sandbox** - *(optional)* The name of a sandbox, an object with the members of `redstart.Sandbox`, or a callable
    that makes one from a `redstart.Workspaces` and a scratch directory.
    * **limits** - *(optional)* A `redstart.Limits`: attempts, dollars, minutes and tokens.
    * **reflect** - *(optional)* `auto`, `always` or `never`: when the model is asked why an attempt failed.
    * **test_command** - *(optional)* The command that runs the tests, as a tuple of words.
    * **targets** - *(optional)* Test IDs, files or directories to fix; by default every test that fails.
    * **session** - *(optional)* Let the model try its edits with tools before it submits.
    * **fresh** - *(optional)* Start each attempt from the original code.
    * **all_red** - *(optional)* Make every failing test a target; set none aside as not this code's fault.
    * **candidates** - *(optional)* How many child runs try the same fix, within the limits of the run.
    * **escalate** - *(optional)* Let the fast model write the patches of all candidates but the last.
    * **choose** - *(optional)* Wait for all candidates and take the smallest patch, not the first that is verified.
    * **issue** - *(optional)* What is wrong, in words. A failing test for it is written first.
    * **hint** - *(optional)* Advice that the model is shown.
    * **verify** - *(optional)* `quick`, `standard` or `strict`: how thoroughly a fix is verified.
    * **patch** - *(optional)* The file that a verified patch is written to.
    * **on_event** - *(optional)* A function that is called with each `redstart.Event`.

    **Returns:** A `RunResult`; a run that ends without a fix is not an error.

    **Raises:** `RedstartError` if something is broken, and `ConfigError` inside a running event loop: use
    `await redstart.afix(...)` there.

    Usage:

    ```
    >>> result = redstart.fix("path/to/repo", model="anthropic:claude-sonnet-5")
    >>> result
    <RunResult verified run_id=... attempts=1 cost=$0.012>
    ```
    """
    return _block("fix", fix_job(path, options))


async def afix(path: PathLike = ".", **options: Unpack[FixOptions]) -> RunResult:
    """Make the failing tests of a repo pass, in a running event loop. Cancel the task to stop the run.

    **Parameters**: See `redstart.fix`.
    """
    return await start_fix(path, **options).result()


def start_fix(path: PathLike = ".", **options: Unpack[FixOptions]) -> Run[RunResult]:
    """Start a run that makes the failing tests of a repo pass, in a running event loop.

    **Parameters**: See `redstart.fix`.

    **Returns:** A `Run`, for its events and its result.
    """
    return _start("fix", fix_job(path, options))


def create(goal: str, out: PathLike, **options: Unpack[CreateOptions]) -> RunResult:
    """Create a small tested program in a new directory.

    **Parameters:**

    * **goal** - What the program does, in words.
    * **out** - The directory to write; it must be empty or not exist.
    * **model**, **sandbox**, **limits**, **reflect**, **session**, **on_event** - *(optional)* See `redstart.fix`.

    **Raises:** As `redstart.fix`, and `ConfigError` if `out` is not empty.
    """
    return _block("create", create_job(goal, out, options))


async def acreate(goal: str, out: PathLike, **options: Unpack[CreateOptions]) -> RunResult:
    """Create a small tested program, in a running event loop. Cancel the task to stop the run.

    **Parameters**: See `redstart.create`.
    """
    return await start_create(goal, out, **options).result()


def start_create(goal: str, out: PathLike, **options: Unpack[CreateOptions]) -> Run[RunResult]:
    """Start a run that creates a small tested program, in a running event loop.

    **Parameters**: See `redstart.create`.

    **Returns:** A `Run`, for its events and its result.
    """
    return _start("create", create_job(goal, out, options))


def improve(path: PathLike = ".", *, cycles: int, **options: Unpack[ImproveOptions]) -> RunResult:
    """Try several improvements of a program, one after another. Its files are not changed.

    **Parameters:**

    * **path** - The program's directory. * **cycles** - How many improvements are tried. * **goal** - *(optional)* What
    to improve. * **patch** - *(optional)* The file for the patch with all kept improvements. * **model**, **sandbox**,
    **limits**, **reflect**, **on_event** - *(optional)* See `redstart.fix`.

    **Raises:** As `redstart.fix`.
    """
    return _block("improve", improve_job(path, cycles, options))


async def aimprove(path: PathLike = ".", *, cycles: int, **options: Unpack[ImproveOptions]) -> RunResult:
    """Try several improvements of a program, in a running event loop. Cancel the task to stop the run.

    **Parameters**: See `redstart.improve`.
    """
    return await start_improve(path, cycles=cycles, **options).result()


def start_improve(path: PathLike = ".", *, cycles: int, **options: Unpack[ImproveOptions]) -> Run[RunResult]:
    """Start a run that tries several improvements of a program, in a running event loop.

    **Parameters**: See `redstart.improve`.

    **Returns:** A `Run`, for its events and its result.
    """
    return _start("improve", improve_job(path, cycles, options))


def audit(path: PathLike = ".", **options: Unpack[AuditOptions]) -> AuditResult:
    """Check a file or directory and return the findings. Nothing is changed, and none of its code runs.

    The baseline file of the command line is not read.

    **Parameters:**

    * **path** - The file or directory.
    * **goal** - *(optional)* What the review should look for.
    * **since** - *(optional)* A git ref: only lines that changed since then count.
    * **review** - *(optional)* Whether a model reviews the code besides the tools.
    * **model**, **sandbox**, **on_event** - *(optional)* See `redstart.fix`. A model is needed only with `review`, a
    sandbox only where the settings name further tools.

    **Raises:** As `redstart.fix`.
    """
    return _block("audit", audit_job(path, options))


async def aaudit(path: PathLike = ".", **options: Unpack[AuditOptions]) -> AuditResult:
    """Check a file or directory, in a running event loop. Cancel the task to stop the run.

    **Parameters**: See `redstart.audit`.
    """
    return await start_audit(path, **options).result()


def start_audit(path: PathLike = ".", **options: Unpack[AuditOptions]) -> Run[AuditResult]:
    """Start a run that checks a file or directory, in a running event loop.

    **Parameters**: See `redstart.audit`.

    **Returns:** A `Run`, for its events and its result.
    """
    return _start("audit", audit_job(path, options))


def resume(run_id: str, **options: Unpack[ResumeOptions]) -> RunResult:
    """Continue a run from its last finished step, with the model, the sandbox and the limits it began with.

    A run that has finished is returned unchanged.

    **Parameters:**

    * **run_id** - The run's ID, or its first characters. * **model**, **sandbox** - *(optional)* Use these instead of
    the run's own. If the run began with an object, pass the object again. * **patch**, **on_event** - *(optional)* See
    `redstart.fix`.

    **Raises:** As `redstart.fix`, and `ConfigError` if there is no such run, if it was cancelled or if its model is
    not available.
    """
    return _block("resume", resume_job(run_id, options))


async def aresume(run_id: str, **options: Unpack[ResumeOptions]) -> RunResult:
    """Continue a run, in a running event loop. Cancel the task to stop the run.

    **Parameters**: See `redstart.resume`.
    """
    return await start_resume(run_id, **options).result()


def start_resume(run_id: str, **options: Unpack[ResumeOptions]) -> Run[RunResult]:
    """Continue a run in the background, in a running event loop.

    **Parameters**: See `redstart.resume`.

    **Returns:** A `Run`, for its events and its result.
    """
    return _start("resume", resume_job(run_id, options))


def verify(path: PathLike = ".", **options: Unpack[VerifyOptions]) -> Verification:
    """Verify a change that anybody made: what its tests prove, and whether something got worse. No model takes part.

    The repo is not changed, and no run is stored.

    **Parameters:**

    * **path** - The repo, or a directory in it.
    * **base** - *(optional)* The ref where the change starts; by default the main branch.
    * **head**, **patch**, **staged** - *(optional)* What to verify instead of your files: a ref, a patch, applied to
    `HEAD`, or the staged changes. * **require** - *(optional)* `no-worse` or `proof`: what makes `exit_code` 0.
    * **level** - *(optional)* `quick`, `standard` or `strict`: how thoroughly the proof is verified.
    * **accept** - *(optional)* Tests that may demand less than before.
    * **base_junit** - *(optional)* The JUnit file of a CI job with results of the base.
    * **max_minutes** - *(optional)* When to stop. * **mutants** - *(optional)* How many small changes are tried.
    * **test_command**, **junit**, **test_files**, **python** - *(optional)* How the tests run, as `--test-cmd`,
    `--junit`, `--tests` and `--python` of the command. * **sandbox** - *(optional)* See `redstart.fix`.

    **Returns:** A `Verification`, as `redstart verify --json` prints it. A change that is worse is not an error.

    **Raises:** As `redstart.fix`.
    """
    return _block("verify", verify_job(path, options))


async def averify(path: PathLike = ".", **options: Unpack[VerifyOptions]) -> Verification:
    """Verify a change, in a running event loop. Cancel the task to stop it.

    **Parameters**: See `redstart.verify`.
    """
    return await _start("verify", verify_job(path, options)).result()


def triage(path: PathLike = ".", **options: Unpack[TriageOptions]) -> Triage:
    """Say of each failing test whether your change broke it, or whether it failed before, is flaky, or lacks something.

    The repo is not changed, and no run is stored. No model takes part.

    **Parameters:**

    * **path** - The repo, or a directory in it. * **base**, **head** - *(optional)* See `redstart.verify`.
    * **junit**, **log** - *(optional)* The JUnit file or the log of a CI job: only the tests run that failed there.
    * **bisect** - *(optional)* Whether to find the first bad commit of each test.
    * **test_command**, **python**, **sandbox** - *(optional)* See `redstart.verify`.

    **Returns:** A `Triage`, as `redstart triage --json` prints it.

    **Raises:** As `redstart.fix`.
    """
    return _block("triage", triage_job(path, options))


async def atriage(path: PathLike = ".", **options: Unpack[TriageOptions]) -> Triage:
    """Say whose fault each failing test is, in a running event loop. Cancel the task to stop it.

    **Parameters**: See `redstart.triage`.
    """
    return await _start("triage", triage_job(path, options)).result()


def _block(name: str, job: ApiJob[T] | ReportJob[T]) -> T:
    if not _in_a_loop():
        return asyncio.run(job.carry_out(job.on_event))
    raise ConfigError(
        f"redstart.{name}() cannot run inside a running event loop; use: await redstart.a{name}(...)",
        remedy=f"await redstart.a{name}(...)",
    )


def _start(name: str, job: ApiJob[T] | ReportJob[T]) -> Run[T]:
    if _in_a_loop():
        return Run(job.carry_out, job.on_event)
    raise ConfigError(f"redstart.start_{name}() needs a running event loop", remedy=f"redstart.{name}(...)")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
