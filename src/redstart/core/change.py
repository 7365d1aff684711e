"""Code as data: snapshots, patches and what came of applying them."""

from __future__ import annotations

from enum import StrEnum

from redstart.core.learning import Reflection
from redstart.core.noun import Noun


class Snapshot(Noun):
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
    """A unified diff of one or more files."""


class Edit(Noun):
    """One edit as the model gave it. `path` is empty for a diff, which names its own."""

    kind: EditKind
    path: str = ""
    search: str = ""
    text: str = ""


class EditList(Noun):
    """What a patch's blob holds."""

    edits: tuple[Edit, ...] = ()


class Patch(Noun):
    """What the model proposes: edits, or a probe (code to run before editing), or nothing that can be used."""

    edits: str = ""
    """Blob: an `EditList`. Empty where there are none."""
    probe: str = ""
    """Blob: what to run instead of an edit."""
    answer: str = ""
    """Blob: the model's words, as they came."""
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    why: str = ""
    reflection: Reflection | None = None
    """What the model says of the attempt before, asked in the same call."""
    fault: str = ""
    """Why there is nothing usable."""


class Reject(Noun):
    """An edit that was not applied, and why."""

    path: str
    reason: str
    nearest: str = ""
    """The real lines that come closest to what the edit looked for."""


class Applied(Noun):
    """All of a patch, or nothing of it."""

    ok: bool
    snapshot: Snapshot | None = None
    diff: str = ""
    """Blob: the unified diff that was made (of a refused patch too, where it could be made)."""
    rung: str = ""
    rejects: tuple[Reject, ...] = ()
    refused: bool = False
    """Policy said no: a protected path, a forbidden mode, too large."""
    added: int = 0
    removed: int = 0
