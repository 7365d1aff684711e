"""Snapshots as git trees in a store of our own: no file of the user's repo is ever written.

`git add` writes a file for each file, which takes most of the time of a snapshot. A snapshot is packed instead, and the
pack is kept anyway.
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
from redstart.toolkit.base.git import GitFailed, ask_git, batch_reader, git, split_z

_REF = "refs/heads/snapshot"


class RepoIntake(NamedTuple):
    tree: str
    pack: Path
    """Its index lies beside it."""


def take_in(root: Path, names: Iterable[str], git_dir: Path) -> RepoIntake:
    """Pack these files of `root` into the empty folder `git_dir`. A file that vanishes meanwhile is left out."""
    git("init", "-q", "--bare", str(git_dir))
    stream = b"".join(_stream(root, names))
    settings = ("-c", "core.compression=1", "-c", "fastimport.unpackLimit=0")
    git(*settings, "fast-import", "--quiet", "--depth=0", stdin=stream, git_dir=git_dir)
    tree = git("rev-parse", f"{_REF}^{{tree}}", git_dir=git_dir).decode().strip()
    packs = list((git_dir / "objects" / "pack").glob("*.pack"))
    if len(packs) != 1:
        raise StoreError(f"git made {len(packs)} packs of a snapshot instead of one")
    return RepoIntake(tree, packs[0])


def _stream(root: Path, names: Iterable[str]) -> Iterator[bytes]:
    yield f"feature done\ncommit {_REF}\ncommitter redstart <> 0 +0000\ndata 0\n".encode()
    for name in names:
        found = _read(root / name)
        if found is not None:
            mode, data = found
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, _quoted(name), len(data), data)
    yield b"done\n"


def _read(path: Path) -> tuple[bytes, bytes] | None:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return b"120000", os.fsencode(path.readlink())
        if stat.S_ISREG(found.st_mode):
            return (b"100755" if found.st_mode & stat.S_IXUSR else b"100644"), path.read_bytes()
    except FileNotFoundError:
        return None
    return None


def _quoted(name: str) -> bytes:
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
        self._known: set[str] = set()
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
        with self._scratch() as folder:
            tree, pack = take_in(root, self._list(root), folder / "intake.git")
            name = self._blobs.put(pack.read_bytes())
            kept = self._git_dir / "objects" / "pack"
            # The index comes last: git ignores a pack without one.
            for part in (pack, pack.with_suffix(".idx")):
                part.replace(kept / part.name)
        self._known.add(tree)
        return Snapshot(tree=tree, base=tree, pack=name)

    def empty(self) -> Snapshot:
        """Return a snapshot without files."""
        with self._index() as index:
            tree = git("write-tree", **self._at(index)).decode().strip()
        pack = git("pack-objects", "-q", "--stdout", "--revs", stdin=f"{tree}\n".encode(), git_dir=self._git_dir)
        self._known.add(tree)
        return Snapshot(tree=tree, base=tree, pack=self._blobs.put(pack))

    @contextmanager
    def checkout(self, snapshot: Snapshot) -> Generator[Path]:
        self._ensure(snapshot)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self._home / "work"))
        try:
            with self._index() as index:
                git("read-tree", "--reset", "-u", snapshot.tree, work_tree=folder, **self._at(index))
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- reading ---------------------------------------------------------------------------------------------------

    def files(self, snapshot: Snapshot) -> list[str]:
        return sorted(self._list_tree(snapshot))

    def read(self, snapshot: Snapshot, path: str) -> bytes | None:
        entry = self._list_tree(snapshot).get(path)
        if entry is None or not entry.mode.startswith("100"):
            return None
        return self._object(entry.name)

    def size(self, snapshot: Snapshot, path: str) -> int | None:
        entry = self._list_tree(snapshot).get(path)
        return entry.size if entry is not None and entry.mode.startswith("100") else None

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        self._ensure(old)
        self._ensure(new)
        return git("diff-tree", "-p", "-r", "--no-renames", old.tree, new.tree, git_dir=self._git_dir)

    def changes(self, old: Snapshot, new: Snapshot) -> list[TreeChange]:
        self._ensure(old)
        self._ensure(new)
        raw = git("diff-tree", "-r", "-z", "--raw", "--no-renames", old.tree, new.tree, git_dir=self._git_dir)
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
            stored = git("hash-object", "-w", "--stdin", "--no-filters", stdin=data, git_dir=self._git_dir)
            lines.append(b"%s %s\t%s\0" % (mode.encode(), stored.strip(), name))
        with self._index(snapshot) as index:
            try:
                git("update-index", "-z", "--index-info", stdin=b"".join(lines), **self._at(index))
            except GitFailed as error:
                raise PolicyViolation(str(error)) from error
            return self._derived(snapshot, index)

    def apply(self, snapshot: Snapshot, diff: bytes) -> Snapshot | DiffRefused:
        with self._index(snapshot) as index:
            try:
                git("apply", "--cached", "--whitespace=nowarn", "-", stdin=diff, **self._at(index))
            except GitFailed as error:
                return DiffRefused(str(error))
            return self._derived(snapshot, index)

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Snapshot | tuple[str, ...]:
        root = self._commit(base)
        sides = [self._commit(item, root) for item in (ours, theirs)]
        try:
            merged = git("merge-tree", "--write-tree", *sides, git_dir=self._git_dir).decode().strip()
        except GitFailed:
            mine, other = ({change.path for change in self.changes(base, item)} for item in (ours, theirs))
            differ = {path for path in mine & other if self.read(ours, path) != self.read(theirs, path)}
            return tuple(sorted(differ)) or tuple(sorted(other))
        with self._index(ours) as index:
            git("read-tree", merged, **self._at(index))
            return self._derived(ours, index)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _commit(self, snapshot: Snapshot, *parents: str) -> str:
        """Commit the snapshot's tree: git finds by the parents what two trees have in common."""
        self._ensure(snapshot)
        who = ("-c", "user.name=redstart", "-c", "user.email=redstart@localhost")
        above = [word for parent in parents for word in ("-p", parent)]
        made = git(*who, "commit-tree", snapshot.tree, *above, stdin=b"a snapshot\n", git_dir=self._git_dir)
        return made.decode().strip()

    def _prepare(self) -> None:
        if not (self._git_dir / "HEAD").exists():
            self._init()
        (self._git_dir / "info").mkdir(exist_ok=True)
        (self._git_dir / "info" / "attributes").write_text(ATTRIBUTES)
        (self._git_dir / "info" / "exclude").write_text(NOT_SOURCE)
        work = self._home / "work"
        work.mkdir(exist_ok=True)
        for left in work.iterdir():
            pid = left.name.partition("-")[0]
            if not (pid.isdigit() and alive(int(pid))):
                shutil.rmtree(left, ignore_errors=True)

    def _init(self) -> None:
        """Make the object store under another name first: if two processes start at once, one store is kept."""
        self._home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="init-", dir=self._home) as folder:
            made = Path(folder) / "objects.git"
            git("init", "-q", "--bare", "--template=", str(made))
            try:
                made.rename(self._git_dir)
            except OSError:
                if not (self._git_dir / "HEAD").exists():
                    raise

    def _at(self, index: Path) -> _Place:
        return {"git_dir": self._git_dir, "index": index}

    @contextmanager
    def _scratch(self) -> Generator[Path]:
        with tempfile.TemporaryDirectory(prefix=f"{os.getpid()}-", dir=self._home / "work") as folder:
            yield Path(folder)

    @contextmanager
    def _index(self, snapshot: Snapshot | None = None) -> Generator[Path]:
        with self._scratch() as folder:
            index = folder / "index"
            if snapshot is not None:
                self._ensure(snapshot)
                git("read-tree", snapshot.tree, **self._at(index))
            yield index

    def _list(self, root: Path) -> list[str]:
        is_repo = _inside_work_tree(root)
        wanted = ("ls-files", "-z", "--others", "--exclude-standard")
        if is_repo:
            listed = git(*wanted, "--cached", "--deduplicate", cwd=root, ours=False)
        else:
            listed = git(*wanted, git_dir=self._git_dir, work_tree=root, cwd=root)
        paths = ((name, root / name) for name in split_z(listed))
        return [name for name, path in paths if (path.is_symlink() and not _is_environment(path)) or path.is_file()]

    def _derived(self, snapshot: Snapshot, index: Path) -> Snapshot:
        tree = git("write-tree", **self._at(index)).decode().strip()
        self._known.add(tree)
        if tree == snapshot.base:
            return snapshot.model_copy(update={"tree": tree, "diff": ""})
        full = ("diff-tree", "-p", "-r", "--binary", "--full-index", "--no-renames", snapshot.base, tree)
        return snapshot.model_copy(update={"tree": tree, "diff": self._blobs.put(git(*full, git_dir=self._git_dir))})

    def _ensure(self, snapshot: Snapshot) -> None:
        """Make the snapshot's tree readable here, from the blobs if this machine has not seen it yet."""
        if snapshot.tree in self._known or self._has(snapshot.tree):
            return
        git("index-pack", "--stdin", stdin=self._blobs.get(snapshot.pack), git_dir=self._git_dir)
        if snapshot.diff:
            base = Snapshot(tree=snapshot.base, base=snapshot.base, pack=snapshot.pack)
            self._known.add(base.tree)
            with self._index(base) as index:
                patch = self._blobs.get(snapshot.diff)
                git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, **self._at(index))
                git("write-tree", **self._at(index))
        if not self._has(snapshot.tree):
            raise StoreError(f"the blobs of snapshot {snapshot.tree[:12]} do not contain its files")

    def _has(self, tree: str) -> bool:
        """Whether all of a tree is here: an interrupted write may have left a part."""
        try:
            git("rev-list", "--objects", "--quiet", tree, git_dir=self._git_dir)
        except GitFailed:
            return False
        self._known.add(tree)
        return True

    def _list_tree(self, snapshot: Snapshot) -> dict[str, _Entry]:
        if snapshot.tree not in self._entries:
            self._ensure(snapshot)
            entries: dict[str, _Entry] = {}
            for line in split_z(git("ls-tree", "-r", "-z", "-l", snapshot.tree, git_dir=self._git_dir)):
                meta, _, path = line.partition("\t")
                mode, _, name, size = meta.split()
                entries[path] = _Entry(mode, name, int(size) if size.isdigit() else 0)
            self._entries[snapshot.tree] = entries
        return self._entries[snapshot.tree]

    def _object(self, name: str) -> bytes:
        if self._reader is None:
            self._reader = batch_reader(self._git_dir)
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


