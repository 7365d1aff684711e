"""A run: its spec, its state and its cost."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeVar, cast

from pydantic import Field, model_validator

from redstart.core.change import ApplyResult, Patch, PatchProblem, Snapshot
from redstart.core.chat import Usage
from redstart.core.context import Context
from redstart.core.finding import Checks, Findings
from redstart.core.formats import SPEC, STATE, RunValue, StorageFormat
from redstart.core.frozen import FrozenValue
from redstart.core.learning import NewMemories, Plan, Reflection, ReflectionPolicy, Signature
from redstart.core.lesson import LessonDraws
from redstart.core.packages import Installed, Packages
from redstart.core.progress import AttemptOutcome, CourseChange, Strategy, Trend
from redstart.core.report import PatchTestResult, ReproductionResult
from redstart.core.run_preferences import QuestionOptions
from redstart.core.set_aside import SetAside, SetAsidePolicy, SetAsideSource
from redstart.core.shell import SandboxLimits
from redstart.core.suite import Suite
from redstart.core.tasks import (
    GOAL_LIMIT,
    MOST_CANDIDATES,
    MOST_CRITERIA,
    CandidatePlan,
    CreateTask,
    FixTask,
    ImproveTask,
    Mode,
    Task,
    upgrade_flat_spec,
)


class Status(StrEnum):
    """The status of a run. A step's commit stores `running`, `paused`, `needs_input` or `finished`.

    The others follow from the process that drives the run, how the last drive stopped and what people requested; see
    `redstart.core.run_status.resolve_status`.
    """

    queued = "queued"
    """The fleet has the run, and no worker drives it."""
    running = "running"
    paused = "paused"
    """No process drives the run; it can be resumed. If a commit stored this, the run waits for its child runs."""
    needs_input = "needs_input"
    finished = "finished"
    failed = "failed"
    """An error ended the last drive; the run can be resumed."""
    cancelled = "cancelled"


class Result(StrEnum):
    """How a run ended. Its exit code is in `redstart.app.exit_codes`."""

    verified = "verified"
    unproven = "unproven"
    """The tests pass according to their report, but Redstart cannot prove that they can still fail."""
    partial = "partial"
    """Some failing tests now pass, which is proven; others are set aside, and no person has agreed to that."""
    already_green = "already_green"
    unsolved = "unsolved"
    stuck = "stuck"
    capped = "capped"
    no_tests = "no_tests"
    environment = "environment"
    refused = "refused"
    needs_human = "needs_human"
    reported = "reported"
    """An audit whose findings stay below the risk that the user does not accept."""
    found = "found"
    """An audit with new findings that reach that risk."""


RESULTS_WITH_PATCH = (Result.verified, Result.unproven, Result.partial)
"""Results of runs that end with a patch, best first."""


class Limits(FrozenValue):
    """The limits of a whole run. None means no limit of that kind."""

    attempts: int = 5
    minutes: float | None = 30.0
    usd: float | None = 2.0
    tokens: int | None = 400_000
    """Always applies; it is the only limit on the cost if a model's price is unknown."""
    stall_warning: int | None = 12
    """Attempts in a row without progress after which the user is warned."""
    stall: int | None = 15
    """Attempts in a row without progress after which the run ends."""


class Spend(FrozenValue):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Calls whose price is unknown: `usd` does not count them."""
    estimated_tokens: int = Field(default=0, exclude_if=lambda count: not count)
    """An estimate for calls whose tokens nobody counts. `tokens` does not contain it, and no limit applies to it."""
    seconds: float = 0.0
    handovers: int = Field(default=0, exclude_if=lambda count: not count)
    """How often a worker passed the run on, because the next call needed a model or a sandbox that it does not have."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def count(self, usage: Usage) -> Spend:
        """Add a model call."""
        return self.model_copy(
            update={
                "calls": self.calls + 1,
                "input_tokens": self.input_tokens + usage.input_tokens,
                "output_tokens": self.output_tokens + usage.output_tokens,
                "usd": self.usd + (usage.usd or 0.0),
                "unpriced": self.unpriced + (usage.usd is None),
                "estimated_tokens": self.estimated_tokens + usage.estimated_tokens,
            }
        )

    def add(self, other: Spend) -> Spend:
        return Spend(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            unpriced=self.unpriced + other.unpriced,
            estimated_tokens=self.estimated_tokens + other.estimated_tokens,
            seconds=round(self.seconds + other.seconds, 3),
            handovers=self.handovers + other.handovers,
        )


