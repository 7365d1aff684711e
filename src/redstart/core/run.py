"""A run: what was asked, where it stands, what it spent."""

from __future__ import annotations

from enum import StrEnum
from posixpath import relpath

from pydantic import Field

from redstart.core.change import Applied, Patch, Snapshot
from redstart.core.context import Context
from redstart.core.finding import Findings
from redstart.core.learning import Plan, Reflection, Remembered
from redstart.core.noun import Noun
from redstart.core.report import Judged, Reproduced
from redstart.core.shell import SandboxLimits

GOAL_LIMIT = 4000
HINT_LIMIT = 1000
MOST_LOOKS = 50
PROBES = 3
"""How many probes a run may make. They are no attempts at the fix, and are not counted as such."""


class Step(StrEnum):
    """The eleven words."""

    reproduce = "reproduce"
    plan = "plan"
    retrieve = "retrieve"
    audit = "audit"
    patch = "patch"
    apply = "apply"
    check = "check"
    test = "test"
    reflect = "reflect"
    remember = "remember"
    decide = "decide"


class Mode(StrEnum):
    fix = "fix"
    create = "create"
    improve = "improve"
    audit = "audit"


class Effort(StrEnum):
    lean = "lean"
    full = "full"


class Status(StrEnum):
    running = "running"
    paused = "paused"
    """Waits for a person, or for child runs."""
    ended = "ended"


class Result(StrEnum):
    """How a run ended. Its exit code is in `redstart.app.exits`."""

    verified = "verified"
    already_green = "already_green"
    unsolved = "unsolved"
    stuck = "stuck"
    capped = "capped"
    no_tests = "no_tests"
    environment = "environment"
    refused = "refused"
    needs_human = "needs_human"


class Action(StrEnum):
    retry = "retry"
    accept = "accept"
    ask = "ask"
    spawn = "spawn"
    stop = "stop"


class Decision(Noun):
    action: Action
    reason: str
    next: Step | None = None
    """Where the next attempt begins (retry)."""
    result: Result | None = None
    """How the run ends (accept, stop, ask)."""


class Limits(Noun):
    """Caps of a whole run. None means no cap of that kind."""

    iterations: int = 5
    minutes: float | None = 30.0
    usd: float | None = 2.0
    tokens: int | None = 400_000
    """Binds always; it is the only money cap where a model's price is not known."""


class Level(StrEnum):
    """How much is run before a green counts; what that is stands in `redstart.toolkit.honesty.levels`."""

    quick = "quick"
    standard = "standard"
    strict = "strict"


class Suite(Noun):
    """How the target's tests are run. `environment` is the blob of an `Environment`."""

    runner: str
    command: tuple[str, ...] = ()
    """Given by the user; empty for the runner's own."""
    environment: str = ""
    junit: str = ""
    """Where the user's command leaves JUnit XML, from the suite's folder; globs may be given. Empty for our runners."""
    folder: str = ""
    """Where in the snapshot it runs: a folder of a monorepo, or the root. Test ids and tracebacks begin there."""

    def as_shown(self, path: str) -> str:
        """How the runner would show this path of the snapshot."""
        return relpath(path, self.folder) if self.folder else path


class RunSpec(Noun):
    """What was asked for. It names no path of a machine."""

    mode: Mode
    goal: str = Field(default="", max_length=GOAL_LIMIT)
    hint: str = Field(default="", max_length=HINT_LIMIT)
    """What the user says that may help."""
    base: Snapshot
    suite: Suite
    targets: tuple[str, ...] = ()
    """Test ids, files, folders or classes to make green; empty for every test that is red at the baseline."""
    keyword: str = Field(default="", max_length=GOAL_LIMIT)
    """Of those, only the tests that this expression (pytest's `-k`) chooses."""
    scope: tuple[str, ...] = Field(default=(), max_length=50)
    """Folders or globs that edits may touch; empty for everything."""
    protect: tuple[str, ...] = Field(default=(), max_length=50)
    """Globs of files that no patch may change, besides those that policy always protects."""
    limits: Limits = Limits()
    sandbox: SandboxLimits = SandboxLimits()
    verify: Level = Level.standard
    effort: Effort = Effort.lean
    looks: int = Field(default=0, ge=0, le=MOST_LOOKS)
    """How often a model may look around in the snapshot before it answers one question; 0 offers it no probe either."""
    seed: int = 0
    tenant: str = "home"
    repo: str = ""
    """A name for the repo, for memory and provenance."""
    parent: str = ""
    """The run this one was forked from or spawned by."""


class Spend(Noun):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known: `usd` does not count them."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, more: Spend) -> Spend:
        return Spend(
            calls=self.calls + more.calls,
            input_tokens=self.input_tokens + more.input_tokens,
            output_tokens=self.output_tokens + more.output_tokens,
            usd=self.usd + more.usd,
            unpriced=self.unpriced + more.unpriced,
            seconds=round(self.seconds + more.seconds, 3),
        )


class Attempt(Noun):
    """One iteration: a field for each step, filled as it is done."""

    number: int = 1
    entry: Step
    reproduce: Reproduced | None = None
    plan: Plan | None = None
    retrieve: Context | None = None
    audit: Findings | None = None
    patch: Patch | None = None
    apply: Applied | None = None
    check: Findings | None = None
    test: Judged | None = None
    reflect: Reflection | None = None
    remember: Remembered | None = None
    decide: Decision | None = None

    @property
    def made(self) -> Snapshot | None:
        """What the attempt made: shrunk, where that was done."""
        shrunk = self.test.shrunk if self.test else None
        return shrunk or (self.apply.snapshot if self.apply else None)

    @property
    def diff(self) -> str:
        """Blob of the diff from the base to that; of a refused patch too, where it could be made."""
        shrunk = self.test.shrunk_diff if self.test else ""
        return shrunk or (self.apply.diff if self.apply else "")


class AttemptSummary(Noun):
    """What the next attempt needs to know of an earlier one; the whole of it is in the store."""

    number: int
    fingerprint: str = ""
    diff: str = ""
    """Blob of the diff that was tried."""
    files: tuple[str, ...] = ()
    outcome: str = ""
    """In a few words: why it did not end green."""
    refused: bool = False
    red: int | None = None
    report: str = ""
    """Blob of its test run's `CaseList`."""
    probe: str = ""
    """Blob of what its probe printed, where it made one instead of edits."""
    signature: str = ""
    reflection: Reflection | None = None
    reason: str = ""


class RunState(Noun):
    """All that a driver needs to go on, under 64 KB as JSON whatever the repo: the rest is in blobs."""

    run_id: str
    spec: RunSpec
    base: Snapshot
    """What patches are made against: `spec.base`, with the tests that were written for the run (create)."""
    draft: Snapshot | None = None
    """Work in progress that the next attempt goes on from (create); a fix begins from `base` each time."""
    now: Attempt
    last: Step | None = None
    """The step that was committed last."""
    history: tuple[AttemptSummary, ...] = ()
    spend: Spend = Spend()
    status: Status = Status.running
    result: Result | None = None
    reason: str = ""
    version: int = 0
    """How many steps were committed."""
    seq: int = 0
    """How many events were committed."""

    @property
    def ground(self) -> Snapshot:
        """What the next edits are made on."""
        return self.draft or self.base

    @property
    def probes(self) -> int:
        """How many attempts ended with a probe, the one at hand among them."""
        now = bool(self.now.test and self.now.test.probe)
        return sum(bool(one.probe) for one in self.history) + now

    @property
    def tries(self) -> int:
        """Attempts at the fix so far, the one at hand among them: all but those that were spent on a probe."""
        return self.now.number - self.probes
