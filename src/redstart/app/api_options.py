"""The keyword arguments of the Python API. An argument that is missing or None comes from the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypedDict

from redstart.core.events import Event
from redstart.core.run import Limits
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox, SandboxFactory

PathLike = str | Path
Listener = Callable[[Event], None]


class SandboxOptions(TypedDict, total=False):
    """Options of every function."""

    sandbox: str | Sandbox | SandboxFactory | None
    """`auto`, `bwrap`, `docker` or `seatbelt`; or an object with the members of `redstart.Sandbox`, or a callable that
    makes one from the `redstart.Workspaces` that hold the files and a scratch directory."""


class SharedOptions(SandboxOptions, total=False):
    """Options of every function that starts a run."""

    model: str | Model | None
    """`provider:name`, or an object of your own with the method of `redstart.Model`."""
    on_event: Listener | None
    """Called with each event. If it raises, the run stops with that error."""


class ResumeOptions(SharedOptions, total=False):
    patch: PathLike | None
    """File that a verified patch is written to."""


class AttemptOptions(SharedOptions, total=False):
    """Options of every function whose run makes attempts."""

    limits: Limits | None
    reflect: Literal["auto", "always", "never"] | None
    """When the strong model is asked why an attempt failed."""


class CreateOptions(AttemptOptions, total=False):
    session: bool | None
    """Whether the model tries its edits with tools before it submits; None for what its profile says."""


class ImproveOptions(AttemptOptions, ResumeOptions, total=False):
    goal: str
    """What to improve; empty to let the model choose."""


class FixOptions(CreateOptions, ResumeOptions, total=False):
    test_command: tuple[str, ...]
    """The command that runs the tests; empty to detect it."""
    targets: tuple[str, ...]
    """Test IDs, files or directories; empty for every test that fails."""
    hint: str
    """Advice for the model."""
    issue: str
    """The problem in words. A failing test for it is written first."""
    all_red: bool
    """Whether every failing test is a target, and none may be set aside."""
    fresh: bool
    """Whether each attempt starts from the original code, even if an earlier one fixed some of the tests."""
    candidates: int
    """How many child runs try the fix; 1 if the run itself does."""
    escalate: bool
    """Whether the fast model writes the patches of all candidates but the last."""
    choose: bool
    """Whether to wait for all candidates and take the smallest patch, instead of the first that is verified."""
    verify: Literal["quick", "standard", "strict"] | None
    """How thoroughly a fix is verified."""


class AuditOptions(SharedOptions, total=False):
    goal: str
    """What the review should look for."""
    since: str
    """A git ref: only lines changed since then count."""
    review: bool
    """Whether a model reviews the code besides the tools."""


class JudgeOptions(SandboxOptions, total=False):
    """Options of the functions that judge a change or failing tests."""

    base: str | None
    """The start of the change: a ref. By default, the main branch."""
    head: str | None
    """A ref instead of your files."""
    test_command: tuple[str, ...]
    """The command that runs the tests; empty to detect it."""
    python: str | None
    """The project's interpreter, or the directory of its environment; None to find it."""


class VerifyOptions(JudgeOptions, total=False):
    patch: PathLike | None
    """A patch, applied to `HEAD`, instead of your files."""
    staged: bool
    """Whether the change is what is staged."""
    require: Literal["no-worse", "proof"] | None
    """Whether `exit_code` is 0 if nothing got worse, or only if a test proves the change."""
    level: Literal["quick", "standard", "strict"] | None
    """How thoroughly the proof is verified."""
    accept: tuple[str, ...]
    """Tests that may demand less than before: IDs, files or directories."""
    base_junit: PathLike | None
    """The JUnit file of a CI job with results of the base."""
    junit: str | None
    """The JUnit file that `test_command` writes, relative to the project."""
    test_files: tuple[str, ...]
    """Globs of test files with unusual names."""
    max_minutes: float | None
    """When to stop; None for no limit."""
    mutants: int | None
    """How many small changes of the changed lines are tried; None for what the level tries."""


class TriageOptions(JudgeOptions, total=False):
    junit: PathLike | None
    """The JUnit file of a CI job: only the tests run that failed there."""
    log: PathLike | None
    """The log of a CI job, for the same."""
    bisect: bool
    """Whether to find the first bad commit of each test."""