_TaskT = TypeVar("_TaskT", bound=Task)
HINT_LIMIT = 1000
MOST_LOOKS = 50
MOST_TESTS = 200
PROBES = 3
"""Maximum probes of a run. They do not count as attempts at the fix."""


class Step(StrEnum):
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


class Effort(StrEnum):
    lean = "lean"
    full = "full"


class Action(StrEnum):
    retry = "retry"
    accept = "accept"
    ask = "ask"
    spawn = "spawn"
    stop = "stop"


class RetryBase(StrEnum):
    """The code that the next attempt starts from."""

    patched = "patched"
    """The code with the edits of an attempt that left fewer tests failing and broke none."""
    original = "original"


class Level(StrEnum):
    """How much is run before passing tests count; defined in `redstart.toolkit.honesty.verdict.levels`."""

    quick = "quick"
    standard = "standard"
    strict = "strict"


class RunSpec(RunValue):
    """The request: `task` is specific to the mode, the other fields apply to all. It contains no path of a machine."""

    stored_as: ClassVar[StorageFormat] = SPEC
    format: str = SPEC.version
    task: Task = Field(discriminator="mode")
    goal: str = Field(default="", max_length=GOAL_LIMIT)
    hint: str = Field(default="", max_length=HINT_LIMIT)
    """A hint from the user."""
    base: Snapshot
    suite: Suite
    scope: tuple[str, ...] = Field(default=(), max_length=50)
    """Folders or globs that edits may touch; empty for everything."""
    protect: tuple[str, ...] = Field(default=(), max_length=50)
    """Globs of files that no patch may change, besides those that policy always protects."""
    tests: tuple[str, ...] = Field(default=(), max_length=MOST_TESTS, exclude_if=lambda globs: not globs)
    """Globs of files that are tests or start tests, besides files whose names show it."""
    limits: Limits = Limits()
    sandbox: SandboxLimits = SandboxLimits()
    verify: Level = Level.standard
    keep_clean: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether shrinking keeps a hunk if the patch without it would have a finding more; False for runs from before
    the rule existed."""
    keep_together: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether shrinking keeps or leaves out as one the hunks that belong together; False for runs from before the rule
    existed."""
    keep_related: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether shrinking keeps what the patch changes in stubs, changelogs and docs."""
    effort: Effort = Effort.lean
    reflect: ReflectionPolicy = ReflectionPolicy.never
    """When `reflect` asks a model; `never` for runs from before the setting existed."""
    looks: int = Field(default=0, ge=0, le=MOST_LOOKS)
    """Maximum tool calls before the model answers one question. With 0, the model is not offered probes either."""
    asks: QuestionOptions = QuestionOptions()
    packages: Packages | None = None
    """What may be installed; None if the run must use the packages that exist."""
    checks: Checks = Checks()
    seed: int = 0
    tenant: str = "home"
    repo: str = ""
    """A name for the repo, for memory and provenance."""
    parent: str = ""
    """The run that this one was forked from, or whose child run it is."""
    errand: int = 0
    """Number of this child run in its parent; 0 if it is not a child run."""
    explore: bool = True
    """Whether applicable lessons may be withheld, so that their effect is measured."""
    keeps_gain: bool = Field(default=False, exclude_if=lambda keeps: not keeps)
    """Whether an attempt starts from the edits of an earlier one that left fewer tests failing and broke none. False
    for runs from before this existed."""

    @model_validator(mode="before")
    @classmethod
    def _read_flat(cls, values: object) -> object:
        """Upgrade the flat form, with the fields of all modes side by side, which earlier versions stored. Keyword
        arguments may use it too."""
        return upgrade_flat_spec(cast("dict[str, object]", values)) if isinstance(values, dict) else values

    @property
    def mode(self) -> Mode:
        return self.task.mode

    def get_task(self, kind: type[_TaskT]) -> _TaskT:
        """Return the task, for code of a single mode. Raises `TypeError` if the run has another mode."""
        if not isinstance(self.task, kind):
            raise TypeError(f"a run of mode {self.mode.value} has no {kind.__name__}")
        return self.task

    def with_command(self, command: tuple[str, ...]) -> RunSpec:
        """Return the spec with `command` as its test command; unchanged if `command` is empty."""
        suite = self.suite.model_copy(update={"command": command})
        return self.model_copy(update={"suite": suite}) if command else self

    @property
    def guarded(self) -> tuple[str, ...]:
        """Every glob of files that no patch of this run may change."""
        return (*self.protect, *self.tests)

    @property
    def set_aside_policy(self) -> SetAsidePolicy:
        """Whether failing tests may be set aside, and who decides."""
        return self.task.set_aside if isinstance(self.task, FixTask) else SetAsidePolicy.never

    @property
    def needs_new_test(self) -> bool:
        """Whether a failing test of an existing program must be written first: for an issue or an improvement."""
        if isinstance(self.task, FixTask):
            return self.task.issue
        return isinstance(self.task, ImproveTask) and self.errand > 0

    @property
    def has_cycles(self) -> bool:
        """Whether the run works through child runs, each of which is one improvement."""
        return isinstance(self.task, ImproveTask) and not self.errand

    @property
    def candidates(self) -> CandidatePlan | None:
        """The child runs that try the same fix; None if the run works on its own."""
        return self.task.candidates if isinstance(self.task, FixTask) else None

    @property
    def sibling_ids(self) -> tuple[str, ...]:
        """The IDs that other candidates for the same fix may have; empty if the run is no candidate."""
        is_candidate = isinstance(self.task, FixTask) and self.errand > 0
        return tuple(f"{self.parent}.{number}" for number in range(1, MOST_CANDIDATES + 1)) if is_candidate else ()

    @property
    def program_goal(self) -> str:
        """The goal of the whole program if the run writes a part of it; empty for every other run."""
        return self.task.whole if isinstance(self.task, CreateTask) else ""

    @property
    def test_cpu(self) -> int:
        """Seconds of processor time that each test may use; 0 for no limit."""
        return self.task.test_cpu if isinstance(self.task, CreateTask) else 0


class ChildTask(FrozenValue):
    """A part of a run's work that becomes a child run. Everything else is as in the parent."""

    number: int
    """From 1, in the order of their start; part of the child run's ID."""
    mode: Mode
    title: str = Field(default="", max_length=GOAL_LIMIT)
    """The goal of the child run, in words."""
    criteria: tuple[str, ...] = Field(default=(), max_length=MOST_CRITERIA)
    place: int = 0
    """Place of the subtask in the plan, from 1."""
    base: Snapshot
    limits: Limits


