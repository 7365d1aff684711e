"""Snapshots as git trees in a store of our own: no file of the user's repo is ever written.

`git add` would write one object file for each file, which takes most of the time of a snapshot. Instead, a snapshot is
written directly as a pack, which is stored in any case.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
import unicodedata
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypedDict

from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError, PolicyViolation, StoreError
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.trees import DiffRefused, TreeChange
from redstart.toolkit.base.git import GitFailed, ask_git, run_git, split_z, start_batch_reader

_REF = "refs/heads/snapshot"


class RepoIntake(NamedTuple):
    tree: str
    pack: Path
    """Its index lies beside it."""


def take_in(root: Path, names: Iterable[str], git_dir: Path) -> RepoIntake:
    """Pack these files of `root` into the empty folder `git_dir`. A file that vanishes meanwhile is left out."""
    run_git("init", "-q", "--bare", str(git_dir))
    stream = b"".join(_stream(root, names))
    settings = ("-c", "core.compression=1", "-c", "fastimport.unpackLimit=0")
    run_git(*settings, "fast-import", "--quiet", "--depth=0", stdin=stream, git_dir=git_dir)
    tree = run_git("rev-parse", f"{_REF}^{{tree}}", git_dir=git_dir).decode().strip()
    packs = list((git_dir / "objects" / "pack").glob("*.pack"))
    if len(packs) != 1:
        raise StoreError(f"git made {len(packs)} packs of a snapshot instead of one")
    return RepoIntake(tree, packs[0])


def _stream(root: Path, names: Iterable[str]) -> Iterator[bytes]:
    yield f"feature done\ncommit {_REF}\ncommitter redstart <> 0 +0000\ndata 0\n".encode()
    for name in names:
        entry = _read(root / name)
        if entry is not None:
            mode, data = entry
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, _quote_name(name), len(data), data)
    yield b"done\n"


def _read(path: Path) -> tuple[bytes, bytes] | None:
    try:
        file_stat = path.lstat()
        if stat.S_ISLNK(file_stat.st_mode):
            return b"120000", os.fsencode(path.readlink())
        if stat.S_ISREG(file_stat.st_mode):
            return (b"100755" if file_stat.st_mode & stat.S_IXUSR else b"100644"), path.read_bytes()
    except FileNotFoundError:
        return None
    return None


def _quote_name(name: str) -> bytes:
    raw = os.fsencode(name)
    if not raw.startswith(b'"') and b"\n" not in raw:
        return raw
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


ATTRIBUTES = "* -text !eol -filter -ident !working-tree-encoding !diff !merge\n"
"""Overrides every .gitattributes: files are stored byte for byte, and no filter of a repo is run."""

NOT_SOURCE = "\n".join((".git", ".venv/", "venv/", "__pycache__/", "node_modules/", ".tox/", ".nox/", ""))
"""Left out of folders that are not git repos, in addition to what their .gitignore says."""


class _Place(TypedDict):
    git_dir: Path
    index: Path


class _Entry(NamedTuple):
    mode: str
    name: str
    size: int


class GitTrees:
    """Implements `Trees` and `Workspaces`. `home` is this machine's cache: all of it can be rebuilt from the blobs."""

    def __init__(self, home: Path, blobs: Blobs) -> None:
        self._home = home
        self._git_dir = home / "objects.git"
        self._blobs = blobs
        self._known_trees: set[str] = set()
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._reader: subprocess.Popen[bytes] | None = None
        self._prepare()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.communicate()
            self._reader = None

    # -- taking and rebuilding -------------------------------------------------------------------------------------

    def take(self, root: Path) -> Snapshot:
        """Take a snapshot of a folder's files as they are: including uncommitted ones, without ignored ones."""
        with self._create_scratch_folder() as folder:
            tree, pack = take_in(root, self._list(root), folder / "intake.git")
            name = self._blobs.put(pack.read_bytes())
            pack_directory = self._git_dir / "objects" / "pack"
            # The index comes last: git ignores a pack without one.
            for part in (pack, pack.with_suffix(".idx")):
                part.replace(pack_directory / part.name)
        self._known_trees.add(tree)
        return Snapshot(tree=tree, base=tree, pack=name)

    def take_commit(self, root: Path, commit: str, near: Snapshot | None = None) -> Snapshot:
        """Take a snapshot of a commit of the repo at `root`, without its submodules. Its working tree is not read.

        With the snapshot of another commit as `near`, only the difference is stored if that is possible. Raises
        `GitFailed` if the repo does not have the commit with all its files.
        """
        tree = run_git("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}", cwd=root).decode().strip()
        snapshot = (self._derive_commit(root, tree, near) if near else None) or self._pack_commit(root, tree)
        submodules = {path: None for path, entry in self._list_tree(snapshot).items() if entry.mode == "160000"}
        return self.write(snapshot, submodules) if submodules else snapshot

    def _pack_commit(self, root: Path, tree: str) -> Snapshot:
        pack = run_git("pack-objects", "-q", "--stdout", "--revs", stdin=f"{tree}\n".encode(), cwd=root)
        return Snapshot(tree=tree, base=tree, pack=self._blobs.put(pack))

    def _derive_commit(self, root: Path, tree: str, near: Snapshot) -> Snapshot | None:
        """Derive the snapshot of a tree of the repo. None if the repo does not know the other one's tree."""
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        try:
            diff = run_git("diff-tree", "-p", "-r", *options, near.tree, tree, cwd=root)
        except GitFailed:
            return None
        snapshot = self.apply(near, diff) if diff else near
        return snapshot if isinstance(snapshot, Snapshot) and snapshot.tree == tree else None

    def create_empty(self) -> Snapshot:
        """Return a snapshot without files."""
        with self._open_index() as index:
            tree = run_git("write-tree", **self._get_git_options(index)).decode().strip()
        pack = run_git("pack-objects", "-q", "--stdout", "--revs", stdin=f"{tree}\n".encode(), git_dir=self._git_dir)
        self._known_trees.add(tree)
        return Snapshot(tree=tree, base=tree, pack=self._blobs.put(pack))

    @contextmanager
    def checkout(self, snapshot: Snapshot) -> Generator[Path]:
        self._ensure(snapshot)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self._home / "work"))
        try:
            with self._open_index() as index:
                run_git("read-tree", "--reset", "-u", snapshot.tree, work_tree=folder, **self._get_git_options(index))
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- reading ---------------------------------------------------------------------------------------------------

    def list_files(self, snapshot: Snapshot) -> list[str]:
        return sorted(self._list_tree(snapshot))

    def read(self, snapshot: Snapshot, path: str) -> bytes | None:
        entry = self._list_tree(snapshot).get(path)
        if entry is None or not entry.mode.startswith("100"):
            return None
        return self._read_object(entry.name)

    def get_size(self, snapshot: Snapshot, path: str) -> int | None:
        entry = self._list_tree(snapshot).get(path)
        return entry.size if entry is not None and entry.mode.startswith("100") else None

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        self._ensure(old)
        self._ensure(new)
        return run_git("diff-tree", "-p", "-r", "--no-renames", old.tree, new.tree, git_dir=self._git_dir)

    def list_changes(self, old: Snapshot, new: Snapshot) -> list[TreeChange]:
        self._ensure(old)
        self._ensure(new)
        raw = run_git("diff-tree", "-r", "-z", "--raw", "--no-renames", old.tree, new.tree, git_dir=self._git_dir)
        fields = split_z(raw)
        return [
            TreeChange(path, *meta.lstrip(":").split()[:2])
            for meta, path in zip(fields[::2], fields[1::2], strict=True)
        ]

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, snapshot: Snapshot, files: Mapping[str, bytes | None]) -> Snapshot:
        for path in files:
            _refuse_bad_path(path)
        entries = self._list_tree(snapshot)
        _refuse_file_and_folder({path for path, data in files.items() if data is not None}, files, entries)
        lines: list[bytes] = []
        for path, data in sorted(files.items()):
            name = os.fsencode(path)
            if data is None:
                lines.append(b"0 %s\t%s\0" % (b"0" * 40, name))
                continue
            mode = entries[path].mode if path in entries else "100644"
            stored = run_git("hash-object", "-w", "--stdin", "--no-filters", stdin=data, git_dir=self._git_dir)
            lines.append(b"%s %s\t%s\0" % (mode.encode(), stored.strip(), name))
        with self._open_index(snapshot) as index:
            try:
                run_git("update-index", "-z", "--index-info", stdin=b"".join(lines), **self._get_git_options(index))
            except GitFailed as error:
                raise PolicyViolation(str(error)) from error
            return self._derive_snapshot(snapshot, index)

    def apply(self, snapshot: Snapshot, diff: bytes) -> Snapshot | DiffRefused:
        with self._open_index(snapshot) as index:
            try:
                run_git("apply", "--cached", "--whitespace=nowarn", "-", stdin=diff, **self._get_git_options(index))
            except GitFailed as error:
                return DiffRefused(str(error))
            return self._derive_snapshot(snapshot, index)

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Snapshot | tuple[str, ...]:
        root = self._commit(base)
        sides = [self._commit(item, root) for item in (ours, theirs)]
        try:
            merged = run_git("merge-tree", "--write-tree", *sides, git_dir=self._git_dir).decode().strip()
        except GitFailed:
            our_paths, their_paths = (
                {change.path for change in self.list_changes(base, item)} for item in (ours, theirs)
            )
            conflicts = {path for path in our_paths & their_paths if self.read(ours, path) != self.read(theirs, path)}
            return tuple(sorted(conflicts)) or tuple(sorted(their_paths))
        with self._open_index(ours) as index:
            run_git("read-tree", merged, **self._get_git_options(index))
            return self._derive_snapshot(ours, index)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _commit(self, snapshot: Snapshot, *parents: str) -> str:
        """Commit the snapshot's tree: through the parents of commits, git finds what two trees have in common."""
        self._ensure(snapshot)
        identity = ("-c", "user.name=redstart", "-c", "user.email=redstart@localhost")
        parent_options = [word for parent in parents for word in ("-p", parent)]
        output = run_git(
            *identity, "commit-tree", snapshot.tree, *parent_options, stdin=b"a snapshot\n", git_dir=self._git_dir
        )
        return output.decode().strip()

    def _prepare(self) -> None:
        if not (self._git_dir / "HEAD").exists():
            self._init()
        (self._git_dir / "info").mkdir(exist_ok=True)
        (self._git_dir / "info" / "attributes").write_text(ATTRIBUTES)
        (self._git_dir / "info" / "exclude").write_text(NOT_SOURCE)
        work = self._home / "work"
        work.mkdir(exist_ok=True)
        for leftover in work.iterdir():
            pid = leftover.name.partition("-")[0]
            if not (pid.isdigit() and is_alive(int(pid))):
                shutil.rmtree(leftover, ignore_errors=True)

    def _init(self) -> None:
        """Make the object store under another name first: if two processes start at once, one store is kept."""
        self._home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="init-", dir=self._home) as folder:
            temporary = Path(folder) / "objects.git"
            run_git("init", "-q", "--bare", "--template=", str(temporary))
            try:
                temporary.rename(self._git_dir)
            except OSError:
                if not (self._git_dir / "HEAD").exists():
                    raise

    def _get_git_options(self, index: Path) -> _Place:
        return {"git_dir": self._git_dir, "index": index}

    @contextmanager
    def _create_scratch_folder(self) -> Generator[Path]:
        with tempfile.TemporaryDirectory(prefix=f"{os.getpid()}-", dir=self._home / "work") as folder:
            yield Path(folder)

    @contextmanager
    def _open_index(self, snapshot: Snapshot | None = None) -> Generator[Path]:
        with self._create_scratch_folder() as folder:
            index = folder / "index"
            if snapshot is not None:
                self._ensure(snapshot)
                run_git("read-tree", snapshot.tree, **self._get_git_options(index))
            yield index

    def _list(self, root: Path) -> list[str]:
        is_repo = _is_in_work_tree(root)
        arguments = ("ls-files", "-z", "--others", "--exclude-standard")
        if is_repo:
            output = run_git(*arguments, "--cached", "--deduplicate", cwd=root, only_repo_config=False)
        else:
            output = run_git(*arguments, git_dir=self._git_dir, work_tree=root, cwd=root)
        paths = ((name, root / name) for name in split_z(output))
        return [name for name, path in paths if (path.is_symlink() and not _is_environment(path)) or path.is_file()]

    def _derive_snapshot(self, snapshot: Snapshot, index: Path) -> Snapshot:
        tree = run_git("write-tree", **self._get_git_options(index)).decode().strip()
        self._known_trees.add(tree)
        if tree == snapshot.base:
            return snapshot.model_copy(update={"tree": tree, "diff": ""})
        full = ("diff-tree", "-p", "-r", "--binary", "--full-index", "--no-renames", snapshot.base, tree)
        return snapshot.model_copy(
            update={"tree": tree, "diff": self._blobs.put(run_git(*full, git_dir=self._git_dir))}
        )

    def _ensure(self, snapshot: Snapshot) -> None:
        """Make the snapshot's tree readable here, from the blobs if this machine has not seen it yet."""
        if snapshot.tree in self._known_trees or self._has_tree(snapshot.tree):
            return
        run_git("index-pack", "--stdin", stdin=self._blobs.get(snapshot.pack), git_dir=self._git_dir)
        if snapshot.diff:
            base = Snapshot(tree=snapshot.base, base=snapshot.base, pack=snapshot.pack)
            self._known_trees.add(base.tree)
            with self._open_index(base) as index:
                patch = self._blobs.get(snapshot.diff)
                run_git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, **self._get_git_options(index))
                run_git("write-tree", **self._get_git_options(index))
        if not self._has_tree(snapshot.tree):
            raise StoreError(f"the blobs of snapshot {snapshot.tree[:12]} do not contain its files")

    def _has_tree(self, tree: str) -> bool:
        """Whether the whole tree is here: an interrupted write may have left only a part."""
        try:
            run_git("rev-list", "--objects", "--quiet", tree, git_dir=self._git_dir)
        except GitFailed:
            return False
        self._known_trees.add(tree)
        return True

    def _list_tree(self, snapshot: Snapshot) -> dict[str, _Entry]:
        if snapshot.tree not in self._entries:
            self._ensure(snapshot)
            entries: dict[str, _Entry] = {}
            for line in split_z(run_git("ls-tree", "-r", "-z", "-l", snapshot.tree, git_dir=self._git_dir)):
                meta, _, path = line.partition("\t")
                mode, _, name, size = meta.split()
                entries[path] = _Entry(mode, name, int(size) if size.isdigit() else 0)
            self._entries[snapshot.tree] = entries
        return self._entries[snapshot.tree]

    def _read_object(self, name: str) -> bytes:
        if self._reader is None:
            self._reader = start_batch_reader(self._git_dir)
        stdin, stdout = self._reader.stdin, self._reader.stdout
        if stdin is None or stdout is None:
            raise StoreError("the snapshot reader has no pipes")
        stdin.write(name.encode() + b"\n")
        stdin.flush()
        header = stdout.readline().split()
        if len(header) != 3:
            raise StoreError(f"object {name} is missing from the snapshot store")
        data = stdout.read(int(header[2]) + 1)
        return data[:-1]


