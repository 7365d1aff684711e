"""Applies edits to a snapshot, all or none, and reports the edits that do not fit."""

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
    """Resolve `named` to a file: the file itself, or else the only one whose path ends like it or that it ends with.

    An edit that creates a file keeps its path. A path that matches no file is kept as it is: it may be a new file.
    Several matches are a rejection.
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
    """Return the longest path of a file at the end of `named`; a bare file name is not enough."""
    within = [name for name in names if "/" in name and named.endswith("/" + name)]
    longest = max(map(len, within), default=0)
    return next((name for name in within if len(name) == longest), "")


class EditedFiles(NamedTuple):
    """The files after the edits: contents by path, None for a deleted file; empty if an edit is rejected."""

    files: dict[str, bytes | None]
    rejects: tuple[EditRejection, ...] = ()
    rungs: tuple[EditRecord, ...] = ()
    """The rung of each edit, in order."""
    fits: tuple[int, ...] = ()
    """The numbers of the edits that fit."""

    @property
    def rung(self) -> EditFit:
        return max((item.rung for item in self.rungs if item.rung), key=RUNGS.index, default=EditFit.exact)


class LadderResult(NamedTuple):
    """The new snapshot, or why there is none. `refused` distinguishes a policy violation from a misfit."""

    snapshot: Snapshot | None
    rejects: tuple[EditRejection, ...] = ()
    refused: bool = False
    rung: EditFit = EditFit.exact
    rungs: tuple[EditRecord, ...] = ()
    fits: tuple[int, ...] = ()


def climb(trees: Trees, base: Snapshot, edits: Sequence[Edit]) -> LadderResult:
    """Apply edits to `base`, each on the lowest rung with exactly one place for it; otherwise write nothing."""
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
    """Apply edits to file contents, all or none. `names` are the existing files; later edits see earlier changes.

    A file that parsed before, or that is new, must parse afterwards.
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
    """List files that the edits return unchanged; empty if any edit does anything else or does not fit."""
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
    """List the edits that do not fit the current files, in the order of the answer; empty if all fit."""
    return tuple(_beside(reject, edits) for reject in put(edits, read, names).rejects)


def _beside(reject: EditRejection, edits: Sequence[Edit]) -> RejectedEdit:
    concerned = [edit for edit in edits if edit.number == reject.block] or edits
    sent = "\n".join(write_edit(edit).rstrip("\n") for edit in concerned)
    return RejectedEdit(reject.block, reject.path, reject.reason, sent, reject.nearest)


def write_edit(edit: Edit) -> str:
    """Write the edit in its original format."""
    if edit.kind is EditKind.block:
        return f"<<<<<<< SEARCH\n{edit.search}=======\n{edit.text}>>>>>>> REPLACE\n"
    return edit.text
