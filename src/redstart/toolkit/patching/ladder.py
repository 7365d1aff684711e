"""Putting edits on a snapshot: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditRung, Reject, Rung, Snapshot
from redstart.core.errors import PolicyViolation
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.languages.registry import language_of_file
from redstart.toolkit.patching.fitting.edit_file import RUNGS, Misfit, MisfitKind, creates, rework
from redstart.toolkit.patching.paths import resolve


class Put(NamedTuple):
    """What the edits make of the files: contents by path, None for one that goes; empty where an edit is rejected."""

    files: dict[str, bytes | None]
    rejects: tuple[Reject, ...] = ()
    rungs: tuple[EditRung, ...] = ()
    """Of each edit, in order."""
    fits: tuple[int, ...] = ()
    """Numbers of the edits that fit."""

    @property
    def rung(self) -> Rung:
        return max((one.rung for one in self.rungs if one.rung), key=RUNGS.index, default=Rung.exact)


class Climbed(NamedTuple):
    """The new snapshot, or why there is none. `refused` tells policy's no from an edit that does not fit."""

    snapshot: Snapshot | None
    rejects: tuple[Reject, ...] = ()
    refused: bool = False
    rung: Rung = Rung.exact
    rungs: tuple[EditRung, ...] = ()
    fits: tuple[int, ...] = ()


def climb(trees: Trees, base: Snapshot, edits: Sequence[Edit]) -> Climbed:
    """Applies the edits to `base`, each on the lowest rung that has one place for it. Nothing is written otherwise."""
    done = put(edits, lambda path: trees.read(base, path), trees.files(base))
    if done.rejects:
        return Climbed(None, done.rejects, rungs=done.rungs, fits=done.fits)
    try:
        snapshot = trees.write(base, done.files)
    except PolicyViolation as error:
        reject = Reject(path=", ".join(done.files), reason=str(error))
        return Climbed(None, (reject,), refused=True, rungs=done.rungs)
    if snapshot.tree == base.tree:
        reject = Reject(path=", ".join(done.files), reason="the edits change nothing")
        return Climbed(None, (reject,), rungs=done.rungs)
    return Climbed(snapshot, rung=done.rung, rungs=done.rungs)


def put(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> Put:
    """The edits on contents, all or nothing. `names` are the files there are; later edits see what earlier ones made.

    A file that was a program of its language, and one that is new, must be a program afterwards.
    """
    files: dict[str, bytes | None] = {}
    rejects: list[Reject] = []
    rungs: list[EditRung] = []
    fits: list[int] = []
    spoilt: set[str] = set()
    for edit in edits:
        path = resolve(edit.path, names, creates=creates(edit))
        if isinstance(path, Reject):
            rejects.append(path.model_copy(update={"block": edit.number}))
            rungs.append(EditRung(kind=edit.kind))
            continue
        done = rework(edit, path, files[path] if path in files else read(path))
        if isinstance(done, Reject):
            rejects.append(done.plain if isinstance(done, Misfit) else done)
            spoilt.add(path)
        else:
            files[path] = done.data
            fits.append(edit.number)
        rungs.append(EditRung(kind=edit.kind, rung=None if isinstance(done, Reject) else done.rung))
    for path, data in files.items():
        if path not in spoilt and (wrong := _broken(path, read(path), data)):
            rejects.append(wrong)
    if rejects:
        return Put({}, tuple(rejects), tuple(rungs), tuple(fits))
    return Put(files, (), tuple(rungs), tuple(fits))


def unchanged(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> tuple[str, ...]:
    """The files that the edits give back as they are; none where one of them does anything else or does not fit."""
    found: dict[str, None] = {}
    for edit in edits:
        path = resolve(edit.path, names, creates=creates(edit))
        done = path if isinstance(path, Reject) else rework(edit, path, read(path))
        if not isinstance(done, Misfit) or done.kind is not MisfitKind.unchanged:
            return ()
        found[done.path] = None
    return tuple(found)


def _broken(path: str, before: bytes | None, after: bytes | None) -> Reject | None:
    language = language_of_file(path)
    code = language.edited_code if language else None
    if after is None or language is None or code is None or (wrong := code.flaw(after)) is None:
        return None
    if before is not None and code.flaw(before) is not None:
        return None
    lines = after.decode(errors="replace").split("\n")
    near = lines[max(wrong.line - 3, 0) : wrong.line + 1]
    reason = f"it would no longer be a {language.name} program: {wrong.message} (line {wrong.line})"
    return Reject(path=path, reason=reason, nearest="with the edits it reads:\n" + "\n".join(near) if near else "")
