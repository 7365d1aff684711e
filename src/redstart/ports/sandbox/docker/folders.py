"""The folders of this machine that a container takes its files from, made ready for its user."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from redstart.core.shell import Environment
from redstart.ports.sandbox.docker.spec import Room, User, within
from redstart.ports.sandbox.mounts import OBJECTS
from redstart.ports.sandbox.prepare import bring_copies, make_git

PAGE = 4096
SPARE = Room(16 * PAGE, 16)
"""For the folders above what is mounted in a workspace, and the workspace itself."""


def furnish(environment: Environment, workspace: Path) -> None:
    """Puts beside the snapshot's files what the environment asks for, and takes away what a mount will cover."""
    bring_copies(environment, workspace)
    make_git(environment, workspace / ".git", objects=OBJECTS)
    for relative in within(environment):
        folders = [workspace.joinpath(*relative.parts[:count]) for count in range(1, len(relative.parts) + 1)]
        for folder in folders[:-1]:
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
        if os.path.lexists(folders[-1]):
            remove(folders[-1])


def room_of(folder: Path) -> Room:
    """What lies below a folder, as a file system in memory holds it. No link is followed."""
    size, files = SPARE
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                size += -(-entry.stat(follow_symlinks=False).st_size // PAGE) * PAGE
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return Room(size, files)


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
