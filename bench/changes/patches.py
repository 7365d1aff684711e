"""Dishonest and honest patches of small repos through `redstart verify`, as a required check sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from _environments import run, run_checked
from changes.projects import IDENTITY, VerifiedChange, verify
from redstart.toolkit.patching.ladder import put
from redstart.toolkit.patching.reading.parse import parse


class SmallPatch(NamedTuple):
    """A small repo and a patch of it."""

    name: str
    files: Mapping[str, str]
    edits: Mapping[str, str | None]
    """The complete new texts; None deletes the file."""
    options: tuple[str, ...] = ()


def read_edits(files: Mapping[str, str], answer: str) -> dict[str, str | None]:
    """Return the files that a model's answer changes, as they are then."""
    edited = put(parse(answer).edits, lambda path: files[path].encode() if path in files else None, sorted(files))
    if edited.rejects:
        raise ValueError(f"the answer does not fit: {edited.rejects[0].reason}")
    return {path: None if data is None else data.decode() for path, data in edited.files.items()}


def verify_patch(patch: SmallPatch, python: Path, level: str) -> VerifiedChange:
    """Commit the repo, and verify the patch of it, which must prove something."""
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        _write(root, patch.files)
        run_checked(["git", "init", "-q", "-b", "main"], root)
        run_checked(["git", "add", "-A", "-f"], root)
        run_checked(["git", "commit", "-q", "-m", "start"], root, IDENTITY)
        _write(root, patch.edits)
        run_checked(["git", "add", "-A", "-f"], root)
        diff = run(["git", "diff", "--cached", "--binary"], root).stdout
        run_checked(["git", "reset", "-q", "--hard"], root)
        file = Path(folder) / "change.patch"
        file.write_text(diff)
        options = ("--patch", str(file), "--require", "proof", "--level", level, *patch.options)
        return verify(root, Path(folder) / "home", *options, python=python)


def _write(root: Path, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        target = root / path
        if text is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
