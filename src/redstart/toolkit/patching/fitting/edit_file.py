"""Apply one edit to one file's content, or explain why it does not fit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import Edit, EditFit, EditKind, EditRejection
from redstart.core.frozen import clip
from redstart.toolkit.patching.edited_code import get_edited_code
from redstart.toolkit.patching.fitting.fit_hunks import HunkPlace, HunkPlaces, Judge, find_places, is_made_already
from redstart.toolkit.patching.fitting.locations import IndexedLines, adopt_tabs, find_foreign_characters
from redstart.toolkit.patching.fitting.whole_file import rewrite_file
from redstart.toolkit.patching.hunks import (
    COMES,
    GOES,
    STAYS,
    DiffHunk,
    HunkLine,
    LineReplacement,
    TextLines,
    create_hunk,
    is_elision,
    parse_hunks,
    read,
    splice,
    write,
)

_NUMBER = re.compile(r"^\s*(\d+)(?:\s?[|:│.)\t]|(?= )) ?")


class BlockReading(NamedTuple):
    search: tuple[str, ...]
    text: tuple[str, ...]


def iterate_readings(search: Sequence[str], text: Sequence[str]) -> Iterator[BlockReading]:
    """Yield other readings of a block: without diff signs before the lines, and without line numbers."""
    old, new = _strip_all_signs(search, "-"), _strip_all_signs(text, "+")
    if old is not None and new is not None:
        yield BlockReading(old, new)
    if any(line.startswith("-") for line in search) or any(line.startswith("+") for line in text):
        yield BlockReading(_strip_some_signs(search, "-"), _strip_some_signs(text, "+"))
    old, new = _strip_numbers(search), _strip_numbers(text)
    if old is not None and (new is not None or not any(_NUMBER.match(line) for line in text)):
        yield BlockReading(old, tuple(text) if new is None else new)


def _strip_all_signs(lines: Sequence[str], sign: str) -> tuple[str, ...] | None:
    if not all(line[:1] in ("", sign, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _strip_some_signs(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(sign) for line in lines)


def _strip_numbers(lines: Sequence[str]) -> tuple[str, ...] | None:
    """Strip line numbers; None unless every non-empty line has one, in rising order."""
    non_empty = [line for line in lines if line.strip()]
    matches = [_NUMBER.match(line) for line in non_empty]
    numbers = [int(item[1]) for item in matches if item]
    if len(numbers) != len(non_empty) or not non_empty or any(item >= other for item, other in pairwise(numbers)):
        return None
    return tuple(_NUMBER.sub("", line, count=1) for line in lines)


def choose_places(
    page: IndexedLines, hunks: Sequence[DiffHunk], candidates: Sequence[HunkPlaces]
) -> list[HunkPlace | None]:
    """Choose one place for each hunk; None if several remain. The hunks of a diff are in file order."""
    choices: list[HunkPlace | None] = [item.places[0] if len(item.places) == 1 else None for item in candidates]
    offset = _find_offset(hunks, choices)
    for number, (hunk, hunk_places) in enumerate(zip(hunks, candidates, strict=True)):
        if choices[number] is None:
            choices[number] = _find_by_number(hunk, hunk_places, offset)
    for number, (hunk, hunk_places) in enumerate(zip(hunks, candidates, strict=True)):
        if choices[number] is None:
            between = _filter_between(hunk_places.places, choices, number)
            choices[number] = between[0] if len(between) == 1 else _find_under_heading(page, hunk, between)
    return choices


def _find_offset(hunks: Sequence[DiffHunk], choices: Sequence[HunkPlace | None]) -> int | None:
    """Return the common offset of all hunks with a certain place; None if they differ or there are none."""
    pairs = zip(hunks, choices, strict=True)
    offsets = {option.start + 1 - hunk.start for hunk, option in pairs if option and hunk.start is not None}
    return offsets.pop() if len(offsets) == 1 else None


def _find_by_number(hunk: DiffHunk, hunk_places: HunkPlaces, offset: int | None) -> HunkPlace | None:
    if hunk.start is None or hunk_places.fit not in (EditFit.exact, EditFit.whitespace):
        return None
    expected_start = hunk.start - 1 + (offset or 0)
    return next((option for option in hunk_places.places if option.start == expected_start), None)


def _filter_between(places: Sequence[HunkPlace], choices: Sequence[HunkPlace | None], number: int) -> list[HunkPlace]:
    low = max((option.start for option in choices[:number] if option), default=-1)
    high = min((option.start for option in choices[number + 1 :] if option), default=None)
    return [option for option in places if option.start > low and (high is None or option.start < high)]


def _find_under_heading(page: IndexedLines, hunk: DiffHunk, places: Sequence[HunkPlace]) -> HunkPlace | None:
    """Return the only place below the heading, with no similar line in between; None if there is not exactly one."""
    heading = hunk.heading.strip()
    if not heading:
        return None
    under = [option for option in places if _is_heading_above(page, heading, option.start)]
    return under[0] if len(under) == 1 else None


def _is_heading_above(page: IndexedLines, heading: str, start: int) -> bool:
    kind = heading.split(" ", 1)[0]
    for line in reversed(page.lines[:start]):
        text = line.strip()
        if text.startswith(heading):
            return True
        if text.split(" ", 1)[0] == kind:
            return False
    return False


MAX_EXCERPT_CHARACTERS = 600
PLACES = 3


def show_nearest(page: IndexedLines, old: Sequence[HunkLine]) -> str:
    """Show the nearest passage with line numbers; empty if nothing is close."""
    texts = [line.text.strip() for line in old if line.text.strip()]
    if not texts or not page.lines:
        return ""
    start = _start(page, texts)
    if start is None:
        return ""
    return clip(f"the nearest lines are:\n{show_passage(page, start, len(old))}", MAX_EXCERPT_CHARACTERS)


def show_places(page: IndexedLines, starts: Sequence[int], length: int) -> str:
    """Show the passages at several places with the lines around them, which tell them apart."""
    passages = (show_passage(page, start, length) for start in starts[:PLACES])
    return clip("the places are:\n" + "\n--\n".join(passages), MAX_EXCERPT_CHARACTERS)


def show_passage(page: IndexedLines, start: int, length: int) -> str:
    """Show `length` lines with their numbers, and the lines before and after them."""
    low, high = max(start - 1, 0), min(start + length + 1, len(page.lines))
    return "\n".join(f"{number + 1}: {page.lines[number]}" for number in range(low, high))


def _start(page: IndexedLines, texts: Sequence[str]) -> int | None:
    """Find the place where most lines agree, else where one line is most similar; None if there is none."""
    votes: dict[int, int] = {}
    for number, text in enumerate(texts):
        for place in page.find_lines(text)[:50]:
            votes[place - number] = votes.get(place - number, 0) + 1
    if votes:
        return max(max(votes, key=lambda place: (votes[place], -place)), 0)
    stripped = [line.strip() for line in page.lines]
    for text in sorted(texts, key=len, reverse=True)[:3]:
        if close := difflib.get_close_matches(text, stripped, n=1, cutoff=0.5):
            return max(stripped.index(close[0]) - texts.index(text), 0)
    return None


EDIT_FITS = tuple(EditFit)
CANDIDATES = 8
CUT_OFF = "it is cut off: give all of it"
CHANGES_NOTHING = "it changes nothing"

_MODE = re.compile(r"^(?:new file mode|new mode|old mode|deleted file mode) (\d+)", re.MULTILINE)
_UNSUPPORTED_HEADER = re.compile(
    r"^(?:rename (?:from|to)|copy (?:from|to)|GIT binary patch|Binary files|\*\*\* Move to:)", re.MULTILINE
)


class FittedFile(NamedTuple):
    """A fitted edit. `data` is the file's new content; None if the edit deletes it."""

    data: bytes | None
    fit: EditFit = EditFit.exact


