"""One edit on one file's content: what it becomes, or why the edit does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import Edit, EditKind, Reject, Rung
from redstart.toolkit.patching.edited_code import edited_code
from redstart.toolkit.patching.fitting.alternatives import readings
from redstart.toolkit.patching.fitting.choose import chosen
from redstart.toolkit.patching.fitting.fit import Judge, Option, Options, is_made_already, options
from redstart.toolkit.patching.fitting.nearest import each_place, nearest
from redstart.toolkit.patching.fitting.places import Page
from redstart.toolkit.patching.fitting.variations import foreign_signs, restyled
from redstart.toolkit.patching.fitting.whole_file import rewritten
from redstart.toolkit.patching.hunks import COMES, GOES, STAYS, Hunk, elision, of_block, of_diff
from redstart.toolkit.patching.text import Span, Text, read, splice, write

RUNGS = tuple(Rung)
CANDIDATES = 8
CUT_OFF = "it is cut off: give all of it"
CHANGES_NOTHING = "it changes nothing"

_MODE = re.compile(r"^(?:new file mode|new mode|old mode|deleted file mode) (\d+)", re.MULTILINE)
_MOVES = re.compile(
    r"^(?:rename (?:from|to)|copy (?:from|to)|GIT binary patch|Binary files|\*\*\* Move to:)", re.MULTILINE
)


class Fitted(NamedTuple):
    """`data` is the file's new content; None where it is to go."""

    data: bytes | None
    rung: Rung = Rung.exact


class MisfitKind(StrEnum):
    no_place = "no_place"
    unchanged = "unchanged"


class Misfit(Reject):
    """A reject of which the callers have to know the kind."""

    kind: MisfitKind

    @property
    def plain(self) -> Reject:
        """As it is told and stored."""
        return Reject.model_validate(self.model_dump(exclude={"kind"}))


Outcome = Fitted | Reject


def rework(edit: Edit, path: str, current: bytes | None) -> Outcome:
    """The edit on the content that the file has at the moment; `current` is None where there is no such file."""
    done = _by_kind(edit, path, current)
    return done.model_copy(update={"block": edit.number}) if isinstance(done, Reject) else done


def creates(edit: Edit) -> bool:
    """Whether the edit says that the file is new."""
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
    others: dict[bytes | None, Fitted] = {}
    for reading in readings(search, text):
        other = _hunks(edit, path, current, (of_block(reading.search, reading.text),))
        if isinstance(other, Fitted) and other.rung in (Rung.exact, Rung.whitespace):
            others[other.data] = Fitted(other.data, Rung.whitespace)
    return next(iter(others.values())) if len(others) == 1 else done


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _no_such_file(path: str) -> Reject:
    return Reject(path=path, reason="there is no such file")


def _created(path: str, current: bytes | None, text: str) -> Outcome:
    if current is None or not current.strip():
        return Fitted(text.encode("utf-8", "surrogateescape"))
    if current == text.encode("utf-8", "surrogateescape"):
        return Reject(path=path, reason="the file is there already, as it shall be", already=True)
    return Reject(path=path, reason="the file exists: say which of its lines to replace")


def _whole(edit: Edit, path: str, current: bytes | None) -> Outcome:
    if current is None:
        return Fitted(edit.text.encode("utf-8", "surrogateescape"))
    text = read(current)
    done = rewritten(text, _lines(edit.text), edited_code(path))
    if isinstance(done, str):
        return Reject(path=path, reason=done)
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
    if target.strip() != "/dev/null" or isinstance(done, Reject):
        return done
    if done.data:
        return Reject(path=path, reason="the diff deletes the file, and not all of its lines are in it")
    return Fitted(None, done.rung)


def _unusual(path: str, text: str) -> Reject | None:
    modes = {found[1] for found in _MODE.finditer(text)}
    if modes - {"100644", "100755"}:
        return Reject(path=path, reason=f"it would become no regular file (mode {', '.join(sorted(modes))})")
    if _MOVES.search(text):
        return Reject(
            path=path, reason="a file can be made, changed or deleted, not renamed, copied or given in binary"
        )
    return None


def _made(edit: Edit, path: str, current: bytes | None, hunks: Sequence[Hunk]) -> Outcome:
    lines = [line for hunk in hunks for line in hunk.lines]
    if any(line.mark != COMES for line in lines) or not lines:
        return Reject(path=path, reason="a new file holds nothing but added lines")
    if any(_short(hunk) for hunk in hunks) or (not edit.closed and not edit.text.endswith("\n")):
        return Reject(path=path, reason=CUT_OFF)
    return _created(path, current, "".join(f"{line.text}\n" for line in lines))


def _envelope(edit: Edit, path: str, current: bytes | None) -> Outcome:
    head, _, body = edit.text.partition("\n")
    unusual = _unusual(path, edit.text)
    if unusual:
        return unusual
    if head.startswith("*** Delete"):
        return _no_such_file(path) if current is None else Fitted(None)
    lines = _lines(body)
    if head.startswith("*** Add"):
        marked = [line for line in lines if line.strip()]
        if marked and all(line.startswith(COMES) for line in marked):
            lines = [line[1:] for line in lines]
        elif any(line.startswith(COMES) for line in marked):
            return Reject(path=path, reason="of a new file every line is given after a +")
        return _created(path, current, "".join(f"{line}\n" for line in lines))
    return _no_such_file(path) if current is None else _hunks(edit, path, current, of_diff(lines))


