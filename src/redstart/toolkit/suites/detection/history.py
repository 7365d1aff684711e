"""Read the target's git history: where its objects are, and which commit and tags a workspace may show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from redstart.toolkit.base.git import ask_git

MOST_REFS = 2000
"""The maximum number of `packed-refs` lines."""
REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"


class History(NamedTuple):
    objects: Path
    head: str
    refs: str
    shallow_commits: str
    borrowed: tuple[Path, ...] = ()
    """Object directories of other repos that this one borrows from (`git clone --shared`)."""


def find_work_root(folder: Path) -> Path:
    """Find the directory whose files a run on `folder` needs: the top of its git work tree, else `folder` itself.

    A directory in which git tracks nothing does not belong to the repo around it. A repo that contains the user's whole
    home directory (their dotfiles) is not what they mean.
    """
    folder = folder.resolve()
    output = ask_git(folder, "rev-parse", "--show-toplevel")
    if not output or not output.strip():
        return folder
    top = Path(os.fsdecode(output.rstrip(b"\n")))
    if top == folder or Path.home().is_relative_to(top):
        return folder
    return top if ask_git(folder, "ls-files", "-z", "--", ".") else folder


def find_history(root: Path) -> History | None:
    """Find the history of the repo at this root. None if it is not a repo's root or has no commit yet."""
    if _decode_line(ask_git(root, "rev-parse", "--show-prefix")):
        return None
    head = _decode_line(ask_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
    objects = _decode_line(ask_git(root, "rev-parse", "--git-path", "objects"))
    if not head or not objects:
        return None
    folder = (root / objects).resolve()
    if not _is_object_directory(folder):
        return None
    shallow = root / _decode_line(ask_git(root, "rev-parse", "--git-path", "shallow"))
    text = shallow.read_text(encoding="ascii", errors="replace") if shallow.is_file() else ""
    return History(folder, head, _list_refs(root), text, tuple(_find_borrowed(folder)))


def _list_refs(root: Path) -> str:
    """List the tags and the checked-out branch in `packed-refs` format. The newest tags win if there are too many."""
    branch = _decode_line(ask_git(root, "symbolic-ref", "--quiet", "HEAD"))
    output = ask_git(
        root,
        "for-each-ref",
        "--sort=-creatordate",
        "--format=%(refname)%09%(objectname)%09%(*objectname)",
        *((branch,) if branch else ()),
        "refs/tags",
    )
    entries: list[tuple[str, str]] = []
    lines = 1
    rows = [line.split("\t") for line in (output or b"").decode("utf-8", "replace").splitlines()]
    for name, object_name, peeled in sorted(rows, key=lambda row: row[0] != branch):
        text = f"{object_name} {name}\n" + (f"^{peeled}\n" if peeled else "")
        lines += text.count("\n")
        if lines > MOST_REFS:
            break
        entries.append((name, text))
    return REFS_HEADER + "".join(text for _, text in sorted(entries))


def _find_borrowed(objects: Path, depth: int = 0) -> Iterable[Path]:
    try:
        lines = (objects / "info" / "alternates").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        folder = Path(line)
        # The paths in this file become visible in the sandbox, so they must be real object directories.
        if folder.is_absolute() and _is_object_directory(folder.resolve()) and depth < 5:
            yield folder
            yield from _find_borrowed(folder, depth + 1)


def _is_object_directory(folder: Path) -> bool:
    return folder.name == "objects" and (folder / "pack").is_dir() and (folder / "info").is_dir()


def _decode_line(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace").rstrip("\n")
