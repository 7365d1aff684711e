"""Code as data: snapshots, patches and what came of applying them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from redstart.core.learning import Reflection
from redstart.core.noun import FrozenValue


class Snapshot(FrozenValue):
    """The files of a repo at one moment, wherever they are: it can be rebuilt on any machine that reaches the blobs.

    `tree` names the content (a git tree id). It is `base` with `diff` applied; `pack` holds the objects of `base`.
    """

    tree: str
    base: str
    pack: str
    """Blob: a git pack with everything `base` needs."""
    diff: str = ""
    """Blob: the binary diff from `base` to `tree`; empty where they are the same."""


class EditKind(StrEnum):
    block = "block"
    """Search text that must be found exactly once, and what stands there instead."""
    diff = "diff"
    """A unified diff of one file."""
    whole = "whole"
    """All of a file as it shall be."""
    envelope = "envelope"
    """One file's part of an `apply_patch` envelope, with the line that says what is done to it."""


class Edit(FrozenValue):
    """One edit of one file, as the model gave it. `search` is for blocks alone; `number` is its place in the answer."""

    kind: EditKind
    path: str = ""
    search: str = ""
    text: str = ""
    number: int = 1
    closed: bool = True
    """Whether something besides the text itself says that this is all of it: a fence, an end marker."""


class EditList(FrozenValue):
    """What a patch's blob holds."""

    edits: tuple[Edit, ...] = ()


class Probe(FrozenValue):
    """What a model wants run before it edits: tests by their ids, or a snippet of Python."""

    ids: tuple[str, ...] = ()
    snippet: str = ""


class PatchProblem(StrEnum):
    """Why there is nothing usable in an answer, where the run goes by it."""

    over_budget = "over_budget"
    """The model was not asked, or not until it answered: the call could exceed a limit."""
    unchanged = "unchanged"
    """The answer gives files back as they are."""


class Patch(FrozenValue):
    """What the model proposes: edits, or a probe (code to run before editing), or nothing that can be used."""

    edits: str = ""
    """Blob: an `EditList`. Empty where there are none."""
    probe: str = ""
    """Blob: a `Probe`, what to run instead of an edit."""
    looks: int = Field(default=0, exclude_if=lambda count: not count)
    """How often the model looked around in the snapshot before it answered."""
    answer: str = ""
    """Blob: the model's words, as they came."""
    model: str = ""
    """Which model said them."""
    form: EditKind | None = None
    """In which form edits were asked for."""
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    why: str = ""
    test_change: str = ""
    """Why a test itself would have to change, where the model says so openly: then a person is asked."""
    reflection: Reflection | None = None
    """What the model says of the attempt before, asked in the same call."""
    recalled: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """Ids of the fix cards that were recalled by the failure of the attempt before."""
    failed_before: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """Ids of the failed attempts of earlier runs that the question showed."""
    problem: PatchProblem | None = Field(default=None, exclude_if=lambda problem: problem is None)
    fault: str = ""
    """Why there is nothing usable, in words."""

    @property
    def over_budget(self) -> bool:
        return self.problem is PatchProblem.over_budget


class EditFit(StrEnum):
    """How far an edit had to be bent to fit, the least first."""

    exact = "exact"
    """As it stands: text and, where it names one, place."""
    whitespace = "whitespace"
    """Blanks at line ends, indentation shifted as a whole, tabs for spaces, a lost marker before context."""
    recount = "recount"
    """The counts of a hunk were wrong."""
    realign = "realign"
    """Found by its lines, at another place than it named or with lines left out between them."""
    merge = "merge"
    """Context that differs was merged; every removed line is there."""
    node = "node"
    """A definition of a Python file replaced by name."""


class EditRecord(FrozenValue):
    """What became of one edit; counted by model, it tells which form to ask for."""

    kind: EditKind
    rung: EditFit | None = None
    """None where it did not fit."""


class FitCounts(NamedTuple):
    """Edits of one model in one form: how many fitted, of how many."""

    fitted: int = 0
    tried: int = 0


class EditRejection(FrozenValue):
    """An edit that was not applied, and why."""

    path: str
    reason: str
    nearest: str = ""
    """The real lines that come closest to what the edit looked for."""
    block: int = 0
    """Which edit of the answer, from 1; 0 where it is about all of them."""
    already: bool = False
    """It seems to have been applied before."""

    @property
    def words(self) -> str:
        """Which edit, of which file, why, and what is really there."""
        which = f"edit {self.block} ({self.path})" if self.block else self.path
        already = "; it seems to have been made already" if self.already else ""
        return f"{which}: {self.reason}{already}\n{self.nearest}".strip()


class RejectedEdit(NamedTuple):
    """An edit that was not applied, beside what the file holds instead."""

    number: int
    """Which edit of the answer, from 1; 0 for all edits of the file together."""
    path: str
    reason: str
    sent: str
    """The edit as the model wrote it."""
    nearest: str
    """The lines of the file that come closest; empty where none do."""


class ApplyResult(FrozenValue):
    """All of a patch, or nothing of it."""

    ok: bool
    snapshot: Snapshot | None = None
    diff: str = ""
    """Blob: the unified diff that was made (of a refused patch too, where it could be made)."""
    rung: str = ""
    """The highest rung that an edit needed."""
    rungs: tuple[EditRecord, ...] = ()
    """Of each edit, in the order of the answer; the first ones of many."""
    fits: tuple[int, ...] = ()
    """Numbers of the edits that would have fitted, where others did not and nothing was applied."""
    rejects: tuple[EditRejection, ...] = ()
    refused: bool = False
    """Policy said no: a protected path, a forbidden mode, too large."""
    proposes: tuple[str, ...] = ()
    """Tests that the patch changes and says so: it can be green only with a person's yes."""
    added: int = 0
    removed: int = 0

    @property
    def words(self) -> str:
        """Why nothing was applied, as the next attempt is told; empty where it was."""
        if self.ok:
            return ""
        told = [reject.words for reject in self.rejects]
        if self.fits and not self.refused:
            numbers = ", ".join(map(str, self.fits))
            told.append(f"of the other edits these fit: {numbers}. Nothing was applied: give all of them again.")
        return "\n".join(told)
