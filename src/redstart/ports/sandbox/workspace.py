"""What a workspace gets besides its snapshot's files: copies of ignored files, and a git folder with the history.

A snapshot is untrusted, and so is the content of the real repo: no link is followed on either side.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path, PurePosixPath

from redstart.core.shell import Environment

GIT_WITHIN = 60.0
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def bring_copies(environment: Environment, workspace: Path) -> None:
    """Copy the environment's `copies` from the real repo, as far as they exist, and make its `links`.

    Nothing is overwritten.

    Regular files keep their mode and their time; links are kept as links; anything else is skipped.
    """
    for name in environment.copies:
        *folders, last = PurePosixPath(name).parts
        if ".." in folders or last in ("..", "/") or PurePosixPath(name).is_absolute():
            continue
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            source = stack.enter_context(_open_folder(environment.mount))
            target = stack.enter_context(_open_folder(str(workspace)))
            for folder in folders:
                source = stack.enter_context(_open_folder(folder, source))
                target = stack.enter_context(_make_folder(folder, target))
            _copy(last, source, target)
    for name, target in environment.links.items():
        if PurePosixPath(name).name == name and name != "..":
            with contextlib.suppress(OSError), _open_folder(str(workspace)) as top:
                os.symlink(target, name, dir_fd=top)


def make_git(environment: Environment, folder: Path, *, objects: str) -> bool:
    """Make `folder` a git folder with the environment's commit and tags; false if there is no history to show.

    `objects` is the path at which the user of the folder sees the real repo's objects. It contains no remote, no hook,
    no log and nothing of the repo's configuration.
    """
    real_objects = environment.git_objects
    if not real_objects or not environment.git_head or not Path(real_objects).is_dir():
        return False
    _write_git(folder, environment.git_head, environment.git_shallow, objects)
    (folder / "packed-refs").write_text(environment.git_refs, encoding="utf-8")
    index = _build_index(real_objects, environment.git_head, environment.git_shallow)
    if index:
        (folder / "index").write_bytes(index)
    return True


def _write_git(folder: Path, head: str, shallow: str, objects: str) -> None:
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (folder / name).mkdir(parents=True)
    long = len(head) > 40  # a repo with SHA-256 must declare it
    config = f"[core]\n\trepositoryformatversion = {int(long)}\n\tbare = false\n"
    (folder / "config").write_text(config + ("[extensions]\n\tobjectformat = sha256\n" if long else ""))
    (folder / "HEAD").write_text(f"{head}\n")
    (folder / "objects/info/alternates").write_text(f"{objects}\n", encoding="utf-8")
    if shallow:
        (folder / "shallow").write_text(shallow)


@functools.lru_cache(maxsize=4)
def _build_index(objects: str, head: str, shallow: str) -> bytes:
    """Return git's index for a commit. It depends only on the commit, so it is made once.

    Empty if git cannot make it: `git describe` works without it.
    """
    with tempfile.TemporaryDirectory(prefix="redstart-index-") as place:
        folder = Path(place, "git")
        _write_git(folder, head, shallow, objects)
        variables = {
            "PATH": os.environ.get("PATH", ""),
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": place,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        command = ("git", "read-tree", "HEAD")
        try:
            subprocess.run(command, cwd=place, env=variables, capture_output=True, timeout=GIT_WITHIN, check=True)
            return (folder / "index").read_bytes()
        except (OSError, subprocess.SubprocessError):
            return b""


@contextlib.contextmanager
def _open_folder(name: str, parent_fd: int | None = None) -> Generator[int]:
    fd = os.open(name, FOLDER, dir_fd=parent_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def _make_folder(name: str, parent_fd: int) -> contextlib.AbstractContextManager[int]:
    """Open the folder of that name; make it if nothing is there. Raises `OSError` if something else is there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent_fd)
    return _open_folder(name, parent_fd)


def _copy(name: str, source: int, target: int) -> None:
    info = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        with contextlib.suppress(FileExistsError):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISDIR(info.st_mode):
        with (
            contextlib.suppress(OSError),
            _open_folder(name, source) as source_fd,
            _make_folder(name, target) as target_fd,
        ):
            for entry in os.listdir(source_fd):  # noqa: PTH208 (pathlib cannot list a descriptor)
                _copy(entry, source_fd, target_fd)
            os.utime(target_fd, ns=(info.st_atime_ns, info.st_mtime_ns))
    elif stat.S_ISREG(info.st_mode):
        _copy_file(name, source, target)


def _copy_file(name: str, source: int, target: int) -> None:
    """Copy the file, never link it: what is written to it inside must not reach the host."""
    with contextlib.suppress(OSError), os.fdopen(os.open(name, READ, dir_fd=source), "rb") as reader:
        info = os.fstat(reader.fileno())
        with os.fdopen(os.open(name, WRITE, 0o600, dir_fd=target), "wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fchmod(writer.fileno(), info.st_mode & 0o777 | 0o600)
            os.utime(writer.fileno(), ns=(info.st_atime_ns, info.st_mtime_ns))
