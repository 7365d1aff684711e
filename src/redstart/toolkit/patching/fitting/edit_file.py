"""Applies one edit to one file's content, or explains why it does not fit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import Edit, EditFit, EditKind, EditRejection
from redstart.core.noun import clip
from redstart.toolkit.patching.edited_code import edited_code
from redstart.toolkit.patching.fitting.fit import HunkPlace, HunkPlaces, Judge, is_made_already, options
from redstart.toolkit.patching.fitting.places import IndexedLines, foreign_signs, restyled
from redstart.toolkit.patching.fitting.whole_file import rewritten
from redstart.toolkit.patching.hunks import (
    COMES,
    GOES,
    STAYS,
    DiffHunk,
    HunkLine,
    LineReplacement,
    TextLines,
    elision,
    of_block,
    of_diff,
    read,
    splice,
    write,
)

_NUMBER = re.compile(r"^\s*(\d+)(?:\s?[|:│.)\t]|(?= )) ?")


class BlockReading(NamedTuple):
    search: tuple[str, ...]
    text: tuple[str, ...]


def readings(search: Sequence[str], text: Sequence[str]) -> Iterator[BlockReading]:
    """Yield other readings of a block: without diff signs before the lines, and without line numbers."""
    old, new = _all_signs(search, "-"), _all_signs(text, "+")
    if old is not None and new is not None:
        yield BlockReading(old, new)
    if any(line.startswith("-") for line in search) or any(line.startswith("+") for line in text):
        yield BlockReading(_some_signs(search, "-"), _some_signs(text, "+"))
    old, new = _unnumbered(search), _unnumbered(text)
    if old is not None and (new is not None or not any(_NUMBER.match(line) for line in text)):
        yield BlockReading(old, tuple(text) if new is None else new)


def _all_signs(lines: Sequence[str], sign: str) -> tuple[str, ...] | None:
    if not all(line[:1] in ("", sign, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _some_signs(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(sign) for line in lines)


def _unnumbered(lines: Sequence[str]) -> tuple[str, ...] | None:
    """Strip line numbers; None unless every non-empty line has one, in rising order."""
    said = [line for line in lines if line.strip()]
    found = [_NUMBER.match(line) for line in said]
    numbers = [int(item[1]) for item in found if item]
    if len(numbers) != len(said) or not said or any(item >= other for item, other in pairwise(numbers)):
        return None
    return tuple(_NUMBER.sub("", line, count=1) for line in lines)


def chosen(page: IndexedLines, hunks: Sequence[DiffHunk], found: Sequence[HunkPlaces]) -> list[HunkPlace | None]:
    """Choose one place for each hunk; None if several remain. The hunks of a diff are in file order."""
    picked: list[HunkPlace | None] = [item.places[0] if len(item.places) == 1 else None for item in found]
    offset = _offset(hunks, picked)
    for number, (hunk, some) in enumerate(zip(hunks, found, strict=True)):
        if picked[number] is None:
            picked[number] = _told_by_numbers(hunk, some, offset)
    for number, (hunk, some) in enumerate(zip(hunks, found, strict=True)):
        if picked[number] is None:
            between = _between(some.places, picked, number)
            picked[number] = between[0] if len(between) == 1 else _under_heading(page, hunk, between)
    return picked


def _offset(hunks: Sequence[DiffHunk], picked: Sequence[HunkPlace | None]) -> int | None:
    """Return the common offset of all hunks with a certain place; None if they differ or there are none."""
    pairs = zip(hunks, picked, strict=True)
    offsets = {option.start + 1 - hunk.start for hunk, option in pairs if option and hunk.start is not None}
    return offsets.pop() if len(offsets) == 1 else None


def _told_by_numbers(hunk: DiffHunk, some: HunkPlaces, offset: int | None) -> HunkPlace | None:
    if hunk.start is None or some.rung not in (EditFit.exact, EditFit.whitespace):
        return None
    wanted = hunk.start - 1 + (offset or 0)
    return next((option for option in some.places if option.start == wanted), None)


def _between(places: Sequence[HunkPlace], picked: Sequence[HunkPlace | None], number: int) -> list[HunkPlace]:
    low = max((option.start for option in picked[:number] if option), default=-1)
    high = min((option.start for option in picked[number + 1 :] if option), default=None)
    return [option for option in places if option.start > low and (high is None or option.start < high)]


def _under_heading(page: IndexedLines, hunk: DiffHunk, places: Sequence[HunkPlace]) -> HunkPlace | None:
    """Return the only place below the heading, with no similar line in between; None if there is not exactly one."""
    heading = hunk.heading.strip()
    if not heading:
        return None
    under = [option for option in places if _heads(page, heading, option.start)]
    return under[0] if len(under) == 1 else None


def _heads(page: IndexedLines, heading: str, start: int) -> bool:
    kind = heading.split(" ", 1)[0]
    for line in reversed(page.lines[:start]):
        said = line.strip()
        if said.startswith(heading):
            return True
        if said.split(" ", 1)[0] == kind:
            return False
    return False


SHOWN = 600
PLACES = 3


def nearest(page: IndexedLines, old: Sequence[HunkLine]) -> str:
    """Show the nearest passage with line numbers; empty if nothing is close."""
    wanted = [line.text.strip() for line in old if line.text.strip()]
    if not wanted or not page.lines:
        return ""
    start = _start(page, wanted)
    if start is None:
        return ""
    return clip(f"the nearest lines are:\n{passage(page, start, len(old))}", SHOWN)


def each_place(page: IndexedLines, starts: Sequence[int], length: int) -> str:
    """Show the passages at several places with the lines around them, which tell them apart."""
    shown = (passage(page, start, length) for start in starts[:PLACES])
    return clip("the places are:\n" + "\n--\n".join(shown), SHOWN)


def passage(page: IndexedLines, start: int, length: int) -> str:
    """Show `length` lines with their numbers, and the lines before and after them."""
    low, high = max(start - 1, 0), min(start + length + 1, len(page.lines))
    return "\n".join(f"{number + 1}: {page.lines[number]}" for number in range(low, high))


def _start(page: IndexedLines, wanted: Sequence[str]) -> int | None:
    """Find the place where most lines agree, else where one line is most similar; None if there is none."""
    agree: dict[int, int] = {}
    for number, text in enumerate(wanted):
        for place in page.where(text)[:50]:
            agree[place - number] = agree.get(place - number, 0) + 1
    if agree:
        return max(max(agree, key=lambda place: (agree[place], -place)), 0)
    stripped = [line.strip() for line in page.lines]
    for text in sorted(wanted, key=len, reverse=True)[:3]:
        if close := difflib.get_close_matches(text, stripped, n=1, cutoff=0.5):
            return max(stripped.index(close[0]) - wanted.index(text), 0)
    return None


RUNGS = tuple(EditFit)
CANDIDATES = 8
CUT_OFF = "it is cut off: give all of it"
CHANGES_NOTHING = "it changes nothing"

_MODE = re.compile(r"^(?:new file mode|new mode|old mode|deleted file mode) (\d+)", re.MULTILINE)
_MOVES = re.compile(
    r"^(?:rename (?:from|to)|copy (?:from|to)|GIT binary patch|Binary files|\*\*\* Move to:)", re.MULTILINE
)


class FittedFile(NamedTuple):
    """A fitted edit. `data` is the file's new content; None if the edit deletes it."""

    data: bytes | None
    rung: EditFit = EditFit.exact