def _inside_work_tree(root: Path) -> bool:
    try:
        return git("rev-parse", "--is-inside-work-tree", cwd=root, ours=False).strip() == b"true"
    except GitFailed:
        return False


def _refuse_bad_path(path: str) -> None:
    """Raise an error for paths that git leaves out with a warning."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PolicyViolation(f"{path!r} is no path inside the repo")
    if any(_is_git_folder(part) for part in parts):
        raise PolicyViolation(f"{path!r} is inside git's own folder")


def _refuse_file_and_folder(made: set[str], files: Mapping[str, bytes | None], there: Mapping[str, _Entry]) -> None:
    """Raise an error where git would silently drop one of the two."""
    left = made | {path for path in there if path not in files}
    for path in made:
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        if blocked := next((item for item in above if item in left), ""):
            raise PolicyViolation(f"{blocked!r} cannot be a file and a folder at once")


def _is_git_folder(part: str) -> bool:
    """Whether it is `.git` in any spelling of a file system.

    For example in other case, with trailing dots or blanks, as a short name or with hidden characters.
    """
    shown = "".join(letter for letter in part if unicodedata.category(letter) != "Cf").casefold()
    return shown.split(":")[0].rstrip(". ") == ".git" or shown.startswith("git~")


def alive(pid: int) -> bool:
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
    top = _said(folder, "rev-parse", "--show-toplevel")
    if top and Path(top).resolve() != folder.resolve():
        return False
    if top and _said(folder, "rev-parse", "--verify", "--quiet", "HEAD"):
        return False
    if not top:
        git("init", "--quiet", "--initial-branch=main", cwd=folder, ours=False)
    git("add", "--all", cwd=folder, ours=False)
    unknown = {name: value for name, value in NEUTRAL.items() if not _said(folder, "config", "--get", name)}
    # A signature may ask for a passphrase, and nobody may be there to type it.
    flags = [word for pair in {**unknown, "commit.gpgsign": "false"}.items() for word in ("-c", "=".join(pair))]
    git(*flags, "commit", "--quiet", "--no-verify", "--file=-", stdin=message.encode(), cwd=folder, ours=False)
    return True


def _said(folder: Path, *arguments: str) -> str:
    """Return git's answer; empty if it has none."""
    return (ask_git(folder, *arguments) or b"").decode(errors="replace").strip()


