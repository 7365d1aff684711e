"""A run: what was asked, where it stands, what it spent."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeVar, cast

from pydantic import Field, model_validator

from redstart.core.change import ApplyResult, Patch, PatchProblem, Snapshot
from redstart.core.context import Context
from redstart.core.course import AttemptOutcome, CourseChange, Strategy, Trend
from redstart.core.finding import Checks, Findings
from redstart.core.formats import SPEC, STATE, RunValue, StorageFormat
from redstart.core.learning import NewMemories, Plan, Reflection, ReflectionPolicy, Signature
from redstart.core.lesson import LessonDraws
from redstart.core.noun import FrozenValue
from redstart.core.packages import Installed, Packages
from redstart.core.report import PatchTestResult, ReproductionResult
from redstart.core.shell import SandboxLimits
from redstart.core.suite import Suite
from redstart.core.tasks import (
    GOAL_LIMIT,
    MOST_CRITERIA,
    CreateTask,
    FixTask,
    ImproveTask,
    Mode,
    Task,
    upgrade_flat_spec,
)
from redstart.core.wishes import QuestionOptions


class Status(StrEnum):
    """How a run stands. A step's commit stores `running`, `paused`, `needs_input` or `finished`.

    The others follow from who drives the run, how the last drive stopped and what people asked for; see
    `redstart.core.standing.status_of`.
    """

    queued = "queued"
    """The fleet has it, and no worker is at it."""
    running = "running"
    paused = "paused"
    """Nobody drives it; it can be resumed. Where it is stored, the run waits for its child runs."""
    needs_input = "needs_input"
    finished = "finished"
    failed = "failed"
    """An error ended its last drive; it can be resumed."""
    cancelled = "cancelled"


class Result(StrEnum):
    """How a run ended. Its exit code is in `redstart.app.exits`."""

    verified = "verified"
    unproven = "unproven"
    """The tests pass by their own report, and Redstart cannot prove that they can still fail."""
    already_green = "already_green"
    unsolved = "unsolved"
    stuck = "stuck"
    capped = "capped"
    no_tests = "no_tests"
    environment = "environment"
    refused = "refused"
    needs_human = "needs_human"
    reported = "reported"
    """An audit: what was found is told, and nothing of it is more than the user accepts."""
    found = "found"
    """An audit with new findings that are."""


class Limits(FrozenValue):
    """What a whole run may use. None means no limit of that kind."""

    attempts: int = 5
    minutes: float | None = 30.0
    usd: float | None = 2.0
    tokens: int | None = 400_000
    """Binds always; it is the only limit on money where a model's price is not known."""
    stall_warning: int | None = 12
    """Attempts in a row that bring nothing, after which the user is warned."""
    stall: int | None = 15
    """Attempts in a row that bring nothing, after which the run ends."""


class Spend(FrozenValue):
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


_TaskT = TypeVar("_TaskT", bound=Task)
HINT_LIMIT = 1000
MOST_LOOKS = 50
MOST_TESTS = 200
PROBES = 3
"""How many probes a run may make. They are no attempts at the fix, and are not counted as such."""


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


class Level(StrEnum):
    """How much is run before a green counts; what that is stands in `redstart.toolkit.honesty.verdict.levels`."""

    quick = "quick"
    standard = "standard"
    strict = "strict"