class MisfitKind(StrEnum):
    no_place = "no_place"
    unchanged = "unchanged"


class Misfit(EditRejection):
    """A rejection whose kind matters to callers."""

    kind: MisfitKind

    @property
    def plain(self) -> EditRejection:
        """The rejection as it is shown and stored."""
        return EditRejection.model_validate(self.model_dump(exclude={"kind"}))


Outcome = FittedFile | EditRejection


def rework(edit: Edit, path: str, current: bytes | None) -> Outcome:
    """Apply the edit to the current content of the file; `current` is None if the file does not exist."""
    done = _by_kind(edit, path, current)
    return done.model_copy(update={"block": edit.number}) if isinstance(done, EditRejection) else done


def creates(edit: Edit) -> bool:
    """Return whether the edit says that the file is new."""
    match edit.kind:
        case EditKind.block:
            return not edit.search.strip()
        case EditKind.diff:
            return edit.text.startswith("--- /dev/null") or "\n--- /dev/null\n" in edit.text.partition("\n@@")[0]
        case EditKind.envelope:
            return edit.text.startswith("*** Add")
        case EditKind.whole:
            return False


def _by_kind(edit: Edit, path: str, current: bytes | None) -> Outcome:
    match edit.kind:
        case EditKind.block if not edit.search.strip():
            return _created(path, current, edit.text)
        case EditKind.block:
            if current is None:
                return _no_such_file(path)
            return _block(edit, path, current)
        case EditKind.whole:
            return _whole(edit, path, current)
        case EditKind.diff:
            return _diff(edit, path, current)
        case EditKind.envelope:
            return _envelope(edit, path, current)


