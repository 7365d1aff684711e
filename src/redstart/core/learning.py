"""What a run thinks, plans and keeps."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import Field

from redstart.core.lesson import Lesson, LessonDraws
from redstart.core.noun import FrozenValue
from redstart.core.packages import Installed, PackageRequest
from redstart.core.pattern import SolutionPattern

SIGNATURE_VERSION = 2
"""Part of every key. Where it grows, what was kept under older keys keeps them: no new failure has such a key, so older
cards are no longer found by signature or by family, only by what they say. They are not named anew, because the text
that they were named from is not kept."""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join((str(SIGNATURE_VERSION), *parts)).encode()).hexdigest()[:32]


class Signature(FrozenValue):
    """A failure with what differs between machines and runs taken out."""

    exception: str
    message: str
    """What it said, normalised."""
    frame: str
    """`path:qualname` of the innermost frame in the repo's source, else the test's own id, or its file alone."""
    kind: str = ""
    """What it said without the repo's own names and without values; empty where `message` has none."""
    at: str = ""
    """Where the frame is a test's id: the line that the test was at."""

    @property
    def key(self) -> str:
        """This bug."""
        return _digest(self._type, self.message, self.frame, self.at)

    @property
    def family(self) -> str:
        """This kind of bug, in any repo."""
        return _digest(self._type, self.kind or self.message)

    @property
    def _type(self) -> str:
        """Without its module: Python moves its exceptions from one to another."""
        return self.exception.rpartition(".")[2]


class ReflectionPolicy(StrEnum):
    """When the step `reflect` asks a model why an attempt failed."""

    auto = "auto"
    """From the second failed attempt on."""
    always = "always"
    """After every attempt whose tests fail, the last one included."""
    never = "never"


class Reflection(FrozenValue):
    """Why an attempt failed, and what to try next."""

    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""

    @property
    def explains(self) -> bool:
        """Whether a model explained the failure; otherwise `what_failed` only repeats the test's message."""
        return bool(self.root_cause or self.try_next)


class CardState(StrEnum):
    shown = "shown"
    """It may be recalled: the run that left it was verified."""
    quarantined = "quarantined"
    """It is kept for people to look at, and never recalled."""


class FixCard(FrozenValue):
    """What a verified run leaves for the next one that meets the same failure."""

    id: str
    summary: str
    root_cause: str
    fix: str
    verification: str
    error_signature: str
    family: str
    files_changed: tuple[str, ...]
    debug_steps: tuple[str, ...]
    outcome: str
    """`verified`, or what else came of the attempt: such a card is quarantined."""
    provenance: dict[str, str]
    """Where it comes from: `repo`, `commit` (the tree that was red), `run` and `model`."""
    signature: Signature | None = None
    """What was red, in words; None on a card of before this was kept."""
    test_id: str = ""
    asked: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """Whether the run asked a person something before it ended green; False on a card of before this was kept."""

    @property
    def state(self) -> CardState:
        """How it begins. What becomes of its run, or a person, may change that in the store."""
        return CardState.shown if self.outcome == "verified" else CardState.quarantined

    @property
    def likeness(self) -> str:
        """The words by which a similar failure finds it."""
        told = likeness(self.signature, self.test_id) if self.signature else self.summary
        return f"{told}\n{self.root_cause}".strip()


def likeness(signature: Signature, test_id: str = "") -> str:
    """The words of a failure that another one is compared by."""
    return "\n".join(
        part for part in (signature.exception, signature.message, signature.frame, _test_name(test_id)) if part
    )


def _test_name(test_id: str) -> str:
    """Without its parameters, which are values."""
    return test_id.partition("[")[0]


class FailureRecord(FrozenValue):
    """What an attempt that stayed red leaves: what was tried, and how it failed."""

    id: str
    error_signature: str
    family: str
    test_id: str
    patch: str
    """The patch's fingerprint."""
    what_failed: str
    signature: Signature | None = None
    provenance: dict[str, str] = {}
    """As of a card."""
    tried: str = ""
    """What the patch was to do, in the model's words; empty in records of before this was kept, as all that follows."""
    files: tuple[str, ...] = ()
    change: str = ""
    """The lines that the patch added and removed, clipped."""
    root_cause: str = ""
    try_next: str = ""
    """Both as the reflection on the attempt says, where there is one."""

    @property
    def likeness(self) -> str:
        """The words by which a similar failure finds it."""
        failure = likeness(self.signature, self.test_id) if self.signature else _test_name(self.test_id)
        return "\n".join(part for part in (failure, self.what_failed, self.root_cause) if part)


class EdgeKind(StrEnum):
    """How two things that a run left belong together. An iteration is named `RUN/NUMBER`."""

    iteration = "iteration"
    """From a run to its iteration."""
    step = "step"
    """From an iteration to a step that was done in it."""
    retrieved_file = "retrieved_file"
    """From an iteration to a file that was shown to the model."""
    changed_file = "changed_file"
    """From an iteration to a file that its patch changed."""
    failure_signature = "failure_signature"
    """From an iteration to the key of what was red."""
    bug_type = "bug_type"
    """From an iteration to the type of the exception."""
    has_fix_card = "has_fix_card"
    """From an iteration to the card that it left."""


class MemoryEdge(FrozenValue):
    kind: EdgeKind
    source: str
    target: str


class RecalledCard(FrozenValue):
    """A card that memory offered, with the reason."""

    card: FixCard
    score: float
    source: str
    """`signature` (this bug), `family` (this kind of bug) or `likeness` (one whose words are alike)."""


class Subtask(FrozenValue):
    title: str
    criteria: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    """The subtasks that must be done before, by their place in the plan, from 1."""


class Plan(FrozenValue):
    """What to do. A lean fix needs no more than what memory recalled."""

    summary: str = ""
    subtasks: tuple[Subtask, ...] = ()
    recalled: tuple[RecalledCard, ...] = ()
    taught: LessonDraws | None = None
    """The lessons that apply to the run, where they were looked for in this plan: in the first."""
    patterns: tuple[str, ...] = ()
    """Ids of what was shown of how like goals were reached before."""
    reviews: tuple[str, ...] = ()
    """Of an audit: what is looked at, `sql`, `code` or both; empty for both."""
    files: tuple[str, ...] = ()
    """Of an audit: the files and folders that the goal is about; empty for all."""
    packages: tuple[PackageRequest, ...] = Field(default=(), exclude_if=lambda requests: not requests)
    """Packages that a new program is to be made with."""
    asks: str = Field(default="", exclude_if=lambda text: not text)
    """What a person has to approve before the plan can be followed; empty where nothing is left to approve."""
    to_approve: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """The packages that this is about, each as `language:name`."""
    installed: Installed | None = Field(default=None, exclude_if=lambda made: made is None)
    """What was installed for the plan."""
    over_budget: bool = Field(default=False, exclude_if=lambda over: not over)
    """Whether the model was not asked because the call could exceed a limit."""
    fault: str = ""


class NewMemories(FrozenValue):
    """What `remember` gives; the commit of the step writes it, keyed by run and attempt."""

    card: FixCard | None = None
    failure: FailureRecord | None = None
    lesson: Lesson | None = None
    lesson_refused: tuple[str, ...] = ()
    """Why what was proposed did not become a lesson."""
    pattern: SolutionPattern | None = None
