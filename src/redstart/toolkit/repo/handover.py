"""Apply a verified patch to a user's folder or commit it on a branch, and revert it: all of it or nothing."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError, StoreError
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.base.git import GitFailed, run_git, split_z
from redstart.toolkit.repo.worktree import (
    FileChange,
    FileMove,
    FileRefusal,
    Version,
    is_same_version,
    list_missing_folders,
    merge_three_way,
    read_file_version,
    remove_empty,
    replace_files,
    sweep,
)


class HandoverEvent(StrEnum):
    done = "done"
    already = "already"
    """There was nothing left to do: everything is already as requested."""
    refused = "refused"
    """A file conflicts, so nothing at all was written."""
    unknown = "unknown"
    """There is nothing to undo: the patch was not applied, or was already undone."""


class FileOutcome(NamedTuple):
    """What happened to one file: `written`, `merged` with other changes in it, `deleted`, `already` or `refused`."""

    path: str
    what: Literal["written", "merged", "deleted", "already", "refused"]
    reason: str = ""


class HandoverOutcome(NamedTuple):
    happened: HandoverEvent
    files: tuple[FileOutcome, ...] = ()
    commit: str = ""
    """The commit that was made, if a branch was requested."""


class _Entry(NamedTuple):
    """A file before it was written, after it, and (during an undo) as it is to be restored."""

    before: Version | None
    after: Version | None
    back: Version | None = None


class _Record(NamedTuple):
    state: Literal["applied", "undoing", "undone"]
    files: Mapping[str, _Entry]
    made: Sequence[str]
    """Folders that were made for new files."""


class HandoverContext(NamedTuple):
    """Where a patch is handed over: the user's folder, and our record of it.

    `record` is written before the first byte of the folder, so that any interrupted handover can be finished.
    """

    root: Path
    blobs: Blobs
    record: Path
    """The file that says what was applied."""
    mark: str
    """Names our temporary files; the run's ID."""


def list_changes(trees: Trees, old: Snapshot, new: Snapshot) -> list[FileChange | FileRefusal]:
    """List the files of a patch. If a file is not a regular file, before or after the patch, it is a refusal."""

    def create_version(snapshot: Snapshot, path: str, mode: str) -> Version | None:
        data = trees.read(snapshot, path)
        return None if data is None else Version(data, mode == "100755")

    changes: list[FileChange | FileRefusal] = []
    for path, old_mode, new_mode in trees.list_changes(old, new):
        if any(mode not in ("000000", "100644", "100755") for mode in (old_mode, new_mode)):
            changes.append(FileRefusal(path, "the patch changes something that is not a regular file"))
        else:
            changes.append(FileChange(path, create_version(old, path, old_mode), create_version(new, path, new_mode)))
    return changes


def apply_patch(context: HandoverContext, changes: Sequence[FileChange | FileRefusal]) -> HandoverOutcome:
    """Apply the changes to the folder, merged with later changes there. Git's index is not touched.

    If a file conflicts, nothing is written. An interrupted handover is finished by repeating it, or by `undo_patch`.
    """
    record = _load(context)
    previous: Mapping[str, _Entry] = record.files if record.state != "undone" else {}
    sweep(context.root, record.files, context.mark)
    plans = [
        _plan(context.root, change, (previous[change.path].after,) if change.path in previous else ())
        for change in changes
    ]
    moves = [item for item in plans if isinstance(item, FileMove)]
    outcome = _summarize_outcome(changes, plans)
    if outcome.happened is not HandoverEvent.done:
        if previous and outcome.happened is HandoverEvent.already:
            _save(context, record._replace(state="applied"))
        return outcome
    new_entries = {move.path: _Entry(move.old, move.new) for move in moves if not is_same_version(move.old, move.new)}
    new_folders = list_missing_folders(context.root, (path for path, entry in new_entries.items() if entry.after))
    _save(
        context,
        _Record("applied", {**previous, **new_entries}, sorted({*(record.made if previous else ()), *new_folders})),
    )
    return _carry_out(context, moves, outcome, record)


def undo_patch(context: HandoverContext) -> HandoverOutcome:
    """Undo what `apply_patch` wrote and keep later changes. Refuses in the same way."""
    record = _load(context)
    if record.state == "undone":
        return HandoverOutcome(HandoverEvent.unknown)
    sweep(context.root, record.files, context.mark)
    changes = [FileChange(path, entry.after, entry.before) for path, entry in record.files.items()]
    settled = {
        path: (entry.before, entry.back) if record.state == "undoing" else (entry.before,)
        for path, entry in record.files.items()
    }
    plans = [_plan(context.root, change, settled[change.path]) for change in changes]
    outcome = _summarize_outcome(changes, plans)
    if outcome.happened is HandoverEvent.refused:
        return outcome
    moves = [item for item in plans if isinstance(item, FileMove)]
    undo_entries = {move.path: record.files[move.path]._replace(back=move.new) for move in moves}
    _save(context, record._replace(state="undoing", files=undo_entries))
    outcome = _carry_out(context, moves, outcome, record)
    if outcome.happened is HandoverEvent.refused:
        return outcome
    remove_empty(context.root, record.made)
    _save(context, record._replace(state="undone"))
    return outcome


