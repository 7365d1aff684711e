"""Code as data: snapshots, patches, and the results of applying them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from redstart.core.frozen import FrozenValue
from redstart.core.learning import Reflection
from redstart.core.set_aside import SetAside


class Snapshot(FrozenValue):
    """The files of a repo at one moment. Any machine that can read the blobs can rebuild them.

    `tree` identifies the content (a git tree ID). It is `base` with `diff` applied; `pack` holds the objects of `base`.
    """

    tree: str
    base: str
    pack: str
    """Blob: a git pack with everything that `base` needs."""
    diff: str = ""
    """Blob: the binary diff from `base` to `tree`; empty if they are equal."""


class EditKind(StrEnum):
    block = "block"
    """Search text that must occur exactly once, and its replacement."""
    diff = "diff"
    """A unified diff of one file."""
    whole = "whole"
    """The complete new text of a file."""
    envelope = "envelope"
    """One file's part of an `apply_patch` envelope, with the line that names the operation."""


class Edit(FrozenValue):
    """One edit of one file, as the model wrote it. Only blocks use `search`; `number` is the place in the answer."""

    kind: EditKind
    path: str = ""
    search: str = ""
    text: str = ""
    number: int = 1
    closed: bool = True
    """Whether a fence or an end marker confirms that the text is complete."""


class EditList(FrozenValue):
    """The content of a patch's blob."""

    edits: tuple[Edit, ...] = ()


class Probe(FrozenValue):
    """What a model asks to run before it edits: tests by their IDs, or a Python snippet."""

    ids: tuple[str, ...] = ()
    snippet: str = ""


class PatchProblem(StrEnum):
    """Why an answer is unusable. Only reasons that change what the run does have a value."""

    over_budget = "over_budget"
    """The model was not asked, or its call was aborted: the call could exceed a limit."""
    unchanged = "unchanged"
    """The answer returns files unchanged."""


class Patch(FrozenValue):
    """The model's proposal: edits, a probe (code to run before editing), or nothing usable."""

    edits: str = ""
    """Blob: an `EditList`; empty if there are no edits."""
    tree: Snapshot | None = Field(default=None, exclude_if=lambda tree: tree is None)
    """The code as the model left it at the end of a working session, in which its edits were applied one by one."""
    conversation: str = Field(default="", exclude_if=lambda blob: not blob)
    """Blob: the `Conversation` of a working session. The next attempt goes on with it."""
    probe: str = ""
    """Blob: a `Probe` to run instead of applying an edit."""
    looks: int = Field(default=0, exclude_if=lambda count: not count)
    """How many tool calls the model made before it answered."""
    answer: str = ""
    """Blob: the raw answer of the model."""
    model: str = ""
    """The model that answered."""
    form: EditKind | None = None
    """The edit form that was asked for."""
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    why: str = ""
    test_change: str = ""
    """Why a test itself must change, if the model says so openly: then a person is asked."""
    reflection: Reflection | None = None
    """The model's reflection on the previous attempt, asked for in the same call."""
    recalled: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """IDs of the fix cards that were recalled for the failure of the previous attempt."""
    failed_before: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """IDs of the failed attempts of earlier runs that the question showed."""
    set_aside: SetAside | None = Field(default=None, exclude_if=lambda entry: entry is None)
    """The failing tests that, as the model says, fail for another reason than the code."""
    problem: PatchProblem | None = Field(default=None, exclude_if=lambda problem: problem is None)
    fault: str = ""
    """Why the answer is unusable, in words."""

    @property
    def has_edits(self) -> bool:
        return bool(self.edits) or self.tree is not None

    @property
    def over_budget(self) -> bool:
        return self.problem is PatchProblem.over_budget


class EditFit(StrEnum):
    """How much an edit had to be adapted to fit, least first."""

    exact = "exact"
    """The text fits as written, at the named place if there is one."""
    whitespace = "whitespace"
    """Differences in trailing blanks, uniform indentation, tabs for spaces, or a lost marker before context."""
    recount = "recount"
    """The line counts of a hunk were wrong."""
    realign = "realign"
    """Found by its lines, at a place other than the named one or with lines left out between them."""
    merge = "merge"
    """Differing context was merged; every removed line exists."""
    node = "node"
    """A definition of a Python file was replaced by name."""


class EditRecord(FrozenValue):
    """The result of one edit. The counts by model decide which form to ask for."""

    kind: EditKind
    rung: EditFit | None = None
    """None if the edit did not fit."""


class FitCounts(NamedTuple):
    """Edits of one model in one form: how many of them fit."""

    fitted: int = 0
    tried: int = 0


class EditRejection(FrozenValue):
    """An edit that was not applied, and why."""

    path: str
    reason: str
    nearest: str = ""
    """The existing lines that are closest to the search text."""
    block: int = 0
    """Number of the edit in the answer, from 1; 0 if the rejection is about all edits."""
    already: bool = False
    """Whether the edit seems to be applied already."""

    @property
    def words(self) -> str:
        """Describe which edit of which file was rejected and why, and quote the lines that exist instead."""
        subject = f"edit {self.block} ({self.path})" if self.block else self.path
        already_text = "; it seems to have been made already" if self.already else ""
        return f"{subject}: {self.reason}{already_text}\n{self.nearest}".strip()


class RejectedEdit(NamedTuple):
    """An edit that was not applied, with the existing lines of the file."""

    number: int
    """Number of the edit in the answer, from 1; 0 for all edits of the file together."""
    path: str
    reason: str
    edit_text: str
    """The edit as the model wrote it."""
    nearest: str
    """The closest lines of the file; empty if none are close."""


class ApplyResult(FrozenValue):
    """The result of applying a patch: all of it is applied, or nothing."""

    ok: bool
    snapshot: Snapshot | None = None
    diff: str = ""
    """Blob: the resulting unified diff, also of a refused patch if it can be computed."""
    rung: str = ""
    """The highest rung of the apply ladder that an edit needed."""
    rungs: tuple[EditRecord, ...] = ()
    """One record per edit, in the order of the answer; only the first ones if there are many."""
    fits: tuple[int, ...] = ()
    """Numbers of the edits that would fit, if others do not and nothing was applied."""
    rejects: tuple[EditRejection, ...] = ()
    refused: bool = False
    """Whether policy refused the patch: a protected path, a forbidden mode, too large."""
    proposes: tuple[str, ...] = ()
    """Tests that the patch openly changes. It can pass only if a person approves."""
    added: int = 0
    removed: int = 0

    @property
    def words(self) -> str:
        """Describe for the next attempt why nothing was applied; empty if the patch was applied."""
        if self.ok:
            return ""
        lines = [reject.words for reject in self.rejects]
        if self.fits and not self.refused:
            numbers = ", ".join(map(str, self.fits))
            lines.append(f"of the other edits these fit: {numbers}. Nothing was applied: give all of them again.")
        return "\n".join(lines)
