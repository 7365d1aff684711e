"""Plan, reflections and memories of a run."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import Field

from redstart.core.frozen import FrozenValue
from redstart.core.lesson import Lesson, LessonDraws
from redstart.core.packages import Installed, PackageRequest
from redstart.core.pattern import SolutionPattern

SIGNATURE_VERSION = 2
"""Part of every key. When it is raised, stored records keep their old keys. No new failure has such a key, so older
cards are no longer found by signature or family, only by their text. Their keys cannot be computed again, because the
original text is not stored."""


ASSERTION_TYPES = frozenset(("AssertionError", "JestAssertionError", "Failed", "failureException"))
"""The exceptions of failed assertions, without their modules."""


def _compute_digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join((str(SIGNATURE_VERSION), *parts)).encode()).hexdigest()[:32]


class Signature(FrozenValue):
    """The normalized identity of a failure, without what differs between machines and runs."""

    exception: str
    message: str
    """The normalized message."""
    frame: str
    """`path:qualname` of the innermost frame in the repo's source, else the test's ID, or only its file."""
    kind: str = ""
    """The message without the repo's own names and without values; empty if `message` has none."""
    at: str = ""
    """The line that the test had reached, if the frame is a test's ID."""

    @property
    def key(self) -> str:
        """Identity of this bug."""
        return _compute_digest(self._type, self.message, self.frame, self.at)

    @property
    def family(self) -> str:
        """Identity of this kind of bug, in any repo."""
        return _compute_digest(self._type, self.kind or self.message)

    @property
    def is_plain_assertion(self) -> bool:
        """Whether a test found a wrong value. That tests in other projects did too, in whatever words, says nothing."""
        is_test_id = "::" in self.frame or ":" not in self.frame
        return self._type in ASSERTION_TYPES and is_test_id

    @property
    def _type(self) -> str:
        """The exception's name without its module: Python moves its exceptions between modules."""
        return self.exception.rpartition(".")[2]


class ReflectionPolicy(StrEnum):
    """When the step `reflect` asks a model why an attempt failed."""

    auto = "auto"
    """From the second failed attempt on."""
    always = "always"
    """After every attempt whose tests fail, including the last."""
    never = "never"


class Reflection(FrozenValue):
    """Why an attempt failed, and what to try next."""

    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""

    @property
    def explains(self) -> bool:
        """Whether a model explained the failure. Otherwise `what_failed` only repeats the test's message."""
        return bool(self.root_cause or self.try_next)


class CardState(StrEnum):
    shown = "shown"
    """The card may be recalled: its run was verified."""
    quarantined = "quarantined"
    """The card is stored for review by people, and never recalled."""


class FixCard(FrozenValue):
    """What a verified run leaves for the next run with the same failure."""

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
    """`verified`, or another outcome, with which the card is quarantined."""
    provenance: dict[str, str]
    """Where it comes from: `repo`, `commit` (the tree with the failure), `run` and `model`."""
    signature: Signature | None = None
    """The failure; None on cards from before this field existed."""
    test_id: str = ""
    asked: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether the run asked a person something before it was verified; False on cards from before this field
    existed."""

    @property
    def state(self) -> CardState:
        """The initial state. The fate of its run, or a person, may change it in the store."""
        return CardState.shown if self.outcome == "verified" else CardState.quarantined

    @property
    def likeness(self) -> str:
        """The words by which a similar failure finds it."""
        text = build_similarity_text(self.signature, self.test_id) if self.signature else self.summary
        return f"{text}\n{self.root_cause}".strip()


def build_similarity_text(signature: Signature, test_id: str = "") -> str:
    """Join the words of a failure that are compared with other failures."""
    return "\n".join(
        part for part in (signature.exception, signature.message, signature.frame, _test_name(test_id)) if part
    )


def _test_name(test_id: str) -> str:
    """Return the test's ID without its parameters, which are values."""
    return test_id.partition("[")[0]


class FailureRecord(FrozenValue):
    """What a failed attempt leaves: what was tried, and how it failed."""

    id: str
    error_signature: str
    family: str
    test_id: str
    patch: str
    """The patch's fingerprint."""
    what_failed: str
    signature: Signature | None = None
    provenance: dict[str, str] = {}
    """As in a fix card."""
    tried: str = ""
    """The purpose of the patch, in the model's words. It and all following fields are empty in records from before they
    existed."""
    files: tuple[str, ...] = ()
    change: str = ""
    """The lines that the patch added and removed, clipped."""
    root_cause: str = ""
    try_next: str = ""
    """This and `root_cause` come from the reflection on the attempt, if there is one."""

    @property
    def likeness(self) -> str:
        """The words by which a similar failure finds it."""
        failure = build_similarity_text(self.signature, self.test_id) if self.signature else _test_name(self.test_id)
        return "\n".join(part for part in (failure, self.what_failed, self.root_cause) if part)


class EdgeKind(StrEnum):
    """The relation between two nodes of the memory graph. An iteration is named `RUN/NUMBER`."""

    iteration = "iteration"
    """From a run to its iteration."""
    step = "step"
    """From an iteration to a step that it executed."""
    retrieved_file = "retrieved_file"
    """From an iteration to a file that was shown to the model."""
    changed_file = "changed_file"
    """From an iteration to a file that its patch changed."""
    failure_signature = "failure_signature"
    """From an iteration to the key of its failure."""
    bug_type = "bug_type"
    """From an iteration to the type of the exception."""
    has_fix_card = "has_fix_card"
    """From an iteration to the card that it left."""


class MemoryEdge(FrozenValue):
    kind: EdgeKind
    source: str
    target: str


class RecalledCard(FrozenValue):
    """A card from memory, with the reason why it matches."""

    card: FixCard
    score: float
    source: str
    """`signature` (the same bug), `family` (the same kind of bug) or `likeness` (similar words)."""


class Subtask(FrozenValue):
    title: str
    criteria: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    """The subtasks that must be done first, by their place in the plan, from 1."""


class Plan(FrozenValue):
    """What to do. A lean fix needs only what memory recalled."""

    summary: str = ""
    subtasks: tuple[Subtask, ...] = ()
    recalled: tuple[RecalledCard, ...] = ()
    taught: LessonDraws | None = None
    """The lessons that apply to the run; set only in the first plan, which looks for them."""
    patterns: tuple[str, ...] = ()
    """IDs of the patterns of similar goals that the question showed."""
    reviews: tuple[str, ...] = ()
    """In an audit: what is reviewed, `sql`, `code` or both; empty for both."""
    files: tuple[str, ...] = ()
    """In an audit: the files and folders that the goal is about; empty for all."""
    packages: tuple[PackageRequest, ...] = Field(default=(), exclude_if=lambda requests: not requests)
    """Packages that the new program will use."""
    asks: str = Field(default="", exclude_if=lambda text: not text)
    """What a person must approve before the plan can be followed; empty if nothing is left to approve."""
    to_approve: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """The packages that `asks` is about, each as `language:name`."""
    installed: Installed | None = Field(default=None, exclude_if=lambda value: value is None)
    """The packages that were installed for the plan."""
    over_budget: bool = Field(default=False, exclude_if=lambda exceeded: not exceeded)
    """Whether the model was not asked because the call could exceed a limit."""
    fault: str = ""


class NewMemories(FrozenValue):
    """The result of the step `remember`. The commit of the step writes it, keyed by run and attempt."""

    card: FixCard | None = None
    failure: FailureRecord | None = None
    lesson: Lesson | None = None
    lesson_refused: tuple[str, ...] = ()
    """Why the proposed lesson was refused."""
    pattern: SolutionPattern | None = None