class MisfitKind(StrEnum):
    no_place = "no_place"
    unchanged = "unchanged"


class Misfit(EditRejection):
    """A rejection whose kind matters to callers."""

    kind: MisfitKind

    @property
    def rejection(self) -> EditRejection:
        """The rejection as it is shown and stored."""
        return EditRejection.model_validate(self.model_dump(exclude={"kind"}))


Outcome = FittedFile | EditRejection


def apply_edit(edit: Edit, path: str, current: bytes | None) -> Outcome:
    """Apply the edit to the current content of the file; `current` is None if the file does not exist."""
    outcome = _apply_by_kind(edit, path, current)
    return outcome.model_copy(update={"block": edit.number}) if isinstance(outcome, EditRejection) else outcome


def creates_file(edit: Edit) -> bool:
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


def _apply_by_kind(edit: Edit, path: str, current: bytes | None) -> Outcome:
    match edit.kind:
        case EditKind.block if not edit.search.strip():
            return _create_file(path, current, edit.text)
        case EditKind.block:
            if current is None:
                return _reject_missing_file(path)
            return _block(edit, path, current)
        case EditKind.whole:
            return _apply_whole(edit, path, current)
        case EditKind.diff:
            return _diff(edit, path, current)
        case EditKind.envelope:
            return _apply_envelope(edit, path, current)