class ChildResult(FrozenValue):
    """How a child run ended, as reported to its parent."""

    number: int
    result: Result | None
    reason: str = ""
    about: str = ""
    """What the child run did, in one sentence."""
    made: Snapshot | None = None
    """The resulting snapshot, if it is verified."""
    spend: Spend = Spend()
    installed: Installed | None = None
    """The packages that were installed for it."""
    approved: tuple[str, ...] = ()
    """Packages that a person approved."""
    attempt: Attempt | None = Field(default=None, exclude_if=lambda attempt: attempt is None)
    """The last attempt of a candidate that ended with a patch."""
    set_aside: tuple[SetAside, ...] = Field(default=(), exclude_if=lambda entries: not entries)


class ChildProgress(FrozenValue):
    """The outcomes of a run's child runs so far, as much as the run needs to continue, however many there were."""

    begun: int = 0
    kept: int = 0
    dropped: int = 0
    in_a_row: int = 0
    """How many child runs were dropped since the last one that was kept."""
    last: tuple[str, ...] = Field(default=(), max_length=8)
    """What the last child runs did, with their outcomes, one line each, newest last."""
    merged: tuple[int, ...] = Field(default=(), max_length=8)
    """The subtasks whose child runs were kept, by their place in the plan."""
    chosen: int = Field(default=0, exclude_if=lambda number: not number)
    """The candidate whose patch the run takes, or proposes to a person."""
    others: tuple[int, ...] = Field(default=(), max_length=MOST_CANDIDATES, exclude_if=lambda numbers: not numbers)
    """Candidates whose patches a person may choose instead, because they behave differently."""


