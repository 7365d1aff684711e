"""Files of a folder as one git pack: read once, written once, byte for byte.

`git add` writes a file for each file, which takes most of the time of a snapshot; a pack is what is kept anyway.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import StoreError
from redstart.toolkit.base.git import git

_REF = "refs/heads/snapshot"


class Intake(NamedTuple):
    tree: str
    pack: Path
    """Its index lies beside it."""


def take_in(root: Path, names: Iterable[str], git_dir: Path) -> Intake:
    """Packs these files of `root` into the empty folder `git_dir`. A file that vanishes meanwhile is left out."""
    git("init", "-q", "--bare", str(git_dir))
    stream = b"".join(_stream(root, names))
    settings = ("-c", "core.compression=1", "-c", "fastimport.unpackLimit=0")
    git(*settings, "fast-import", "--quiet", "--depth=0", stdin=stream, git_dir=git_dir)
    tree = git("rev-parse", f"{_REF}^{{tree}}", git_dir=git_dir).decode().strip()
    packs = list((git_dir / "objects" / "pack").glob("*.pack"))
    if len(packs) != 1:
        raise StoreError(f"git made {len(packs)} packs of a snapshot instead of one")
    return Intake(tree, packs[0])


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