def _is_environment(link: Path) -> bool:
    """Whether a link leads to a virtual environment: that is mounted at its own path, not at its link."""
    return (link / "pyvenv.cfg").is_file()


def _is_in_work_tree(root: Path) -> bool:
    try:
        return run_git("rev-parse", "--is-inside-work-tree", cwd=root, only_repo_config=False).strip() == b"true"
    except GitFailed:
        return False


def _refuse_bad_path(path: str) -> None:
    """Raise an error for paths that git leaves out with a warning."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PolicyViolation(f"{path!r} is no path inside the repo")
    if any(_is_git_folder(part) for part in parts):
        raise PolicyViolation(f"{path!r} is inside git's own folder")


def _refuse_file_and_folder(
    written_paths: set[str], files: Mapping[str, bytes | None], entries: Mapping[str, _Entry]
) -> None:
    """Raise an error where git would silently drop one of the two."""
    remaining = written_paths | {path for path in entries if path not in files}
    for path in written_paths:
        parts = path.split("/")
        parents = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        if blocked := next((item for item in parents if item in remaining), ""):
            raise PolicyViolation(f"{blocked!r} cannot be a file and a folder at once")


def _is_git_folder(part: str) -> bool:
    """Whether it is `.git` in any spelling of a file system.

    For example in other case, with trailing dots or blanks, as a short name or with hidden characters.
    """
    visible = "".join(character for character in part if unicodedata.category(character) != "Cf").casefold()
    return visible.split(":")[0].rstrip(". ") == ".git" or visible.startswith("git~")


def is_alive(pid: int) -> bool:
    """Whether there is a process with that ID, whoever owns it."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


