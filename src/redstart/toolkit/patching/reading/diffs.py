"""Unified diffs out of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.reading.surroundings import clean, fences, is_fence, path_above

_OLD = re.compile(r"^--- +(?P<path>[^\s].*)$")
_NEW = re.compile(r"^\+\+\+ +(?P<path>[^\s].*)$")
_GIT = re.compile(r"^diff --git (?P<old>\S+) (?P<new>\S+)$")
_ABOUT = re.compile(
    r"^(?:index |(?:old|new|deleted file|new file) mode |similarity |rename |copy |Binary |GIT binary )"
)
_NOWHERE = "/dev/null"


def diffs(lines: Sequence[str], ends_with_newline: bool) -> tuple[Edit, ...]:
    """One edit for each file's diff, its header made regular and all that follows it up to the next one kept."""
    fenced = list(fences(lines))
    edits: list[Edit] = []
    at = 0
    while at < len(lines):
        header = _header(lines, at, in_diff_fence=any(f.start == at and f.info.startswith("diff") for f in fenced))
        if header is None:
            at += 1
            continue
        old, new, about, body = header
        end = next((n for n in range(body, len(lines)) if _stops(lines, n)), len(lines))
        fence = next((f for f in fenced if f.start <= at < f.stop), None)
        closed = fence is not None and fence.closed
        path = new if new != _NOWHERE else old
        text = "\n".join((*about, f"--- {old}", f"+++ {new}", *lines[body:end]))
        whole = end < len(lines) or ends_with_newline
        edits.append(
            Edit(
                kind=EditKind.diff,
                path=path,
                text=text + ("\n" if whole else ""),
                number=len(edits) + 1,
                closed=closed,
            )
        )
        at = end
    return tuple(edits)


def _header(lines: Sequence[str], at: int, *, in_diff_fence: bool) -> tuple[str, str, tuple[str, ...], int] | None:
    """Old and new path, what git says besides, and the line where the hunks begin; None where no diff begins."""
    about: list[str] = []
    named = _GIT.match(lines[at])
    n = at
    if named:
        n += 1
        while n < len(lines) and _ABOUT.match(lines[n]):
            about.append(lines[n])
            n += 1
    old = _OLD.match(lines[n]) if n < len(lines) else None
    new = _NEW.match(lines[n + 1]) if old and n + 1 < len(lines) else None
    if old and new:
        pair = _plain(old["path"], "a/"), _plain(new["path"], "b/")
        return (*pair, tuple(about), n + 2) if _begins(lines, n + 2) else None
    if named:
        return _plain(named["old"], "a/"), _plain(named["new"], "b/"), tuple(about), n
    if in_diff_fence and lines[at].startswith("@@") and (path := path_above(lines, at)):
        return path, path, (), at
    return None


def _begins(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at][:1] in ("@", " ", "+", "-", "")


def _stops(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if is_fence(line) or _GIT.match(line):
        return True
    follows = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(_OLD.match(line) and _NEW.match(follows))


def _plain(name: str, prefix: str) -> str:
    path = name.split("\t", maxsplit=1)[0].strip()
    if path.startswith('"'):
        return path
    path = re.sub(r" +\d{4}-\d\d-\d\d.*$", "", path).strip("`")
    return path if path == _NOWHERE else clean(path.removeprefix(prefix))