def _hunks(edit: Edit, path: str, current: bytes, hunks: Sequence[Hunk]) -> Outcome:
    text = read(current)
    page = Page(text.lines)
    if fault := _unusable(edit, hunks):
        return Reject(path=path, reason=fault)
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
    rung = Rung.exact
    spans: list[Span] = []
    for number, (hunk, some, option) in enumerate(zip(working, found, picked, strict=True)):
        if option is None:
            return _ambiguous(page, path, hunk, some)
        fault = _doubt(page, edit, hunk, some, option, last=number == len(working) - 1)
        if fault is not None:
            return fault.model_copy(update={"path": path})
        spans += option.spans
        rung = max(rung, some.rung, _by_place(edit, hunk, option), key=RUNGS.index)
    if any(one.stop > other.start or one[:2] == other[:2] for one, other in pairwise(sorted(spans))):
        return Reject(path=path, reason="two of its parts change the same lines")
    return _written(path, current, text, spans, rung)


def _without_done(hunks: list[Hunk], found: list[Options]) -> tuple[list[Hunk], list[Options]]:
    """Without the hunks that were made before, if others are still to be made and context says which is which."""
    pairs = list(zip(hunks, found, strict=True))
    open_ones = [(hunk, some) for hunk, some in pairs if not (some.already and _tells(hunk))]
    return ([hunk for hunk, _ in open_ones], [some for _, some in open_ones]) if open_ones else (hunks, found)


def _tells(hunk: Hunk) -> bool:
    """Whether it shows enough of what is around its changes to be known by it."""
    return sum(line.mark == STAYS and bool(line.text.strip()) for line in hunk.lines) >= 3


def _unusable(edit: Edit, hunks: Sequence[Hunk]) -> str:
    """What is wrong with an edit whatever the file holds."""
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


def _short(hunk: Hunk) -> bool:
    """Whether it has fewer lines than it says."""
    return hunk.counts is not None and (hunk.counts[0] > len(hunk.old) or hunk.counts[1] > len(hunk.new))


def _leaves_out(hunk: Hunk) -> bool:
    """Whether a new line stands for others: an ellipsis that is no statement of its own."""
    old = {line.text for line in hunk.old}
    gone = sum(line.mark == GOES for line in hunk.lines)
    coming = [line for line in hunk.lines if line.mark == COMES and line.text not in old and elision(line.text)]
    return any(line.text.strip() != "..." or gone > 2 for line in coming)


def _judge(path: str, current: bytes, text: Text) -> Judge:
    code = edited_code(path)
    if code is None:
        return lambda _: True

    def judged(spans: Sequence[Span]) -> bool:
        if code.flaw(current) is not None:
            return True
        made = splice(text, spans)
        return code.flaw(write(made)) is None and code.steps("\n".join(made.lines)) <= code.steps("\n".join(text.lines))

    return judged


def _nowhere(page: Page, path: str, hunk: Hunk, some: Options) -> Reject:
    if some.already:
        return Reject(path=path, reason="the lines to change are not there, and the new ones are already", already=True)
    missing = next((line.text for line in hunk.lines if line.mark == GOES and not page.where(line.text)), None)
    reason = "the lines to change are not in the file"
    if missing is not None:
        reason += f"; there is no line {missing.strip()[:80]!r}"
    return Misfit(kind=MisfitKind.no_place, path=path, reason=reason, nearest=nearest(page, hunk.old))


def _ambiguous(page: Page, path: str, hunk: Hunk, some: Options) -> Reject:
    starts = sorted({option.start for option in some.places})
    shown = ", ".join(str(start + 1) for start in starts[:CANDIDATES]) + (" ..." if len(starts) > CANDIDATES else "")
    reason = f"the lines to change are there {len(starts)} times (lines {shown})"
    return Reject(path=path, reason=reason, nearest=each_place(page, starts, len(hunk.old)))


def _doubt(page: Page, edit: Edit, hunk: Hunk, some: Options, option: Option, *, last: bool) -> Reject | None:
    """What speaks against a place that was found."""
    if some.rung is not Rung.exact and not option.spans:
        return Reject(path="", reason="it changes nothing there")
    if is_made_already(page, hunk, some, option.start):
        return Reject(path="", reason="its result is in the file already", already=True)
    if foreign := foreign_signs(page.lines, hunk, [line for span in option.spans for line in span.lines]):
        return Reject(path="", reason=f"the new lines hold {foreign}, which the file does not: write them plain")
    if not last or edit.closed:
        return None
    open_end = hunk.lines[-1].mark != STAYS and any(line.mark == STAYS for line in hunk.lines)
    at_the_end = max((span.stop for span in option.spans), default=0) == len(page.lines)
    if option.cut or (hunk.counts is None and open_end and not at_the_end):
        return Reject(path="", reason=CUT_OFF)
    return None


def _by_place(edit: Edit, hunk: Hunk, option: Option) -> Rung:
    if edit.kind is EditKind.block:
        return Rung.exact
    if hunk.start is None or hunk.start != option.start + 1:
        return Rung.realign
    return Rung.exact if hunk.counted_right else Rung.recount


def _written(path: str, current: bytes, text: Text, spans: Sequence[Span], rung: Rung) -> Outcome:
    data = write(splice(text, spans))
    if data == current:
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=CHANGES_NOTHING, already=True)
    added = "".join(line for span in spans for line in span.lines)
    if not added.isascii() and not _utf8(current):
        return Reject(path=path, reason="the file is not UTF-8 text: the new lines may hold ASCII alone")
    return Fitted(data, rung)


def _utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
