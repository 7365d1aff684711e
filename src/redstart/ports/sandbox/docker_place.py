"""The folders of this machine that a container works on: made ready for its user, and watched for what it writes."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.core.shell import Environment, SandboxLimits
from redstart.ports.sandbox.docker_spec import OBJECTS, User
from redstart.ports.sandbox.prepare import bring_copies, make_git

BLOCK = 512


class Size(NamedTuple):
    """What lies in some folders: bytes on the disk, and how many things."""

    used: int
    things: int


def furnish(environment: Environment, workspace: Path) -> None:
    """Puts beside the snapshot's files what the environment asks for, and a place for each thing mounted within.

    Were it left to the daemon to make those places, they would be root's.
    """
    bring_copies(environment, workspace)
    make_git(environment, workspace / ".git", objects=OBJECTS)
    for path in environment.read_only:
        pure, mount = PurePosixPath(path), PurePosixPath(environment.mount)
        if pure != mount and pure.is_relative_to(mount) and Path(path).exists():
            _placeholder(workspace, pure.relative_to(mount), folder=Path(path).is_dir())


def give(folder: Path, user: User) -> None:
    """Makes the folder and all in it the user's, where we are root; else it is the user's already."""
    if os.geteuid() != 0:
        return
    os.lchown(folder, user.uid, user.gid)
    for at, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        del at
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)


def move_into(source: Path, target: Path) -> None:
    """All that lies in one folder into another one, which is emptied first."""
    for old in target.iterdir():
        remove(old)
    for each in source.iterdir():
        try:
            each.rename(target / each.name)
        except OSError:  # another file system
            shutil.move(each, target / each.name)


def remove(path: Path) -> None:
    """Whatever was left there, also what its owner closed against themselves."""
    if path.is_dir() and not path.is_symlink():
        with contextlib.suppress(OSError):
            path.chmod(0o700)
        for each in path.iterdir():
            remove(each)
        path.rmdir()
    else:
        path.unlink()


def fullness(folders: tuple[Path, ...], limits: SandboxLimits) -> Callable[[], bool]:
    """A look at whether the folders have grown by more than the limits, since now."""
    before = _size(folders)

    def full() -> bool:
        now = _size(folders)
        return now.used - before.used > limits.disk or now.things - before.things > limits.inodes

    return full


def _size(folders: tuple[Path, ...]) -> Size:
    """No link is followed, and what vanishes meanwhile does not count."""
    used = things = 0
    waiting = [str(folder) for folder in folders]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    things += 1
                    used += about.st_blocks * BLOCK
                    if stat.S_ISDIR(about.st_mode):
                        waiting.append(entry.path)
    return Size(used, things)


def _placeholder(workspace: Path, relative: PurePosixPath, *, folder: bool) -> None:
    at = workspace
    *above, last = relative.parts
    for part in above:
        at /= part
        if at.is_symlink():
            return
        at.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (at / last).mkdir() if folder else (at / last).touch(exist_ok=False)