def _plan(root: Path, change: FileChange | FileRefusal, settled: Sequence[Version | None]) -> FileMove | FileRefusal:
    """Plan one file. It stays unchanged, without a merge, if it equals one of `settled`."""
    if isinstance(change, FileRefusal):
        return change
    current = read_file_version(root, change.path)
    if isinstance(current, FileRefusal):
        return current
    if any(is_same_version(current, item) for item in settled):
        return FileMove(change.path, current, current)
    new = merge_three_way(change, current)
    return new if isinstance(new, FileRefusal) else FileMove(change.path, current, new)


def _summarize_outcome(
    changes: Sequence[FileChange | FileRefusal], plans: Sequence[FileMove | FileRefusal]
) -> HandoverOutcome:
    """Summarize the plan. If any file is refused, only the refused files are reported."""
    refused = tuple(FileOutcome(item.path, "refused", item.reason) for item in plans if isinstance(item, FileRefusal))
    if refused:
        return HandoverOutcome(HandoverEvent.refused, refused)
    pairs = zip(changes, plans, strict=True)
    files = tuple(_describe_file(c, p) for c, p in pairs if isinstance(c, FileChange) and isinstance(p, FileMove))
    return HandoverOutcome(
        HandoverEvent.already if all(file.what == "already" for file in files) else HandoverEvent.done, files
    )


def _describe_file(change: FileChange, move: FileMove) -> FileOutcome:
    if is_same_version(move.old, move.new):
        return FileOutcome(move.path, "already")
    if move.new is None:
        return FileOutcome(move.path, "deleted")
    as_planned = change.after is not None and move.new.data == change.after.data
    return FileOutcome(move.path, "written" if as_planned else "merged")


def _carry_out(
    context: HandoverContext, moves: Sequence[FileMove], outcome: HandoverOutcome, previous_record: _Record
) -> HandoverOutcome:
    """Make the moves. The earlier record is restored if a file was changed meanwhile."""
    needed = [move for move in moves if not is_same_version(move.old, move.new)]
    refused = replace_files(context.root, needed, context.mark)
    if not refused:
        return outcome
    _save(context, previous_record)
    return HandoverOutcome(
        HandoverEvent.refused, tuple(FileOutcome(path, "refused", reason) for path, reason in refused)
    )


# -- the record ----------------------------------------------------------------------------------------------------


def _load(context: HandoverContext) -> _Record:
    """Load what was applied; "undone" if nothing ever was. Raises `StoreError` if it cannot be read."""
    try:
        stored = json.loads(context.record.read_bytes())
        files = {
            path: _Entry(
                *(_load_version(context.blobs, side) for side in (entry["before"], entry["after"], entry.get("back")))
            )
            for path, entry in stored["files"].items()
        }
        return _Record(stored["state"], files, stored["made"])
    except FileNotFoundError:
        return _Record("undone", {}, ())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the record of what was applied cannot be read: {context.record}") from error


def _load_version(blobs: Blobs, stored: Mapping[str, Any] | None) -> Version | None:
    return None if stored is None else Version(blobs.get(stored["blob"]), stored["executable"], stored["mode"])


def _save(context: HandoverContext, record: _Record) -> None:
    """Save all of the record or none of it, durably. ASCII, since a path may be invalid Unicode."""

    def side(version: Version | None) -> dict[str, Any] | None:
        if version is None:
            return None
        return {"blob": context.blobs.put(version.data), "executable": version.executable, "mode": version.mode}

    files = {path: {name: side(item) for name, item in entry._asdict().items()} for path, entry in record.files.items()}
    text = json.dumps({"state": record.state, "made": list(record.made), "files": files}, indent=1)
    temporary = context.record.with_suffix(".new")
    try:
        context.record.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(context.record)
    except OSError as error:
        raise StoreError(f"{context.record} cannot be written: {error.strerror or error}") from error


# -- on a branch ---------------------------------------------------------------------------------------------------