def _block(edit: Edit, path: str, current: bytes) -> Outcome:
    search, text = _split_lines(edit.search), _split_lines(edit.text)
    outcome = _apply_hunks(edit, path, current, (create_hunk(search, text),))
    if not (isinstance(outcome, Misfit) and outcome.kind is MisfitKind.no_place):
        return outcome
    alternatives: dict[bytes | None, FittedFile] = {}
    for reading in iterate_readings(search, text):
        alternative = _apply_hunks(edit, path, current, (create_hunk(reading.search, reading.text),))
        if isinstance(alternative, FittedFile) and alternative.fit in (EditFit.exact, EditFit.whitespace):
            alternatives[alternative.data] = FittedFile(alternative.data, EditFit.whitespace)
    return next(iter(alternatives.values())) if len(alternatives) == 1 else outcome


def _split_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _reject_missing_file(path: str) -> EditRejection:
    return EditRejection(path=path, reason="there is no such file")


def _create_file(path: str, current: bytes | None, text: str) -> Outcome:
    if current is None or not current.strip():
        return FittedFile(text.encode("utf-8", "surrogateescape"))
    if current == text.encode("utf-8", "surrogateescape"):
        return EditRejection(path=path, reason="the file is there already, as it shall be", already=True)
    return EditRejection(path=path, reason="the file exists: say which of its lines to replace")


def _apply_whole(edit: Edit, path: str, current: bytes | None) -> Outcome:
    if current is None:
        return FittedFile(edit.text.encode("utf-8", "surrogateescape"))
    text = read(current)
    result = rewrite_file(text, _split_lines(edit.text), get_edited_code(path))
    if isinstance(result, str):
        return EditRejection(path=path, reason=result)
    fit, spans = result
    if write(splice(text, spans)) == current:
        reason = "it is the file as it was: something in it must change"
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=reason)
    return _write_spans(path, current, text, spans, fit)


def _diff(edit: Edit, path: str, current: bytes | None) -> Outcome:
    head, _, rest = edit.text.partition("\n+++ ")
    target, _, body = rest.partition("\n")
    unusual = _reject_unusual(path, edit.text)
    if unusual:
        return unusual
    hunks = parse_hunks(_split_lines(body))
    if head.rpartition("--- ")[2].strip() == "/dev/null":
        return _create_from_diff(edit, path, current, hunks)
    if current is None:
        return _reject_missing_file(path)
    outcome = _apply_hunks(edit, path, current, hunks)
    if target.strip() != "/dev/null" or isinstance(outcome, EditRejection):
        return outcome
    if outcome.data:
        return EditRejection(path=path, reason="the diff deletes the file, and not all of its lines are in it")
    return FittedFile(None, outcome.fit)


def _reject_unusual(path: str, text: str) -> EditRejection | None:
    modes = {match[1] for match in _MODE.finditer(text)}
    if modes - {"100644", "100755"}:
        return EditRejection(path=path, reason=f"it would become no regular file (mode {', '.join(sorted(modes))})")
    if _UNSUPPORTED_HEADER.search(text):
        return EditRejection(
            path=path, reason="a file can be made, changed or deleted, not renamed, copied or given in binary"
        )
    return None


def _create_from_diff(edit: Edit, path: str, current: bytes | None, hunks: Sequence[DiffHunk]) -> Outcome:
    lines = [line for hunk in hunks for line in hunk.lines]
    if any(line.mark != COMES for line in lines) or not lines:
        return EditRejection(path=path, reason="a new file holds nothing but added lines")
    if any(_is_short(hunk) for hunk in hunks) or (not edit.closed and not edit.text.endswith("\n")):
        return EditRejection(path=path, reason=CUT_OFF)
    return _create_file(path, current, "".join(f"{line.text}\n" for line in lines))