class RunSpec(RunValue):
    """What was asked for: in `task` what one mode alone has, the rest for all. It names no path of a machine."""

    stored_as: ClassVar[StorageFormat] = SPEC
    format: str = SPEC.version
    task: Task = Field(discriminator="mode")
    goal: str = Field(default="", max_length=GOAL_LIMIT)
    hint: str = Field(default="", max_length=HINT_LIMIT)
    """What the user says that may help."""
    base: Snapshot
    suite: Suite
    scope: tuple[str, ...] = Field(default=(), max_length=50)
    """Folders or globs that edits may touch; empty for everything."""
    protect: tuple[str, ...] = Field(default=(), max_length=50)
    """Globs of files that no patch may change, besides those that policy always protects."""
    tests: tuple[str, ...] = Field(default=(), max_length=MOST_TESTS, exclude_if=lambda globs: not globs)
    """Globs of files that are tests or start them, besides those whose names say so."""
    limits: Limits = Limits()
    sandbox: SandboxLimits = SandboxLimits()
    verify: Level = Level.standard
    effort: Effort = Effort.lean
    reflect: ReflectionPolicy = ReflectionPolicy.never
    """When `reflect` asks a model; `never` for runs begun before there was a choice."""
    looks: int = Field(default=0, ge=0, le=MOST_LOOKS)
    """How often a model may look around in the snapshot before it answers one question; 0 offers it no probe either."""
    asks: QuestionOptions = QuestionOptions()
    packages: Packages | None = None
    """What may be installed; None where a run has to do with what is there."""
    checks: Checks = Checks()
    seed: int = 0
    tenant: str = "home"
    repo: str = ""
    """A name for the repo, for memory and provenance."""
    parent: str = ""
    """The run this one was forked from or spawned by."""
    errand: int = 0
    """Which of its parent's errands it is; 0 where it is none."""
    explore: bool = True
    """Whether lessons that apply may be withheld, so that their worth is measured."""

    @model_validator(mode="before")
    @classmethod
    def _read_flat(cls, values: object) -> object:
        """Earlier versions stored the fields of all modes beside each other; they may be given so by keyword, too."""
        return upgrade_flat_spec(cast("dict[str, object]", values)) if isinstance(values, dict) else values

    @property
    def mode(self) -> Mode:
        return self.task.mode

    def task_of(self, kind: type[_TaskT]) -> _TaskT:
        """The task, for code that is of one mode alone. Raises `TypeError` where the run is of another."""
        if not isinstance(self.task, kind):
            raise TypeError(f"a run of mode {self.mode.value} has no {kind.__name__}")
        return self.task

    def with_command(self, command: tuple[str, ...]) -> RunSpec:
        """The same whose tests are started by `command`, where that is not empty."""
        suite = self.suite.model_copy(update={"command": command})
        return self.model_copy(update={"suite": suite}) if command else self

    @property
    def guarded(self) -> tuple[str, ...]:
        """Every glob of files that no patch of this run may change."""
        return (*self.protect, *self.tests)

    @property
    def lacks_test(self) -> bool:
        """Whether a red test of a program that is there is to be written first: of an issue, or an improvement."""
        if isinstance(self.task, FixTask):
            return self.task.issue
        return isinstance(self.task, ImproveTask) and self.errand > 0

    @property
    def begins_cycles(self) -> bool:
        """Whether its work is done by child runs, each of which is one improvement."""
        return isinstance(self.task, ImproveTask) and not self.errand

    @property
    def whole(self) -> str:
        """The goal of the program that the run writes a part of; empty for every other run."""
        return self.task.whole if isinstance(self.task, CreateTask) else ""

    @property
    def test_cpu(self) -> int:
        """Seconds of processor time that each test may use; 0 for no limit."""
        return self.task.test_cpu if isinstance(self.task, CreateTask) else 0


class ChildTask(FrozenValue):
    """A part of a run's work that is a run of its own. What it does not say is as in the run that begins it."""

    number: int
    """From 1, in the order in which they are begun; the run's id is made of it."""
    mode: Mode
    title: str = Field(default="", max_length=GOAL_LIMIT)
    """What it is to reach, in words."""
    criteria: tuple[str, ...] = Field(default=(), max_length=MOST_CRITERIA)
    place: int = 0
    """Of a plan's subtask: its place in the plan, from 1."""
    base: Snapshot
    limits: Limits


class ChildResult(FrozenValue):
    """How an errand ended, as the run that began it is told."""

    number: int
    result: Result | None
    reason: str = ""
    about: str = ""
    """What it did, in a sentence."""
    made: Snapshot | None = None
    """What it made, where that is verified."""
    spend: Spend = Spend()
    installed: Installed | None = None
    """What was installed for that."""
    approved: tuple[str, ...] = ()
    """Packages that a person said yes to."""


class ChildProgress(FrozenValue):
    """What a run's errands came to so far: as much of it as is needed to go on, however many there were."""

    begun: int = 0
    kept: int = 0
    dropped: int = 0
    in_a_row: int = 0
    """How many were dropped since the last that was kept."""
    last: tuple[str, ...] = Field(default=(), max_length=8)
    """What the last ones did and came to, a line each, the newest last."""
    merged: tuple[int, ...] = Field(default=(), max_length=8)
    """Of a plan's subtasks those whose errand was kept, by their place in the plan."""


class Decision(FrozenValue):
    action: Action
    reason: str
    next: Step | None = None
    """Where the next attempt begins (retry)."""
    result: Result | None = None
    """How the run ends (accept, stop, ask)."""
    errands: tuple[ChildTask, ...] = Field(default=(), max_length=8)
    """Whom the run waits for (spawn)."""
    work: ChildProgress | None = None
    """What the errands came to, where that has changed."""
    kept: Snapshot | None = None
    """What the run goes on from, where errands have changed that."""
    spent: Spend = Spend()
    """What the errands that ended have spent."""
    approved: tuple[str, ...] = ()
    """Packages that a person said yes to."""
    installed: Installed | None = None
    """What errands had installed for what they made."""
    turn: CourseChange | None = None
    """Why and how the next attempt differs, where the run goes in circles (retry)."""
    trend: Trend | None = None
    """None where fewer than two counts of red tests can be compared."""
    warning: str = ""
    """That the run will be ended if it goes on bringing nothing."""
    answered: bool = Field(default=False, exclude_if=lambda answered: not answered)
    """Whether a person's answer led to it."""