NEUTRAL = {"user.name": "redstart", "user.email": "redstart@localhost"}
"""The committer if the user's git does not know them."""


def commit_first(folder: Path, message: str) -> bool:
    """Make a git repo of the folder, with one commit of all its files. Returns whether it made a commit.

    Does nothing if the folder lies in a repo, or already has a commit. The user is the committer if their git knows
    them. Raises `GitFailed`.
    """
    top = _read_git_output(folder, "rev-parse", "--show-toplevel")
    if top and Path(top).resolve() != folder.resolve():
        return False
    if top and _read_git_output(folder, "rev-parse", "--verify", "--quiet", "HEAD"):
        return False
    if not top:
        run_git("init", "--quiet", "--initial-branch=main", cwd=folder, only_repo_config=False)
    run_git("add", "--all", cwd=folder, only_repo_config=False)
    missing = {name: value for name, value in NEUTRAL.items() if not _read_git_output(folder, "config", "--get", name)}
    # A signature may ask for a passphrase, and nobody may be there to type it.
    flags = [word for pair in {**missing, "commit.gpgsign": "false"}.items() for word in ("-c", "=".join(pair))]
    run_git(
        *flags,
        "commit",
        "--quiet",
        "--no-verify",
        "--file=-",
        stdin=message.encode(),
        cwd=folder,
        only_repo_config=False,
    )
    return True