def _block(edit: Edit, path: str, current: bytes) -> Outcome:
    search, text = _lines(edit.search), _lines(edit.text)
    done = _hunks(edit, path, current, (of_block(search, text),))
    if not (isinstance(done, Misfit) and done.kind is MisfitKind.no_place):
        return done
    others: dict[bytes | None, FittedFile] = {}
    for reading in readings(search, text):
        other = _hunks(edit, path, current, (of_block(reading.search, reading.text),))
        if isinstance(other, FittedFile) and other.rung in (EditFit.exact, EditFit.whitespace):
            others[other.data] = FittedFile(other.data, EditFit.whitespace)
    return next(iter(others.values())) if len(others) == 1 else done


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _no_such_file(path: str) -> EditRejection:
    return EditRejection(path=path, reason="there is no such file")


def _created(path: str, current: bytes | None, text: str) -> Outcome:
    if current is None or not current.strip():
        return FittedFile(text.encode("utf-8", "surrogateescape"))
    if current == text.encode("utf-8", "surrogateescape"):
        return EditRejection(path=path, reason="the file is there already, as it shall be", already=True)
    return EditRejection(path=path, reason="the file exists: say which of its lines to replace")


def _whole(edit: Edit, path: str, current: bytes | None) -> Outcome:
    if current is None:
        return FittedFile(edit.text.encode("utf-8", "surrogateescape"))
    text = read(current)
    done = rewritten(text, _lines(edit.text), edited_code(path))
    if isinstance(done, str):
        return EditRejection(path=path, reason=done)
    rung, spans = done
    if write(splice(text, spans)) == current:
        reason = "it is the file as it was: something in it must change"
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=reason)
    return _written(path, current, text, spans, rung)


def _diff(edit: Edit, path: str, current: bytes | None) -> Outcome:
    head, _, rest = edit.text.partition("\n+++ ")
    target, _, body = rest.partition("\n")
    unusual = _unusual(path, edit.text)
    if unusual:
        return unusual
    hunks = of_diff(_lines(body))
    if head.rpartition("--- ")[2].strip() == "/dev/null":
        return _made(edit, path, current, hunks)
    if current is None:
        return _no_such_file(path)
    done = _hunks(edit, path, current, hunks)
    if target.strip() != "/dev/null" or isinstance(done, EditRejection):
        return done
    if done.data:
        return EditRejection(path=path, reason="the diff deletes the file, and not all of its lines are in it")
    return FittedFile(None, done.rung)


def _unusual(path: str, text: str) -> EditRejection | None:
    modes = {found[1] for found in _MODE.finditer(text)}
    if modes - {"100644", "100755"}:
        return EditRejection(path=path, reason=f"it would become no regular file (mode {', '.join(sorted(modes))})")
    if _MOVES.search(text):
        return EditRejection(
            path=path, reason="a file can be made, changed or deleted, not renamed, copied or given in binary"
        )
    return None