def _apply_envelope(edit: Edit, path: str, current: bytes | None) -> Outcome:
    head, _, body = edit.text.partition("\n")
    unusual = _reject_unusual(path, edit.text)
    if unusual:
        return unusual
    if head.startswith("*** Delete"):
        return _reject_missing_file(path) if current is None else FittedFile(None)
    lines = _split_lines(body)
    if head.startswith("*** Add"):
        non_empty = [line for line in lines if line.strip()]
        if non_empty and all(line.startswith(COMES) for line in non_empty):
            lines = [line[1:] for line in lines]
        elif any(line.startswith(COMES) for line in non_empty):
            return EditRejection(path=path, reason="of a new file every line is given after a +")
        return _create_file(path, current, "".join(f"{line}\n" for line in lines))
    return _reject_missing_file(path) if current is None else _apply_hunks(edit, path, current, parse_hunks(lines))


def _apply_hunks(edit: Edit, path: str, current: bytes, hunks: Sequence[DiffHunk]) -> Outcome:
    text = read(current)
    page = IndexedLines(text.lines)
    if fault := _find_fault(edit, hunks):
        return EditRejection(path=path, reason=fault)
    pending = [adopt_tabs(text.lines, hunk) for hunk in hunks if hunk.changes]
    if not pending:
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=CHANGES_NOTHING)
    judge = _judge(path, current, text)
    candidates = [find_places(page, hunk, judge) for hunk in pending]
    pending, candidates = _without_done(pending, candidates)
    for hunk, hunk_places in zip(pending, candidates, strict=True):
        if not hunk_places.places:
            return _reject_no_place(page, path, hunk, hunk_places)
    choices = choose_places(page, pending, candidates)
    fit = EditFit.exact
    spans: list[LineReplacement] = []
    for number, (hunk, hunk_places, option) in enumerate(zip(pending, candidates, choices, strict=True)):
        if option is None:
            return _reject_ambiguous(page, path, hunk, hunk_places)
        fault = _find_objection(page, edit, hunk, hunk_places, option, is_last=number == len(pending) - 1)
        if fault is not None:
            return fault.model_copy(update={"path": path})
        spans += option.spans
        fit = max(fit, hunk_places.fit, _get_location_fit(edit, hunk, option), key=EDIT_FITS.index)
    if any(item.stop > other.start or item[:2] == other[:2] for item, other in pairwise(sorted(spans))):
        return EditRejection(path=path, reason="two of its parts change the same lines")
    return _write_spans(path, current, text, spans, fit)


def _without_done(hunks: list[DiffHunk], candidates: list[HunkPlaces]) -> tuple[list[DiffHunk], list[HunkPlaces]]:
    """Drop hunks that were applied before, if others remain and context tells them apart."""
    pairs = list(zip(hunks, candidates, strict=True))
    pending = [
        (hunk, hunk_places)
        for hunk, hunk_places in pairs
        if not (hunk_places.is_already_applied and _has_enough_context(hunk))
    ]
    return (
        ([hunk for hunk, _ in pending], [hunk_places for _, hunk_places in pending]) if pending else (hunks, candidates)
    )


def _has_enough_context(hunk: DiffHunk) -> bool:
    """Return whether a hunk has enough context to identify it."""
    return sum(line.mark == STAYS and bool(line.text.strip()) for line in hunk.lines) >= 3


def _find_fault(edit: Edit, hunks: Sequence[DiffHunk]) -> str:
    """Return what is wrong with an edit, whatever the file contains; empty if nothing is."""
    if not hunks:
        return "it has no lines to change"
    last = hunks[-1]
    ends_in_change = bool(last.lines) and last.lines[-1].mark != STAYS
    if _is_short(last) and (ends_in_change or not last.changes):
        return CUT_OFF
    if not last.changes and not last.counted_right and not edit.closed:
        return CUT_OFF
    if any(not hunk.old for hunk in hunks):
        return "it has no line that says where it belongs"
    if any(_has_omission(hunk) for hunk in hunks):
        return "the new lines leave something out (...): give all of them"
    return ""


def _is_short(hunk: DiffHunk) -> bool:
    """Return whether a hunk has fewer lines than its header says."""
    return hunk.header_counts is not None and (
        hunk.header_counts[0] > len(hunk.old) or hunk.header_counts[1] > len(hunk.new)
    )


