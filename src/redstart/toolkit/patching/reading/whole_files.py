"""Whole files out of an answer: a fenced passage with the file's path above it."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.reading.blocks import Taken
from redstart.toolkit.patching.reading.surroundings import Fence, fences, is_fence, path_above, path_in, path_in_info

CUT_OFF = "the answer ends in the middle of a file: its fence is not closed"


def wholes(lines: Sequence[str]) -> Taken:
    edits: list[Edit] = []
    for fence in _merged(lines):
        path = path_in_info(fence.info) or path_above(lines, fence.start - 1, reach=3)
        body = list(lines[fence.start : fence.stop])
        if all(line.startswith(fence.margin) or not line.strip() for line in body):
            body = [line.removeprefix(fence.margin) for line in body]
        if not path and body and body[0].lstrip().startswith(("#", "//")):
            path = path_in(body[0].lstrip("#/ "))
            body = body[1:] if path else body
        if not path or not any(line.strip() for line in body):
            continue
        if not fence.closed:
            return Taken((), (), CUT_OFF)
        text = "".join(f"{line}\n" for line in body)
        edits.append(Edit(kind=EditKind.whole, path=path, text=text, number=len(edits) + 1))
    if len({edit.path for edit in edits}) < len(edits):
        return Taken((), (), "the answer gives a file more than once")
    return Taken(tuple(edits), ())


def _merged(lines: Sequence[str]) -> list[Fence]:
    """The fenced passages; one that holds fences itself goes up to the last that closes, before the next path."""
    found: list[Fence] = []
    for fence in fences(lines):
        last = found[-1] if found else None
        named = path_in_info(fence.info) or path_above(lines, fence.start - 1, reach=3)
        if last is not None and not named and _inside(lines, last, fence):
            found[-1] = last._replace(stop=fence.stop, closed=fence.closed)
        else:
            found.append(fence)
    return found


def _inside(lines: Sequence[str], outer: Fence, fence: Fence) -> bool:
    """Whether what stands between two passages reads on as part of the file: an odd fence, and no prose."""
    return fence.start - 1 == outer.stop + 1 and is_fence(lines[outer.stop])