def _read_git_output(folder: Path, *arguments: str) -> str:
    """Return git's answer; empty if it has none."""
    return (ask_git(folder, *arguments) or b"").decode(errors="replace").strip()


_FILE = re.compile(r'^\+\+\+ (?:b/(?P<plain>.*?)\t?|"b/(?P<quoted>.*)")$')
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def find_changed_lines(root: Path, ref: str) -> dict[str, tuple[int, ...]]:
    """Return the lines added or changed since `ref`, by path from `root`, including uncommitted and untracked ones.

    Raises `ConfigError` if there is no repo or no such ref. No hook and no program of the repo is run.
    """
    try:
        commit = run_git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", cwd=root).decode().strip()
        diff = run_git("diff", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative", commit,
                       "--", cwd=root, only_repo_config=False)  # fmt: skip
        untracked = run_git("ls-files", "-z", "--others", "--exclude-standard", cwd=root, only_repo_config=False)
    except GitFailed as error:
        raise ConfigError(f"{ref} is not a commit of this repo", remedy="name a branch, a tag or a commit") from error
    lines: dict[str, list[int]] = {}
    path = ""
    for line in diff.decode(errors="replace").split("\n"):
        if match := _FILE.match(line):
            path = match["plain"] or (match["quoted"] or "").encode().decode("unicode_escape")
        elif path and (hunk := _HUNK.match(line)):
            start, count = int(hunk[1]), int(hunk[2]) if hunk[2] is not None else 1
            lines.setdefault(path, []).extend(range(start, start + count))
    for name in split_z(untracked):
        place = root / name
        if place.is_file() and not place.is_symlink():
            lines[name] = list(range(1, place.read_bytes().count(b"\n") + 2))
    return {path: tuple(numbers) for path, numbers in lines.items()}
