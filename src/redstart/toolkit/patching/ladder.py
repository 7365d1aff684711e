"""Apply edits to a snapshot, all or none, and report the edits that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditFit, EditKind, EditRecord, EditRejection, RejectedEdit, Snapshot
from redstart.core.errors import PolicyViolation
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.patching.fitting.edit_file import EDIT_FITS, Misfit, MisfitKind, apply_edit, creates_file

_MAX_SHOWN_PATHS = 5


def resolve(path: str, names: Sequence[str], *, creates: bool = False) -> str | EditRejection:
    """Resolve `path` to a file: the file itself, or else the only one whose path ends like it or that it ends with.

    An edit that creates a file keeps its path. A path that matches no file is kept as it is: it may be a new file.
    Several matches are a rejection.
    """
    if path.startswith('"') or not path:
        return EditRejection(path=path, reason="give the path plain, without quotes")
    existing = set(names)
    if path in existing or creates:
        return path
    if (stripped := path[2:]) in existing and path[:2] in ("a/", "b/"):
        return stripped
    if "\\" in path and (normalized := path.replace("\\", "/")) in existing:
        return normalized
    if path.startswith("/") or ".." in path.split("/"):
        return _find_longest_suffix(path, names) or path
    ending = [name for name in names if name.endswith("/" + path)]
    if len(ending) == 1:
        return ending[0]
    if len(ending) > 1:
        listed = ", ".join(ending[:_MAX_SHOWN_PATHS])
        return EditRejection(path=path, reason=f"there is no such file, and several end like it: {listed}")
    return _find_longest_suffix(path, names) or path


def _find_longest_suffix(path: str, names: Sequence[str]) -> str:
    """Return the longest path of a file at the end of `path`; a bare file name is not enough."""
    matches = [name for name in names if "/" in name and path.endswith("/" + name)]
    longest = max(map(len, matches), default=0)
    return next((name for name in matches if len(name) == longest), "")


class EditedFiles(NamedTuple):
    """The files after the edits: contents by path, None for a deleted file; empty if an edit is rejected."""

    files: dict[str, bytes | None]
    rejects: tuple[EditRejection, ...] = ()
    edit_records: tuple[EditRecord, ...] = ()
    """The rung of each edit, in order."""
    fitting_edits: tuple[int, ...] = ()
    """The numbers of the edits that fit."""

    @property
    def worst_fit(self) -> EditFit:
        return max((item.rung for item in self.edit_records if item.rung), key=EDIT_FITS.index, default=EditFit.exact)


class LadderResult(NamedTuple):
    """The new snapshot, or why there is none. `refused` distinguishes a policy violation from a misfit."""

    snapshot: Snapshot | None
    rejects: tuple[EditRejection, ...] = ()
    refused: bool = False
    fit: EditFit = EditFit.exact
    edit_records: tuple[EditRecord, ...] = ()
    fitting_edits: tuple[int, ...] = ()


def apply_to_snapshot(trees: Trees, base: Snapshot, edits: Sequence[Edit]) -> LadderResult:
    """Apply edits to `base`, each on the lowest rung with exactly one place for it; otherwise write nothing."""
    result = put(edits, lambda path: trees.read(base, path), trees.list_files(base))
    if result.rejects:
        return LadderResult(None, result.rejects, edit_records=result.edit_records, fitting_edits=result.fitting_edits)
    try:
        snapshot = trees.write(base, result.files)
    except PolicyViolation as error:
        reject = EditRejection(path=", ".join(result.files), reason=str(error))
        return LadderResult(None, (reject,), refused=True, edit_records=result.edit_records)
    if snapshot.tree == base.tree:
        reject = EditRejection(path=", ".join(result.files), reason="the edits change nothing")
        return LadderResult(None, (reject,), edit_records=result.edit_records)
    return LadderResult(snapshot, fit=result.worst_fit, edit_records=result.edit_records)


def put(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> EditedFiles:
    """Apply edits to file contents, all or none. `names` are the existing files; later edits see earlier changes.

    A file that parsed before, or that is new, must parse afterwards.
    """
    files: dict[str, bytes | None] = {}
    rejects: list[EditRejection] = []
    records: list[EditRecord] = []
    fitting: list[int] = []
    rejected_paths: set[str] = set()
    for edit in edits:
        path = resolve(edit.path, names, creates=creates_file(edit))
        if isinstance(path, EditRejection):
            rejects.append(path.model_copy(update={"block": edit.number}))
            records.append(EditRecord(kind=edit.kind))
            continue
        outcome = apply_edit(edit, path, files[path] if path in files else read(path))
        if isinstance(outcome, EditRejection):
            rejects.append(outcome.rejection if isinstance(outcome, Misfit) else outcome)
            rejected_paths.add(path)
        else:
            files[path] = outcome.data
            fitting.append(edit.number)
        records.append(EditRecord(kind=edit.kind, rung=None if isinstance(outcome, EditRejection) else outcome.fit))
    for path, data in files.items():
        if path not in rejected_paths and (rejection := _find_broken_syntax(path, read(path), data)):
            rejects.append(rejection)
    if rejects:
        return EditedFiles({}, tuple(rejects), tuple(records), tuple(fitting))
    return EditedFiles(files, (), tuple(records), tuple(fitting))


def list_unchanged(edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]) -> tuple[str, ...]:
    """List files that the edits return unchanged; empty if any edit does anything else or does not fit."""
    paths: dict[str, None] = {}
    for edit in edits:
        path = resolve(edit.path, names, creates=creates_file(edit))
        outcome = path if isinstance(path, EditRejection) else apply_edit(edit, path, read(path))
        if not isinstance(outcome, Misfit) or outcome.kind is not MisfitKind.unchanged:
            return ()
        paths[outcome.path] = None
    return tuple(paths)


def _find_broken_syntax(path: str, before: bytes | None, after: bytes | None) -> EditRejection | None:
    language = find_file_language(path)
    code = language.edited_code if language else None
    if after is None or language is None or code is None or (flaw := code.find_syntax_flaw(after)) is None:
        return None
    if before is not None and code.find_syntax_flaw(before) is not None:
        return None
    lines = after.decode(errors="replace").split("\n")
    nearby = lines[max(flaw.line - 3, 0) : flaw.line + 1]
    reason = f"it would no longer be a {language.name} program: {flaw.message} (line {flaw.line})"
    return EditRejection(
        path=path, reason=reason, nearest="with the edits it reads:\n" + "\n".join(nearby) if nearby else ""
    )


def find_rejected(
    edits: Sequence[Edit], read: Callable[[str], bytes | None], names: Sequence[str]
) -> tuple[RejectedEdit, ...]:
    """List the edits that do not fit the current files, in the order of the answer; empty if all fit."""
    return tuple(_describe_rejection(reject, edits) for reject in put(edits, read, names).rejects)


def _describe_rejection(reject: EditRejection, edits: Sequence[Edit]) -> RejectedEdit:
    concerned = [edit for edit in edits if edit.number == reject.block] or edits
    sent = "\n".join(write_edit(edit).rstrip("\n") for edit in concerned)
    return RejectedEdit(reject.block, reject.path, reject.reason, sent, reject.nearest)


def write_edit(edit: Edit) -> str:
    """Write the edit in its original format."""
    if edit.kind is EditKind.block:
        return f"<<<<<<< SEARCH\n{edit.search}=======\n{edit.text}>>>>>>> REPLACE\n"
    return edit.text
