"""Putting edits on a snapshot, all of them or none; and the edits that did not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditFit, EditKind, EditRecord, EditRejection, RejectedEdit, Snapshot
from redstart.core.errors import PolicyViolation
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.languages.registry import language_of_file
from redstart.toolkit.patching.fitting.edit_file import RUNGS, Misfit, MisfitKind, creates, rework

_SHOWN = 5


def resolve(named: str, names: Sequence[str], *, creates: bool = False) -> str | EditRejection:
    """The file that `named` is; where there is none, the only one that ends as it does or that it ends as.

    What creates a file is taken at its word. A path that is like no file is taken as it stands: it may be a new one.
    Several that it may be are a reject.
    """
    if named.startswith('"') or not named:
        return EditRejection(path=named, reason="give the path plain, without quotes")
    known = set(names)
    if named in known or creates:
        return named
    if (bare := named[2:]) in known and named[:2] in ("a/", "b/"):
        return bare
    if "\\" in named and (turned := named.replace("\\", "/")) in known:
        return turned
    if named.startswith("/") or ".." in named.split("/"):
        return _inside(named, names) or named
    ending = [name for name in names if name.endswith("/" + named)]
    if len(ending) == 1:
        return ending[0]
    if len(ending) > 1:
        shown = ", ".join(ending[:_SHOWN])
        return EditRejection(path=named, reason=f"there is no such file, and several end like it: {shown}")
    return _inside(named, names) or named


def _inside(named: str, names: Sequence[str]) -> str:
    """The one file, the longest, whose path stands at the end of `named`; a bare name is too little to go by."""
    within = [name for name in names if "/" in name and named.endswith("/" + name)]
    longest = max(map(len, within), default=0)
    return next((name for name in within if len(name) == longest), "")


class EditedFiles(NamedTuple):
    """What the edits make of the files: contents by path, None for one that goes; empty where an edit is rejected."""

    files: dict[str, bytes | None]
    rejects: tuple[EditRejection, ...] = ()
    rungs: tuple[EditRecord, ...] = ()
    """Of each edit, in order."""
    fits: tuple[int, ...] = ()
    """Numbers of the edits that fit."""

    @property
    def rung(self) -> EditFit:
        return max((item.rung for item in self.rungs if item.rung), key=RUNGS.index, default=EditFit.exact)


class LadderResult(NamedTuple):
    """The new snapshot, or why there is none. `refused` tells policy's no from an edit that does not fit."""

    snapshot: Snapshot | None
    rejects: tuple[EditRejection, ...] = ()
    refused: bool = False
    rung: EditFit = EditFit.exact
    rungs: tuple[EditRecord, ...] = ()
    fits: tuple[int, ...] = ()


def climb(trees: Trees, base: Snapshot, edits: Sequence[Edit]) -> LadderResult:
    """Applies the edits to `base`, each on the lowest rung that has one place for it. Nothing is written otherwise."""
    done = put(edits, lambda path: trees.read(base, path), trees.files(base))
    if done.rejects:
        return LadderResult(None, done.rejects, rungs=done.rungs, fits=done.fits)
    try:
        snapshot = trees.write(base, done.files)
    except PolicyViolation as error:
        reject = EditRejection(path=", ".join(done.files), reason=str(error))
        return LadderResult(None, (reject,), refused=True, rungs=done.rungs)
    if snapshot.tree == base.tree:
        reject = EditRejection(path=", ".join(done.files), reason="the edits change nothing")
        return LadderResult(None, (reject,), rungs=done.rungs)
    return LadderResult(snapshot, rung=done.rung, rungs=done.rungs)


def put(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> EditedFiles:
    """The edits on contents, all or nothing. `names` are the files there are; later edits see what earlier ones made.

    A file that was a program of its language, and one that is new, must be a program afterwards.
    """
    files: dict[str, bytes | None] = {}
    rejects: list[EditRejection] = []
    rungs: list[EditRecord] = []
    fits: list[int] = []
    spoilt: set[str] = set()
    for edit in edits:
        path = resolve(edit.path, names, creates=creates(edit))
        if isinstance(path, EditRejection):
            rejects.append(path.model_copy(update={"block": edit.number}))
            rungs.append(EditRecord(kind=edit.kind))
            continue
        done = rework(edit, path, files[path] if path in files else read(path))
        if isinstance(done, EditRejection):
            rejects.append(done.plain if isinstance(done, Misfit) else done)
            spoilt.add(path)
        else:
            files[path] = done.data
            fits.append(edit.number)
        rungs.append(EditRecord(kind=edit.kind, rung=None if isinstance(done, EditRejection) else done.rung))
    for path, data in files.items():
        if path not in spoilt and (wrong := _broken(path, read(path), data)):
            rejects.append(wrong)
    if rejects:
        return EditedFiles({}, tuple(rejects), tuple(rungs), tuple(fits))
    return EditedFiles(files, (), tuple(rungs), tuple(fits))


def unchanged(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> tuple[str, ...]:
    """The files that the edits give back as they are; none where one of them does anything else or does not fit."""
    found: dict[str, None] = {}
    for edit in edits:
        path = resolve(edit.path, names, creates=creates(edit))
        done = path if isinstance(path, EditRejection) else rework(edit, path, read(path))
        if not isinstance(done, Misfit) or done.kind is not MisfitKind.unchanged:
            return ()
        found[done.path] = None
    return tuple(found)


def _broken(path: str, before: bytes | None, after: bytes | None) -> EditRejection | None:
    language = language_of_file(path)
    code = language.edited_code if language else None
    if after is None or language is None or code is None or (wrong := code.flaw(after)) is None:
        return None
    if before is not None and code.flaw(before) is not None:
        return None
    lines = after.decode(errors="replace").split("\n")
    near = lines[max(wrong.line - 3, 0) : wrong.line + 1]
    reason = f"it would no longer be a {language.name} program: {wrong.message} (line {wrong.line})"
    return EditRejection(
        path=path, reason=reason, nearest="with the edits it reads:\n" + "\n".join(near) if near else ""
    )


def find_rejected(
    edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]
) -> tuple[RejectedEdit, ...]:
    """The edits that do not fit the files as they are, in the order of the answer; none where all of them fit."""
    return tuple(_beside(reject, edits) for reject in put(edits, read, names).rejects)


def _beside(reject: EditRejection, edits: Sequence[Edit]) -> RejectedEdit:
    concerned = [edit for edit in edits if edit.number == reject.block] or edits
    sent = "\n".join(write_edit(edit).rstrip("\n") for edit in concerned)
    return RejectedEdit(reject.block, reject.path, reject.reason, sent, reject.nearest)


def write_edit(edit: Edit) -> str:
    """The edit in the form in which it was given."""
    if edit.kind is EditKind.block:
        return f"<<<<<<< SEARCH\n{edit.search}=======\n{edit.text}>>>>>>> REPLACE\n"
    return edit.text
