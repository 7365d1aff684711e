"""Putting edits on a snapshot: all of them or none."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind, Reject, Snapshot
from redstart.core.errors import PolicyViolation
from redstart.core.noun import clip
from redstart.ports.store.port import DiffRefused, Trees


class Climbed(NamedTuple):
    """The new snapshot, or why there is none. `refused` tells policy's no from an edit that does not fit."""

    snapshot: Snapshot | None
    rejects: tuple[Reject, ...] = ()
    refused: bool = False
    rung: str = "exact"


def climb(trees: Trees, base: Snapshot, edits: Sequence[Edit]) -> Climbed:
    """Applies the edits to `base`. A search text must be there exactly once; a diff must apply as git sees it."""
    files: dict[str, bytes | None] = {}
    rejects: list[Reject] = []
    for edit in edits:
        if edit.kind is EditKind.diff:
            continue
        current = files[edit.path] if edit.path in files else trees.read(base, edit.path)
        changed = _replace(edit, current)
        if isinstance(changed, Reject):
            rejects.append(changed)
        else:
            files[edit.path] = changed
    if rejects:
        return Climbed(None, tuple(rejects))
    try:
        snapshot = trees.write(base, files) if files else base
    except PolicyViolation as error:
        return Climbed(None, (Reject(path=", ".join(files), reason=str(error)),), refused=True)
    for edit in edits:
        if edit.kind is not EditKind.diff:
            continue
        applied = trees.apply(snapshot, edit.text.encode())
        if isinstance(applied, DiffRefused):
            return Climbed(None, (Reject(path="diff", reason=clip(applied.message, 400)),))
        snapshot = applied
    if snapshot.tree == base.tree:
        return Climbed(None, (Reject(path=", ".join(files) or "diff", reason="the edits change nothing"),))
    return Climbed(snapshot)


def _replace(edit: Edit, current: bytes | None) -> bytes | Reject:
    if not edit.search.strip():
        if current is None:
            return edit.text.encode()
        return Reject(path=edit.path, reason="the file exists: say with SEARCH lines what to replace in it")
    if current is None:
        return Reject(path=edit.path, reason="there is no such file")
    try:
        text = current.decode()
    except UnicodeDecodeError:
        return Reject(path=edit.path, reason="the file is not UTF-8 text")
    ends = "\r\n" if "\r\n" in text else "\n"
    search, new = (part.replace("\n", ends) for part in (edit.search, edit.text))
    if not text.endswith(ends) and text.endswith(search.removesuffix(ends)):
        search, new = search.removesuffix(ends), new.removesuffix(ends)
    places = _places(text, search)
    if len(places) == 1:
        return (text[: places[0]] + new + text[places[0] + len(search) :]).encode()
    if places:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:8])
        return Reject(path=edit.path, reason=f"the SEARCH lines are there {len(places)} times (lines {lines})")
    if edit.text.strip() and len(_places(text, new)) == 1:
        return Reject(path=edit.path, reason="the SEARCH lines are not there, and the REPLACE lines are already")
    return Reject(path=edit.path, reason="the SEARCH lines are not in the file", nearest=_nearest(text, edit.search))


def _places(text: str, search: str) -> list[int]:
    """Where `search` stands as whole lines."""
    found: list[int] = []
    place = text.find(search)
    while place != -1:
        if place == 0 or text[place - 1] == "\n":
            found.append(place)
        place = text.find(search, place + 1)
    return found


def _nearest(text: str, search: str) -> str:
    lines = text.splitlines()
    wanted = [line for line in search.splitlines() if line.strip()]
    if not lines or not wanted:
        return ""
    close = difflib.get_close_matches(wanted[0].strip(), [line.strip() for line in lines], n=1, cutoff=0.5)
    if not close:
        return ""
    at = next(number for number, line in enumerate(lines) if line.strip() == close[0])
    shown = lines[max(at - 1, 0) : at + len(wanted) + 1]
    return clip("the nearest lines are:\n" + "\n".join(shown), 600)