class Decision(FrozenValue):
    action: Action
    reason: str
    next: Step | None = None
    """The step where the next attempt begins (retry)."""
    result: Result | None = None
    """How the run ends (accept, stop, ask)."""
    errands: tuple[ChildTask, ...] = Field(default=(), max_length=8)
    """The child runs that the run waits for (spawn)."""
    work: ChildProgress | None = None
    """The outcomes of the child runs, if they have changed."""
    kept: Snapshot | None = None
    """The snapshot to continue from, if child runs have changed it."""
    spent: Spend = Spend()
    """The cost of the child runs that ended."""
    approved: tuple[str, ...] = ()
    """Packages that a person approved."""
    installed: Installed | None = None
    """The packages that child runs installed for their results."""
    turn: CourseChange | None = None
    """Why and how the next attempt differs, if the run goes in circles (retry)."""
    trend: Trend | None = None
    """None if fewer than two counts of failing tests can be compared."""
    retry_base: RetryBase | None = Field(default=None, exclude_if=lambda base: base is None)
    """The code that the next attempt starts from (retry); None if nothing was tested since the last decision."""
    retry_base_reason: str = Field(default="", exclude_if=lambda reason: not reason)
    warning: str = ""
    """A warning that the run will end if it makes no more progress."""
    answered: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether a person's answer led to the decision."""
    set_aside: tuple[SetAside, ...] | None = Field(default=None, exclude_if=lambda entries: entries is None)
    """The failing tests that are set aside from now on, if that has changed."""
    adopted: Attempt | None = Field(default=None, exclude_if=lambda attempt: attempt is None)
    """The attempt of a candidate that the run takes as its own. The state has its parts in the current attempt."""


class Attempt(FrozenValue):
    """One pass through the steps: each step fills its field."""

    number: int = 1
    entry: Step
    reproduce: ReproductionResult | None = None
    plan: Plan | None = None
    retrieve: Context | None = None
    audit: Findings | None = None
    patch: Patch | None = None
    apply: ApplyResult | None = None
    check: Findings | None = None
    test: PatchTestResult | None = None
    reflect: Reflection | None = None
    remember: NewMemories | None = None
    decide: Decision | None = None

    @property
    def made(self) -> Snapshot | None:
        """The resulting snapshot of the attempt, shrunk if that was done."""
        shrunk_snapshot = self.test.shrunk if self.test else None
        return shrunk_snapshot or (self.apply.snapshot if self.apply else None)

    @property
    def diff(self) -> str:
        """Blob: the diff from the base to the result, also of a refused patch if it can be computed."""
        shrunk_diff = self.test.shrunk_diff if self.test else ""
        return shrunk_diff or (self.apply.diff if self.apply else "")