def _has_omission(hunk: DiffHunk) -> bool:
    """Return whether a new line stands for omitted ones: an ellipsis that is not a statement."""
    old = {line.text for line in hunk.old}
    removed_count = sum(line.mark == GOES for line in hunk.lines)
    elisions = [line for line in hunk.lines if line.mark == COMES and line.text not in old and is_elision(line.text)]
    return any(line.text.strip() != "..." or removed_count > 2 for line in elisions)


def _judge(path: str, current: bytes, text: TextLines) -> Judge:
    code = get_edited_code(path)
    if code is None:
        return lambda _: True

    def parses(spans: Sequence[LineReplacement]) -> bool:
        if code.find_syntax_flaw(current) is not None:
            return True
        spliced = splice(text, spans)
        return code.find_syntax_flaw(write(spliced)) is None and code.list_indent_widths(
            "\n".join(spliced.lines)
        ) <= code.list_indent_widths("\n".join(text.lines))

    return parses


def _reject_no_place(page: IndexedLines, path: str, hunk: DiffHunk, hunk_places: HunkPlaces) -> EditRejection:
    if hunk_places.is_already_applied:
        return EditRejection(
            path=path, reason="the lines to change are not there, and the new ones are already", already=True
        )
    missing = next((line.text for line in hunk.lines if line.mark == GOES and not page.find_lines(line.text)), None)
    reason = "the lines to change are not in the file"
    if missing is not None:
        reason += f"; there is no line {missing.strip()[:80]!r}"
    return Misfit(kind=MisfitKind.no_place, path=path, reason=reason, nearest=show_nearest(page, hunk.old))


def _reject_ambiguous(page: IndexedLines, path: str, hunk: DiffHunk, hunk_places: HunkPlaces) -> EditRejection:
    starts = sorted({option.start for option in hunk_places.places})
    line_numbers = ", ".join(str(start + 1) for start in starts[:CANDIDATES]) + (
        " ..." if len(starts) > CANDIDATES else ""
    )
    reason = f"the lines to change are there {len(starts)} times (lines {line_numbers})"
    return EditRejection(path=path, reason=reason, nearest=show_places(page, starts, len(hunk.old)))


def _find_objection(
    page: IndexedLines, edit: Edit, hunk: DiffHunk, hunk_places: HunkPlaces, option: HunkPlace, *, is_last: bool
) -> EditRejection | None:
    """Return an objection to a place; None if there is none."""
    if hunk_places.fit is not EditFit.exact and not option.spans:
        return EditRejection(path="", reason="it changes nothing there")
    if is_made_already(page, hunk, hunk_places, option.start):
        return EditRejection(path="", reason="its result is in the file already", already=True)
    if foreign := find_foreign_characters(page.lines, hunk, [line for span in option.spans for line in span.lines]):
        return EditRejection(path="", reason=f"the new lines hold {foreign}, which the file does not: write them plain")
    if not is_last or edit.closed:
        return None
    open_end = hunk.lines[-1].mark != STAYS and any(line.mark == STAYS for line in hunk.lines)
    at_the_end = max((span.stop for span in option.spans), default=0) == len(page.lines)
    if option.is_last_line_partial or (hunk.header_counts is None and open_end and not at_the_end):
        return EditRejection(path="", reason=CUT_OFF)
    return None


def _get_location_fit(edit: Edit, hunk: DiffHunk, option: HunkPlace) -> EditFit:
    if edit.kind is EditKind.block:
        return EditFit.exact
    if hunk.start is None or hunk.start != option.start + 1:
        return EditFit.realign
    return EditFit.exact if hunk.counted_right else EditFit.recount


def _write_spans(path: str, current: bytes, text: TextLines, spans: Sequence[LineReplacement], fit: EditFit) -> Outcome:
    data = write(splice(text, spans))
    if data == current:
        return Misfit(kind=MisfitKind.unchanged, path=path, reason=CHANGES_NOTHING, already=True)
    added = "".join(line for span in spans for line in span.lines)
    if not added.isascii() and not _is_utf8(current):
        return EditRejection(path=path, reason="the file is not UTF-8 text: the new lines may hold ASCII alone")
    return FittedFile(data, fit)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