def _made(edit: Edit, path: str, current: bytes | None, hunks: Sequence[DiffHunk]) -> Outcome:
    lines = [line for hunk in hunks for line in hunk.lines]
    if any(line.mark != COMES for line in lines) or not lines:
        return EditRejection(path=path, reason="a new file holds nothing but added lines")
    if any(_short(hunk) for hunk in hunks) or (not edit.closed and not edit.text.endswith("\n")):
        return EditRejection(path=path, reason=CUT_OFF)
    return _created(path, current, "".join(f"{line.text}\n" for line in lines))


def _envelope(edit: Edit, path: str, current: bytes | None) -> Outcome:
    head, _, body = edit.text.partition("\n")
    unusual = _unusual(path, edit.text)
    if unusual:
        return unusual
    if head.startswith("*** Delete"):
        return _no_such_file(path) if current is None else FittedFile(None)
    lines = _lines(body)
    if head.startswith("*** Add"):
        marked = [line for line in lines if line.strip()]
        if marked and all(line.startswith(COMES) for line in marked):
            lines = [line[1:] for line in lines]
        elif any(line.startswith(COMES) for line in marked):
            return EditRejection(path=path, reason="of a new file every line is given after a +")
        return _created(path, current, "".join(f"{line}\n" for line in lines))
    return _no_such_file(path) if current is None else _hunks(edit, path, current, of_diff(lines))


def _hunks(edit: Edit, path: str, current: bytes, hunks: Sequence[DiffHunk]) -> Outcome:
    text = read(current)
    page = IndexedLines(text.lines)
    if fault := _unusable(edit, hunks):
        return EditRejection(path=path, reason=fault)
    working = [restyled(text.lines, hunk) for hunk in hunks if hunk.changes]
    if not working:
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=CHANGES_NOTHING)
    judge = _judge(path, current, text)
    found = [options(page, hunk, judge) for hunk in working]
    working, found = _without_done(working, found)
    for hunk, some in zip(working, found, strict=True):
        if not some.places:
            return _nowhere(page, path, hunk, some)
    picked = chosen(page, working, found)
    rung = EditFit.exact
    spans: list[LineReplacement] = []
    for number, (hunk, some, option) in enumerate(zip(working, found, picked, strict=True)):
        if option is None:
            return _ambiguous(page, path, hunk, some)
        fault = _doubt(page, edit, hunk, some, option, last=number == len(working) - 1)
        if fault is not None:
            return fault.model_copy(update={"path": path})
        spans += option.spans
        rung = max(rung, some.rung, _by_place(edit, hunk, option), key=RUNGS.index)
    if any(item.stop > other.start or item[:2] == other[:2] for item, other in pairwise(sorted(spans))):
        return EditRejection(path=path, reason="two of its parts change the same lines")
    return _written(path, current, text, spans, rung)


def _without_done(hunks: list[DiffHunk], found: list[HunkPlaces]) -> tuple[list[DiffHunk], list[HunkPlaces]]:
    """Drop hunks that were applied before, if others remain and context tells them apart."""
    pairs = list(zip(hunks, found, strict=True))
    open_ones = [(hunk, some) for hunk, some in pairs if not (some.already and _tells(hunk))]
    return ([hunk for hunk, _ in open_ones], [some for _, some in open_ones]) if open_ones else (hunks, found)


def _tells(hunk: DiffHunk) -> bool:
    """Return whether a hunk has enough context to identify it."""
    return sum(line.mark == STAYS and bool(line.text.strip()) for line in hunk.lines) >= 3


def _unusable(edit: Edit, hunks: Sequence[DiffHunk]) -> str:
    """Return what is wrong with an edit, whatever the file contains; empty if nothing is."""
    if not hunks:
        return "it has no lines to change"
    last = hunks[-1]
    ends_in_change = bool(last.lines) and last.lines[-1].mark != STAYS
    if _short(last) and (ends_in_change or not last.changes):
        return CUT_OFF
    if not last.changes and not last.counted_right and not edit.closed:
        return CUT_OFF
    if any(not hunk.old for hunk in hunks):
        return "it has no line that says where it belongs"
    if any(_leaves_out(hunk) for hunk in hunks):
        return "the new lines leave something out (...): give all of them"
    return ""