class AttemptSummary(FrozenValue):
    """What the next attempt needs to know about an earlier one. The full attempt is in the store."""

    number: int
    fingerprint: str = ""
    diff: str = ""
    """Blob: the diff that was tried."""
    edits: str = Field(default="", exclude_if=lambda blob: not blob)
    """Blob: the `EditList` of an attempt whose edits did not fit the files."""
    files: tuple[str, ...] = ()
    outcome: str = ""
    """Why the attempt did not succeed, in a few words."""
    problem: PatchProblem | None = Field(default=None, exclude_if=lambda problem: problem is None)
    refused: bool = False
    red: int | None = None
    report: str = ""
    """Blob: the `CaseList` of its test run."""
    probe: str = ""
    """Blob: the output of its probe, if it made one instead of edits."""
    signature: str = ""
    failure: Signature | None = None
    """The failure of its test run, kept only for the last attempts, whose failures are used for recall."""
    reflection: Reflection | None = None
    """Why it failed, from the step `reflect` or else from the next attempt's answer."""
    weak: str = ""
    """What its tests did not detect, if its program passed but the tests would not detect a broken one."""
    reason: str = ""
    seen: AttemptOutcome = AttemptOutcome()
    turn: CourseChange | None = None
    """How the attempt after it should differ."""
    waited: bool = Field(default=False, exclude_if=lambda waited: not waited)
    """Whether it only waited for a person to approve packages, which does not count as an attempt at the fix."""
    asked: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether it ended with a question to a person."""


class RunState(RunValue):
    """Everything that a driver needs to continue, under 64 KB as JSON for any repo. Larger data is in blobs."""

    stored_as: ClassVar[StorageFormat] = STATE
    format: str = STATE.version
    run_id: str
    spec: RunSpec
    base: Snapshot
    """The base of all patches: `spec.base`, with the tests that were written for the run (create)."""
    draft: Snapshot | None = None
    """Work in progress that the next attempt continues from, or the last good version (improve).

    In a fix, it holds the edits of the attempt that left the fewest tests failing and broke none.
    """
    conversation: str = Field(default="", exclude_if=lambda blob: not blob)
    """Blob: the `Conversation` of the last attempt's working session, with which the next one goes on."""
    work: ChildProgress = ChildProgress()
    installed: Installed | None = None
    approved: tuple[str, ...] = ()
    now: Attempt
    last: Step | None = None
    """The step that was committed last."""
    history: tuple[AttemptSummary, ...] = ()
    taught: LessonDraws | None = None
    """The lessons that apply to the run, each shown or withheld for the whole run; None before the lookup."""
    set_aside: tuple[SetAside, ...] = Field(default=(), exclude_if=lambda entries: not entries)
    """Failing tests that the run need not make pass, with the reasons."""
    spend: Spend = Spend()
    status: Status = Status.running
    result: Result | None = None
    reason: str = ""
    version: int = 0
    """Number of committed steps."""
    seq: int = 0
    """Number of committed events."""

    @property
    def suited(self) -> RunSpec:
        """The spec for running the tests now: with the installed packages and the tests written for the run.

        Files that start the tests are protected in it too.
        """
        spec = self.spec.model_copy(update={"protect": self.spec.guarded})
        spec = spec.with_command(self.now.reproduce.command) if self.now.reproduce else spec
        if self.installed is None:
            return spec
        suite = spec.suite.model_copy(update={"environment": self.installed.environment})
        return spec.model_copy(update={"suite": suite})

    @property
    def foreign_language(self) -> str:
        """The language of the targets if Redstart cannot alter them to prove that they can still fail; else empty."""
        return self.now.reproduce.language if self.now.reproduce else ""

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that a new program may import besides the standard library."""
        return self.installed.packages if self.installed else ()

    @property
    def has_unsolved(self) -> bool:
        """Whether tests are set aside only because no attempt fixed them: another attempt may."""
        return any(entry.source is SetAsideSource.unsolved for entry in self.set_aside)

    @property
    def workspace(self) -> Snapshot:
        """The snapshot that the next edits apply to."""
        return self.draft or self.base

    @property
    def kept_attempt(self) -> AttemptSummary | None:
        """The earlier attempt whose edits the workspace holds; None if it holds those of no attempt."""
        tree = self.draft.tree if self.draft else ""
        return next((entry for entry in reversed(self.history) if tree and entry.seen.tree == tree), None)

    @property
    def splits(self) -> bool:
        """Whether the plan's subtasks become child runs whose results are merged afterwards (create)."""
        has_several = self.now.plan is not None and len(self.now.plan.subtasks) > 1
        return has_several and self.spec.task.makes_program and not self.spec.errand and not self.work.begun

    @property
    def probes(self) -> int:
        """The number of attempts that ended with a probe, including the current one."""
        is_probe = bool(self.now.test and self.now.test.probe)
        return sum(bool(entry.probe) for entry in self.history) + is_probe

    @property
    def tries(self) -> int:
        """Attempts at the fix so far, including the current one, without those spent on a probe or an approval."""
        return self.now.number - self.probes - sum(entry.waited for entry in self.history)

    @property
    def turn(self) -> CourseChange | None:
        """How the current attempt should differ from the previous ones."""
        return self.history[-1].turn if self.history else None

    def count_strategy_uses(self, strategy: Strategy) -> int:
        """Count the previous attempts that led to this strategy."""
        return sum(entry.turn is not None and entry.turn.strategy is strategy for entry in self.history)
