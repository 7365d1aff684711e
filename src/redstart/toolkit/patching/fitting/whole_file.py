"""Applies a whole-file edit, and detects an incomplete one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from redstart.core.change import EditFit
from redstart.toolkit.patching.edited_code import EditedCode
from redstart.toolkit.patching.fitting.places import leading, retabbed, unwrapped
from redstart.toolkit.patching.hunks import LineReplacement, TextLines, elision, may_be_elision

MOST_GONE_AT_AN_END = 3
SMALL, SMALL_PROGRAM = 12, 60


def rewritten(
    text: TextLines, given: Sequence[str], code: EditedCode | None
) -> tuple[EditFit, list[LineReplacement]] | str:
    """Compute the spans that turn the file into the new one; else return why the new one is incomplete.

    An answer that omits lines, ends early or contains only a part is not taken as the file: omitted lines come from
    the file if the surrounding lines identify them, and definitions replace those of the same name.
    """
    new = _trimmed(text.lines, _unbent(text.lines, list(given)))
    left_out = [at for at, line in enumerate(new) if elision(line) and line not in text.lines]
    if left_out:
        filled = _filled(text.lines, new)
        if isinstance(filled, str):
            return filled
        new = filled
    if told := _told_not_given(text.lines, new):
        return told
    fault = _not_whole(text.lines, new, code)
    if fault:
        parts = code.replaced(text.lines, new) if code and not left_out else fault
        return (EditFit.node, parts) if isinstance(parts, list) else fault
    return (EditFit.realign if left_out else EditFit.exact), _spans(text.lines, new)


def _told_not_given(old: Sequence[str], new: Sequence[str]) -> str:
    """Return which lines are missing because only a comment about them replaces them; empty if none are."""
    known = set(old)
    if not any(may_be_elision(line) and line not in known for line in new):
        return ""
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone = sum(bool(line.strip()) for line in old[a:b])
        said = [line for line in new[c:d] if line.strip()]
        if tag == "replace" and gone > 1 and len(said) == 1 and said[0] not in known and may_be_elision(said[0]):
            return f"{gone} lines from line {a + 1} on are not in it, only the comment: {said[0].strip()}"
    return ""


def _spans(old: Sequence[str], new: Sequence[str]) -> list[LineReplacement]:
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [LineReplacement(a, b, tuple(new[c:d])) for tag, a, b, c, d in codes if tag != "equal"]


def _trimmed(old: Sequence[str], new: list[str]) -> list[str]:
    """Restore the file's empty lines at both ends, and its trailing whitespace if the answer has none at all."""
    while new and not new[-1].strip():
        new.pop()
    while new and not new[0].strip():
        new.pop(0)
    head = next((at for at, line in enumerate(old) if line.strip()), 0)
    tail = next((at for at, line in enumerate(reversed(old)) if line.strip()), 0)
    if not any(line != line.rstrip() for line in new) and any(line != line.rstrip() for line in old):
        bare = [line.rstrip() for line in old]
        for block in difflib.SequenceMatcher(None, bare, new, autojunk=False).get_matching_blocks():
            new[block.b : block.b + block.size] = old[block.a : block.a + block.size]
    return [*old[:head], *new, *(old[len(old) - tail :] if tail else ())]


def _unbent(old: Sequence[str], new: list[str]) -> list[str]:
    """Undo changes of indentation (tabs against spaces) and of transport that make more lines match the file."""
    known = {line for line in old if line.strip()}
    best = new
    tabs = any(leading(line).startswith("\t") for line in old)
    differ = tabs != any(leading(line).startswith("\t") for line in new)
    for bend in (*(retabbed() if differ else ()), *unwrapped(new)):
        moved = [bend(line) or "" for line in new]
        if sum(line in known for line in moved) > sum(line in known for line in best):
            best = moved
    return best


def _not_whole(old: Sequence[str], new: Sequence[str], code: EditedCode | None) -> str:
    said = [line for line in old if line.strip()]
    if _all_lines_differ(said, new):
        return "nearly all of its lines differ from the file's in blanks or in what stands before them"
    if len(said) <= SMALL and len(said) < 2 * len(new):
        return ""
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    kept = sum(bool(line.strip()) for tag, a, b, _, _ in codes if tag == "equal" for line in old[a:b])
    is_small = len(said) <= SMALL_PROGRAM and kept >= 0.2 * len(said)
    rewrite = is_small and code is not None and code.has_all_names(old, new)
    if kept < 0.5 * len(said) and not rewrite:
        return f"only {kept} of the file's {len(said)} lines are in it: it is not the whole file"
    for (tag, a, b, c, d), where in ((codes[-1], "ends early: the file's last"), (codes[0], "begins late: the first")):
        lost = sum(bool(line.strip()) for line in old[a:b]) - sum(bool(line.strip()) for line in new[c:d])
        if tag != "equal" and lost >= MOST_GONE_AT_AN_END:
            return f"it {where} {lost} lines are not in it"
    for tag, a, b, c, d in codes:
        gone = sum(bool(line.strip()) for line in old[a:b])
        if tag != "equal" and gone > max(30, 0.3 * len(said)) and d - c < gone / 3:
            return f"{gone} lines from line {a + 1} on are not in it: it is not the whole file"
    return ""


def _all_lines_differ(said: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether the lines match the file's except for indentation: something changed all of them."""
    there, plain = set(new), {line.strip() for line in new}
    exact = sum(line in there for line in said)
    return sum(line.strip() in plain for line in said) > max(2 * exact, 4)


def _filled(old: Sequence[str], new: Sequence[str]) -> list[str] | str:
    """Fill the omissions of the new text with the file's lines; else return why that is impossible."""
    made: list[str] = []
    parts = _parts(old, new)
    at = 0
    for number, part in enumerate(parts):
        if number:
            start = _found(old, part[:3], at) if part else len(old)
            if start is None:
                return "it leaves lines out, and the lines behind them are not there just once"
            made += old[at:start]
            at = start
        made += part
        if number < len(parts) - 1:
            end = _found(old, part[-3:], 0) if part else 0
            if end is None or end + len(part[-3:]) < at:
                return "it leaves lines out, and the lines before them are not there just once"
            at = end + len(part[-3:])
    return made


def _parts(old: Sequence[str], new: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in new:
        if elision(line) and line not in old:
            parts.append([])
        else:
            parts[-1].append(line)
    for part in parts[1:]:
        while part and not part[0].strip():
            part.pop(0)
    for part in parts[:-1]:
        while part and not part[-1].strip():
            part.pop()
    return parts


def _found(old: Sequence[str], wanted: Sequence[str], low: int) -> int | None:
    places = [
        at for at in range(low, len(old) - len(wanted) + 1) if all(old[at + n] == line for n, line in enumerate(wanted))
    ]
    return places[0] if len(places) == 1 else None
