"""Put a verified patch into a user's folder or on a branch, and take it back: all of it or nothing."""

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
from redstart.toolkit.base.git import GitFailed, git, split_z
from redstart.toolkit.repo.worktree import (
    FileChange,
    FileMove,
    FileRefusal,
    Version,
    look,
    missing_folders,
    remove_empty,
    replace_files,
    same,
    sweep,
    three_way,
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


def changes_between(trees: Trees, old: Snapshot, new: Snapshot) -> list[FileChange | FileRefusal]:
    """List the files of a patch. A file that is not or does not stay a regular file is a refusal."""

    def version(snapshot: Snapshot, path: str, mode: str) -> Version | None:
        data = trees.read(snapshot, path)
        return None if data is None else Version(data, mode == "100755")

    found: list[FileChange | FileRefusal] = []
    for path, old_mode, new_mode in trees.changes(old, new):
        if any(mode not in ("000000", "100644", "100755") for mode in (old_mode, new_mode)):
            found.append(FileRefusal(path, "the patch changes something that is not a regular file"))
        else:
            found.append(FileChange(path, version(old, path, old_mode), version(new, path, new_mode)))
    return found


def apply_patch(desk: HandoverContext, changes: Sequence[FileChange | FileRefusal]) -> HandoverOutcome:
    """Apply the changes to the folder, merged with later changes there. Git's index is not touched.

    If a file conflicts, nothing is written. An interrupted handover is finished by repeating it, or by `undo_patch`.
    """
    record = _load(desk)
    known: Mapping[str, _Entry] = record.files if record.state != "undone" else {}
    sweep(desk.root, record.files, desk.mark)
    planned = [
        _plan(desk.root, change, (known[change.path].after,) if change.path in known else ()) for change in changes
    ]
    moves = [item for item in planned if isinstance(item, FileMove)]
    outcome = _outcome(changes, planned)
    if outcome.happened is not HandoverEvent.done:
        if known and outcome.happened is HandoverEvent.already:
            _save(desk, record._replace(state="applied"))
        return outcome
    written = {move.path: _Entry(move.old, move.new) for move in moves if not same(move.old, move.new)}
    made = missing_folders(desk.root, (path for path, entry in written.items() if entry.after))
    _save(desk, _Record("applied", {**known, **written}, sorted({*(record.made if known else ()), *made})))
    return _carry_out(desk, moves, outcome, record)


def undo_patch(desk: HandoverContext) -> HandoverOutcome:
    """Undo what `apply_patch` wrote and keep later changes. Refuses in the same way."""
    record = _load(desk)
    if record.state == "undone":
        return HandoverOutcome(HandoverEvent.unknown)
    sweep(desk.root, record.files, desk.mark)
    changes = [FileChange(path, entry.after, entry.before) for path, entry in record.files.items()]
    settled = {
        path: (entry.before, entry.back) if record.state == "undoing" else (entry.before,)
        for path, entry in record.files.items()
    }
    planned = [_plan(desk.root, change, settled[change.path]) for change in changes]
    outcome = _outcome(changes, planned)
    if outcome.happened is HandoverEvent.refused:
        return outcome
    moves = [item for item in planned if isinstance(item, FileMove)]
    going = {move.path: record.files[move.path]._replace(back=move.new) for move in moves}
    _save(desk, record._replace(state="undoing", files=going))
    outcome = _carry_out(desk, moves, outcome, record)
    if outcome.happened is HandoverEvent.refused:
        return outcome
    remove_empty(desk.root, record.made)
    _save(desk, record._replace(state="undone"))
    return outcome


def _plan(root: Path, change: FileChange | FileRefusal, settled: Sequence[Version | None]) -> FileMove | FileRefusal:
    """Plan one file. It stays unchanged, without a merge, if it equals one of `settled`."""
    if isinstance(change, FileRefusal):
        return change
    ours = look(root, change.path)
    if isinstance(ours, FileRefusal):
        return ours
    if any(same(ours, item) for item in settled):
        return FileMove(change.path, ours, ours)
    new = three_way(change, ours)
    return new if isinstance(new, FileRefusal) else FileMove(change.path, ours, new)


def _outcome(changes: Sequence[FileChange | FileRefusal], planned: Sequence[FileMove | FileRefusal]) -> HandoverOutcome:
    """Summarize the plan. If any file is refused, only the refused files are reported."""
    refused = tuple(FileOutcome(item.path, "refused", item.reason) for item in planned if isinstance(item, FileRefusal))
    if refused:
        return HandoverOutcome(HandoverEvent.refused, refused)
    pairs = zip(changes, planned, strict=True)
    files = tuple(_told(c, p) for c, p in pairs if isinstance(c, FileChange) and isinstance(p, FileMove))
    return HandoverOutcome(
        HandoverEvent.already if all(file.what == "already" for file in files) else HandoverEvent.done, files
    )


def _told(change: FileChange, move: FileMove) -> FileOutcome:
    if same(move.old, move.new):
        return FileOutcome(move.path, "already")
    if move.new is None:
        return FileOutcome(move.path, "deleted")
    as_planned = change.after is not None and move.new.data == change.after.data
    return FileOutcome(move.path, "written" if as_planned else "merged")


def _carry_out(
    desk: HandoverContext, moves: Sequence[FileMove], outcome: HandoverOutcome, earlier: _Record
) -> HandoverOutcome:
    """Make the moves. The earlier record is restored if a file was changed meanwhile."""
    needed = [move for move in moves if not same(move.old, move.new)]
    refused = replace_files(desk.root, needed, desk.mark)
    if not refused:
        return outcome
    _save(desk, earlier)
    return HandoverOutcome(
        HandoverEvent.refused, tuple(FileOutcome(path, "refused", reason) for path, reason in refused)
    )


# -- the record ----------------------------------------------------------------------------------------------------


def _load(desk: HandoverContext) -> _Record:
    """Load what was applied; "undone" if nothing ever was. Raises `StoreError` if it cannot be read."""
    try:
        kept = json.loads(desk.record.read_bytes())
        files = {
            path: _Entry(*(_version(desk.blobs, side) for side in (entry["before"], entry["after"], entry.get("back"))))
            for path, entry in kept["files"].items()
        }
        return _Record(kept["state"], files, kept["made"])
    except FileNotFoundError:
        return _Record("undone", {}, ())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the record of what was applied cannot be read: {desk.record}") from error


def _version(blobs: Blobs, side: Mapping[str, Any] | None) -> Version | None:
    return None if side is None else Version(blobs.get(side["blob"]), side["executable"], side["mode"])


def _save(desk: HandoverContext, record: _Record) -> None:
    """Save all of the record or none of it, durably. ASCII, since a path may be invalid Unicode."""

    def side(version: Version | None) -> dict[str, Any] | None:
        if version is None:
            return None
        return {"blob": desk.blobs.put(version.data), "executable": version.executable, "mode": version.mode}

    files = {path: {name: side(item) for name, item in entry._asdict().items()} for path, entry in record.files.items()}
    text = json.dumps({"state": record.state, "made": list(record.made), "files": files}, indent=1)
    temporary = desk.record.with_suffix(".new")
    try:
        desk.record.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(desk.record)
    except OSError as error:
        raise StoreError(f"{desk.record} cannot be written: {error.strerror or error}") from error


# -- on a branch ---------------------------------------------------------------------------------------------------


def commit_on_branch(
    root: Path, changes: Sequence[FileChange | FileRefusal], branch: str, message: str
) -> HandoverOutcome:
    """Make a branch from HEAD with one commit that holds the changes; touch nothing else of the repo.

    Raises `ConfigError` if there is no commit to start from, if the branch exists or its name is invalid, and if git
    does not know who commits.
    """
    head, prefix = _start(root, branch)
    entries = _files_of(root, head)
    planned = [_plan_on(root, prefix, change, entries) for change in changes]
    outcome = _outcome(changes, planned)
    if outcome.happened is not HandoverEvent.done:
        return outcome
    moves = [item for item in planned if isinstance(item, FileMove) and not same(item.old, item.new)]
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        git("read-tree", head, cwd=root, index=index)
        lines = b"".join(_index_line(root, prefix, move, len(head)) for move in moves)
        git("update-index", "-z", "--index-info", stdin=lines, cwd=root, index=index)
        tree = git("write-tree", cwd=root, index=index).decode().strip()
    try:
        commit = git("commit-tree", tree, "-p", head, "-m", message, cwd=root, ours=False).decode().strip()
    except GitFailed as error:
        if "tell me who you are" not in str(error):
            raise
        remedy = "run git config user.name NAME and git config user.email ADDRESS"
        raise ConfigError("git does not know who commits", remedy=remedy) from error
    try:
        git("update-ref", f"refs/heads/{branch}", commit, "0" * len(head), cwd=root)
    except GitFailed as error:
        raise ConfigError(f"the branch {branch} cannot be created: {error}", remedy="choose another name") from error
    return outcome._replace(commit=commit)


def _start(root: Path, branch: str) -> tuple[str, str]:
    """Return the commit of HEAD and the folder's path inside the repo, ending with a slash."""
    try:
        prefix = os.fsdecode(git("rev-parse", "--show-prefix", cwd=root, ours=False)).removesuffix("\n")
    except GitFailed as error:
        raise ConfigError(f"{root} is not a git repo", remedy="omit --branch to change the files there") from error
    try:
        head = git("rev-parse", "--verify", "-q", "HEAD^{commit}", cwd=root).decode().strip()
    except GitFailed as error:
        raise ConfigError("there is no commit yet to start a branch from", remedy="omit --branch") from error
    try:
        if branch.startswith("-") or branch == "HEAD":
            raise GitFailed(f"{branch!r} is not a valid branch name")
        git("check-ref-format", f"refs/heads/{branch}")
    except GitFailed as error:
        raise ConfigError(f"{branch!r} is not a valid branch name") from error
    if git("for-each-ref", f"refs/heads/{branch}", cwd=root):
        raise ConfigError(f"the branch {branch} already exists", remedy="choose another name")
    return head, prefix


def _files_of(root: Path, head: str) -> dict[str, tuple[str, str]]:
    """Return mode and object by path, for every file of the commit."""
    listed = (line.partition("\t") for line in split_z(git("ls-tree", "-r", "-z", "--full-tree", head, cwd=root)))
    return {path: (meta.split(" ")[0], meta.split(" ")[2]) for meta, _, path in listed}


def _plan_on(
    root: Path, prefix: str, change: FileChange | FileRefusal, entries: Mapping[str, tuple[str, str]]
) -> FileMove | FileRefusal:
    if isinstance(change, FileRefusal):
        return change
    path = prefix + change.path
    outer = (path[:at] for at, letter in enumerate(path) if letter == "/")
    if any(item in entries for item in outer) or any(entry.startswith(f"{path}/") for entry in entries):
        return FileRefusal(change.path, "in the last commit, there is a folder instead of a file, or the reverse")
    ours: Version | None = None
    if path in entries:
        mode, name = entries[path]
        if not mode.startswith("100"):
            return FileRefusal(change.path, "in the last commit, it is not a regular file")
        ours = Version(git("cat-file", "blob", name, cwd=root), mode == "100755")
    new = three_way(_as_committed(change, ours), ours)
    return new if isinstance(new, FileRefusal) else FileMove(change.path, ours, new)


def _as_committed(change: FileChange, ours: Version | None) -> FileChange:
    """Return the change with the line ends of the commit: git may store a CRLF file with LF."""
    if ours is None or b"\r\n" in ours.data or change.before is None or b"\r\n" not in change.before.data:
        return change
    before, after = (
        side and side._replace(data=side.data.replace(b"\r\n", b"\n")) for side in (change.before, change.after)
    )
    return change._replace(before=before, after=after)


def _index_line(root: Path, prefix: str, move: FileMove, width: int) -> bytes:
    name = os.fsencode(prefix + move.path)
    if move.new is None:
        return b"0 %s\t%s\0" % (b"0" * width, name)
    stored = git("hash-object", "-w", "--stdin", "--no-filters", stdin=move.new.data, cwd=root).strip()
    return b"%s %s\t%s\0" % (b"100755" if move.new.executable else b"100644", stored, name)