_FILE = re.compile(r'^\+\+\+ (?:b/(?P<plain>.*?)\t?|"b/(?P<quoted>.*)")$')
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(root: Path, ref: str) -> dict[str, tuple[int, ...]]:
    """Return the lines added or changed since `ref`, by path from `root`, including uncommitted and untracked ones.

    Raises `ConfigError` if there is no repo or no such ref. No hook and no program of the repo is run.
    """
    try:
        commit = git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", cwd=root).decode().strip()
        said = git("diff", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative", commit, "--",
                   cwd=root, ours=False)  # fmt: skip
        untracked = git("ls-files", "-z", "--others", "--exclude-standard", cwd=root, ours=False)
    except GitFailed as error:
        raise ConfigError(f"{ref} is not a commit of this repo", remedy="name a branch, a tag or a commit") from error
    lines: dict[str, list[int]] = {}
    path = ""
    for line in said.decode(errors="replace").split("\n"):
        if found := _FILE.match(line):
            path = found["plain"] or (found["quoted"] or "").encode().decode("unicode_escape")
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2]) if hunk[2] is not None else 1
            lines.setdefault(path, []).extend(range(first, first + count))
    for name in split_z(untracked):
        place = root / name
        if place.is_file() and not place.is_symlink():
            lines[name] = list(range(1, place.read_bytes().count(b"\n") + 2))
    return {path: tuple(numbers) for path, numbers in lines.items()}