def _short(hunk: DiffHunk) -> bool:
    """Return whether a hunk has fewer lines than its header says."""
    return hunk.counts is not None and (hunk.counts[0] > len(hunk.old) or hunk.counts[1] > len(hunk.new))


def _leaves_out(hunk: DiffHunk) -> bool:
    """Return whether a new line stands for omitted ones: an ellipsis that is not a statement."""
    old = {line.text for line in hunk.old}
    gone = sum(line.mark == GOES for line in hunk.lines)
    coming = [line for line in hunk.lines if line.mark == COMES and line.text not in old and elision(line.text)]
    return any(line.text.strip() != "..." or gone > 2 for line in coming)


def _judge(path: str, current: bytes, text: TextLines) -> Judge:
    code = edited_code(path)
    if code is None:
        return lambda _: True

    def judged(spans: Sequence[LineReplacement]) -> bool:
        if code.flaw(current) is not None:
            return True
        made = splice(text, spans)
        return code.flaw(write(made)) is None and code.steps("\n".join(made.lines)) <= code.steps("\n".join(text.lines))

    return judged


def _nowhere(page: IndexedLines, path: str, hunk: DiffHunk, some: HunkPlaces) -> EditRejection:
    if some.already:
        return EditRejection(
            path=path, reason="the lines to change are not there, and the new ones are already", already=True
        )
    missing = next((line.text for line in hunk.lines if line.mark == GOES and not page.where(line.text)), None)
    reason = "the lines to change are not in the file"
    if missing is not None:
        reason += f"; there is no line {missing.strip()[:80]!r}"
    return Misfit(kind=MisfitKind.no_place, path=path, reason=reason, nearest=nearest(page, hunk.old))


def _ambiguous(page: IndexedLines, path: str, hunk: DiffHunk, some: HunkPlaces) -> EditRejection:
    starts = sorted({option.start for option in some.places})
    shown = ", ".join(str(start + 1) for start in starts[:CANDIDATES]) + (" ..." if len(starts) > CANDIDATES else "")
    reason = f"the lines to change are there {len(starts)} times (lines {shown})"
    return EditRejection(path=path, reason=reason, nearest=each_place(page, starts, len(hunk.old)))


def _doubt(
    page: IndexedLines, edit: Edit, hunk: DiffHunk, some: HunkPlaces, option: HunkPlace, *, last: bool
) -> EditRejection | None:
    """Return an objection to a place; None if there is none."""
    if some.rung is not EditFit.exact and not option.spans:
        return EditRejection(path="", reason="it changes nothing there")
    if is_made_already(page, hunk, some, option.start):
        return EditRejection(path="", reason="its result is in the file already", already=True)
    if foreign := foreign_signs(page.lines, hunk, [line for span in option.spans for line in span.lines]):
        return EditRejection(path="", reason=f"the new lines hold {foreign}, which the file does not: write them plain")
    if not last or edit.closed:
        return None
    open_end = hunk.lines[-1].mark != STAYS and any(line.mark == STAYS for line in hunk.lines)
    at_the_end = max((span.stop for span in option.spans), default=0) == len(page.lines)
    if option.cut or (hunk.counts is None and open_end and not at_the_end):
        return EditRejection(path="", reason=CUT_OFF)
    return None


def _by_place(edit: Edit, hunk: DiffHunk, option: HunkPlace) -> EditFit:
    if edit.kind is EditKind.block:
        return EditFit.exact
    if hunk.start is None or hunk.start != option.start + 1:
        return EditFit.realign
    return EditFit.exact if hunk.counted_right else EditFit.recount


def _written(path: str, current: bytes, text: TextLines, spans: Sequence[LineReplacement], rung: EditFit) -> Outcome:
    data = write(splice(text, spans))
    if data == current:
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=CHANGES_NOTHING, already=True)
    added = "".join(line for span in spans for line in span.lines)
    if not added.isascii() and not _utf8(current):
        return EditRejection(path=path, reason="the file is not UTF-8 text: the new lines may hold ASCII alone")
    return FittedFile(data, rung)


def _utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