class Attempt(FrozenValue):
    """One iteration: a field for each step, filled as it is done."""

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
        """What the attempt made: shrunk, where that was done."""
        shrunk = self.test.shrunk if self.test else None
        return shrunk or (self.apply.snapshot if self.apply else None)

    @property
    def diff(self) -> str:
        """Blob of the diff from the base to that; of a refused patch too, where it could be made."""
        shrunk = self.test.shrunk_diff if self.test else ""
        return shrunk or (self.apply.diff if self.apply else "")


class AttemptSummary(FrozenValue):
    """What the next attempt needs to know of an earlier one; the whole of it is in the store."""

    number: int
    fingerprint: str = ""
    diff: str = ""
    """Blob of the diff that was tried."""
    edits: str = Field(default="", exclude_if=lambda blob: not blob)
    """Blob of the `EditList` of an attempt whose edits did not fit the files."""
    files: tuple[str, ...] = ()
    outcome: str = ""
    """In a few words: why it did not end green."""
    problem: PatchProblem | None = Field(default=None, exclude_if=lambda problem: problem is None)
    refused: bool = False
    red: int | None = None
    report: str = ""
    """Blob of its test run's `CaseList`."""
    probe: str = ""
    """Blob of what its probe printed, where it made one instead of edits."""
    signature: str = ""
    failure: Signature | None = None
    """What its own test run failed with, as far as it is still recalled by: kept of the last attempts."""
    reflection: Reflection | None = None
    """Why it failed: by the step `reflect`, else as the next attempt's answer says."""
    weak: str = ""
    """Where its program was green and the tests would not have noticed a broken one: what they did not notice."""
    reason: str = ""
    seen: AttemptOutcome = AttemptOutcome()
    turn: CourseChange | None = None
    """How the attempt after it was to differ."""
    waited: bool = Field(default=False, exclude_if=lambda waited: not waited)
    """Whether it only waited for a person to approve packages, which is no attempt at the fix."""
    asked: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """Whether it ended with a question to a person."""


class RunState(RunValue):
    """All that a driver needs to go on, under 64 KB as JSON whatever the repo: the rest is in blobs."""

    stored_as: ClassVar[StorageFormat] = STATE
    format: str = STATE.version
    run_id: str
    spec: RunSpec
    base: Snapshot
    """What patches are made against: `spec.base`, with the tests that were written for the run (create)."""
    draft: Snapshot | None = None
    """Work in progress that the next attempt goes on from (create), or the last good version (improve).

    A fix begins from `base` each time.
    """
    work: ChildProgress = ChildProgress()
    installed: Installed | None = None
    approved: tuple[str, ...] = ()
    now: Attempt
    last: Step | None = None
    """The step that was committed last."""
    history: tuple[AttemptSummary, ...] = ()
    taught: LessonDraws | None = None
    """The lessons that apply to the run, each shown or withheld for all of it; None before they were looked for."""
    spend: Spend = Spend()
    status: Status = Status.running
    result: Result | None = None
    reason: str = ""
    version: int = 0
    """How many steps were committed."""
    seq: int = 0
    """How many events were committed."""

    @property
    def suited(self) -> RunSpec:
        """The spec as the tests are run now: with what was installed for the run, and with the tests written for it.

        What starts the tests is protected in it as all else is.
        """
        spec = self.spec.model_copy(update={"protect": self.spec.guarded})
        spec = spec.with_command(self.now.reproduce.command) if self.now.reproduce else spec
        if self.installed is None:
            return spec
        suite = spec.suite.model_copy(update={"environment": self.installed.environment})
        return spec.model_copy(update={"suite": suite})

    @property
    def foreign_language(self) -> str:
        """The language of the targets where Redstart cannot alter them to see that they can still fail; else empty."""
        return self.now.reproduce.language if self.now.reproduce else ""

    @property
    def packages(self) -> tuple[str, ...]:
        """What a new program may import besides what its language brings along."""
        return self.installed.packages if self.installed else ()

    @property
    def ground(self) -> Snapshot:
        """What the next edits are made on."""
        return self.draft or self.base

    @property
    def splits(self) -> bool:
        """Whether the plan's subtasks are to be runs of their own, put together afterwards (create)."""
        several = self.now.plan is not None and len(self.now.plan.subtasks) > 1
        return several and self.spec.task.makes_program and not self.spec.errand and not self.work.begun

    @property
    def probes(self) -> int:
        """How many attempts ended with a probe, the one at hand among them."""
        now = bool(self.now.test and self.now.test.probe)
        return sum(bool(entry.probe) for entry in self.history) + now

    @property
    def tries(self) -> int:
        """Attempts at the fix so far, the one at hand among them: all but those spent on a probe or an approval."""
        return self.now.number - self.probes - sum(entry.waited for entry in self.history)

    @property
    def turn(self) -> CourseChange | None:
        """How the attempt at hand is to differ from those before it."""
        return self.history[-1].turn if self.history else None

    def taken(self, strategy: Strategy) -> int:
        """How many attempts before this one led to that strategy."""
        return sum(entry.turn is not None and entry.turn.strategy is strategy for entry in self.history)