def commit_on_branch(
    root: Path, changes: Sequence[FileChange | FileRefusal], branch: str, message: str
) -> HandoverOutcome:
    """Make a branch from HEAD with one commit that holds the changes; touch nothing else of the repo.

    Raises `ConfigError` if there is no commit to start from, if the branch exists or its name is invalid, and if git
    does not know who commits.
    """
    head, prefix = _start(root, branch)
    entries = _list_commit_files(root, head)
    plans = [_plan_on(root, prefix, change, entries) for change in changes]
    outcome = _summarize_outcome(changes, plans)
    if outcome.happened is not HandoverEvent.done:
        return outcome
    moves = [item for item in plans if isinstance(item, FileMove) and not is_same_version(item.old, item.new)]
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        run_git("read-tree", head, cwd=root, index=index)
        lines = b"".join(_format_index_line(root, prefix, move, len(head)) for move in moves)
        run_git("update-index", "-z", "--index-info", stdin=lines, cwd=root, index=index)
        tree = run_git("write-tree", cwd=root, index=index).decode().strip()
    try:
        commit = (
            run_git("commit-tree", tree, "-p", head, "-m", message, cwd=root, only_repo_config=False).decode().strip()
        )
    except GitFailed as error:
        if "tell me who you are" not in str(error):
            raise
        remedy = "run git config user.name NAME and git config user.email ADDRESS"
        raise ConfigError("git does not know who commits", remedy=remedy) from error
    try:
        run_git("update-ref", f"refs/heads/{branch}", commit, "0" * len(head), cwd=root)
    except GitFailed as error:
        raise ConfigError(f"the branch {branch} cannot be created: {error}", remedy="choose another name") from error
    return outcome._replace(commit=commit)


def _start(root: Path, branch: str) -> tuple[str, str]:
    """Return the commit of HEAD and the folder's path inside the repo, ending with a slash."""
    try:
        prefix = os.fsdecode(run_git("rev-parse", "--show-prefix", cwd=root, only_repo_config=False)).removesuffix("\n")
    except GitFailed as error:
        raise ConfigError(f"{root} is not a git repo", remedy="omit --branch to change the files there") from error
    try:
        head = run_git("rev-parse", "--verify", "-q", "HEAD^{commit}", cwd=root).decode().strip()
    except GitFailed as error:
        raise ConfigError("there is no commit yet to start a branch from", remedy="omit --branch") from error
    try:
        if branch.startswith("-") or branch == "HEAD":
            raise GitFailed(f"{branch!r} is not a valid branch name")
        run_git("check-ref-format", f"refs/heads/{branch}")
    except GitFailed as error:
        raise ConfigError(f"{branch!r} is not a valid branch name") from error
    if run_git("for-each-ref", f"refs/heads/{branch}", cwd=root):
        raise ConfigError(f"the branch {branch} already exists", remedy="choose another name")
    return head, prefix


def _list_commit_files(root: Path, head: str) -> dict[str, tuple[str, str]]:
    """Return mode and object by path, for every file of the commit."""
    rows = (line.partition("\t") for line in split_z(run_git("ls-tree", "-r", "-z", "--full-tree", head, cwd=root)))
    return {path: (meta.split(" ")[0], meta.split(" ")[2]) for meta, _, path in rows}


def _plan_on(
    root: Path, prefix: str, change: FileChange | FileRefusal, entries: Mapping[str, tuple[str, str]]
) -> FileMove | FileRefusal:
    if isinstance(change, FileRefusal):
        return change
    path = prefix + change.path
    parents = (path[:index] for index, character in enumerate(path) if character == "/")
    if any(item in entries for item in parents) or any(entry.startswith(f"{path}/") for entry in entries):
        return FileRefusal(change.path, "in the last commit, there is a folder instead of a file, or the reverse")
    current: Version | None = None
    if path in entries:
        mode, name = entries[path]
        if not mode.startswith("100"):
            return FileRefusal(change.path, "in the last commit, it is not a regular file")
        current = Version(run_git("cat-file", "blob", name, cwd=root), mode == "100755")
    new = merge_three_way(_as_committed(change, current), current)
    return new if isinstance(new, FileRefusal) else FileMove(change.path, current, new)


def _as_committed(change: FileChange, current: Version | None) -> FileChange:
    """Return the change with the line ends of the commit: git may store a CRLF file with LF."""
    if current is None or b"\r\n" in current.data or change.before is None or b"\r\n" not in change.before.data:
        return change
    before, after = (
        side and side._replace(data=side.data.replace(b"\r\n", b"\n")) for side in (change.before, change.after)
    )
    return change._replace(before=before, after=after)


def _format_index_line(root: Path, prefix: str, move: FileMove, width: int) -> bytes:
    name = os.fsencode(prefix + move.path)
    if move.new is None:
        return b"0 %s\t%s\0" % (b"0" * width, name)
    stored = run_git("hash-object", "-w", "--stdin", "--no-filters", stdin=move.new.data, cwd=root).strip()
    return b"%s %s\t%s\0" % (b"100755" if move.new.executable else b"100644", stored, name)
