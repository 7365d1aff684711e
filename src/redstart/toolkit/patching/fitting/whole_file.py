"""Apply a whole-file edit, and detect an incomplete one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from redstart.core.change import EditFit
from redstart.toolkit.patching.edited_code import EditedCode
from redstart.toolkit.patching.fitting.locations import (
    get_indentation,
    iterate_tab_conversions,
    iterate_transport_fixes,
)
from redstart.toolkit.patching.hunks import LineReplacement, TextLines, is_elision, is_possible_elision

END_LOSS_LIMIT_LINES = 3
SMALL, SMALL_PROGRAM = 12, 60


def rewrite_file(
    text: TextLines, new_lines: Sequence[str], code: EditedCode | None
) -> tuple[EditFit, list[LineReplacement]] | str:
    """Compute the spans that turn the file into the new one; else return why the new one is incomplete.

    An answer that omits lines, ends early or contains only a part is not taken as the file: omitted lines come from
    the file if the surrounding lines identify them, and definitions replace those of the same name. Comments,
    docstrings and needed imports that the answer lost come back.
    """
    new = _restore_blank_lines(text.lines, _undo_transforms(text.lines, list(new_lines)))
    left_out = [index for index, line in enumerate(new) if is_elision(line) and line not in text.lines]
    if left_out:
        filled = _fill_omissions(text.lines, new)
        if isinstance(filled, str):
            return filled
        new = filled
    if reason := _find_commented_omission(text.lines, new):
        return reason
    if code is not None:
        new = code.restore_documentation(text.lines, code.restore_imports(text.lines, new))
    fault = _explain_incompleteness(text.lines, new, code)
    if fault:
        parts = code.replace_definitions(text.lines, new) if code and not left_out else fault
        return (EditFit.node, parts) if isinstance(parts, list) else fault
    return (EditFit.realign if left_out else EditFit.exact), _build_spans(text.lines, new)


def _find_commented_omission(old: Sequence[str], new: Sequence[str]) -> str:
    """Return which lines are missing because only a comment about them replaces them; empty if none are."""
    old_lines = set(old)
    if not any(is_possible_elision(line) and line not in old_lines for line in new):
        return ""
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed_count = sum(bool(line.strip()) for line in old[a:b])
        added = [line for line in new[c:d] if line.strip()]
        if (
            tag == "replace"
            and removed_count > 1
            and len(added) == 1
            and added[0] not in old_lines
            and is_possible_elision(added[0])
        ):
            return f"{removed_count} lines from line {a + 1} on are not in it, only the comment: {added[0].strip()}"
    return ""


def _build_spans(old: Sequence[str], new: Sequence[str]) -> list[LineReplacement]:
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [LineReplacement(a, b, tuple(new[c:d])) for tag, a, b, c, d in codes if tag != "equal"]


def _restore_blank_lines(old: Sequence[str], new: list[str]) -> list[str]:
    """Restore the file's empty lines at both ends, and its trailing whitespace if the answer has none at all."""
    while new and not new[-1].strip():
        new.pop()
    while new and not new[0].strip():
        new.pop(0)
    head = next((index for index, line in enumerate(old) if line.strip()), 0)
    tail = next((index for index, line in enumerate(reversed(old)) if line.strip()), 0)
    if not any(line != line.rstrip() for line in new) and any(line != line.rstrip() for line in old):
        stripped = [line.rstrip() for line in old]
        for block in difflib.SequenceMatcher(None, stripped, new, autojunk=False).get_matching_blocks():
            new[block.b : block.b + block.size] = old[block.a : block.a + block.size]
    return [*old[:head], *new, *(old[len(old) - tail :] if tail else ())]


def _undo_transforms(old: Sequence[str], new: list[str]) -> list[str]:
    """Undo changes of indentation (tabs against spaces) and of transport that make more lines match the file."""
    old_lines = {line for line in old if line.strip()}
    best = new
    tabs = any(get_indentation(line).startswith("\t") for line in old)
    tabs_differ = tabs != any(get_indentation(line).startswith("\t") for line in new)
    for transform in (*(iterate_tab_conversions() if tabs_differ else ()), *iterate_transport_fixes(new)):
        transformed = [transform(line) or "" for line in new]
        if sum(line in old_lines for line in transformed) > sum(line in old_lines for line in best):
            best = transformed
    return best


def _explain_incompleteness(old: Sequence[str], new: Sequence[str], code: EditedCode | None) -> str:
    non_empty = [line for line in old if line.strip()]
    if _all_lines_differ(non_empty, new):
        return "nearly all of its lines differ from the file's in blanks or in what stands before them"
    if len(non_empty) <= SMALL and len(non_empty) < 2 * len(new):
        return ""
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    kept_count = sum(bool(line.strip()) for tag, a, b, _, _ in codes if tag == "equal" for line in old[a:b])
    is_small = len(non_empty) <= SMALL_PROGRAM and kept_count >= 0.2 * len(non_empty)
    rewrite = is_small and code is not None and code.has_all_names(old, new)
    if kept_count < 0.5 * len(non_empty) and not rewrite:
        return f"only {kept_count} of the file's {len(non_empty)} lines are in it: it is not the whole file"
    for (tag, a, b, c, d), description in (
        (codes[-1], "ends early: the file's last"),
        (codes[0], "begins late: the first"),
    ):
        lost_count = sum(bool(line.strip()) for line in old[a:b]) - sum(bool(line.strip()) for line in new[c:d])
        if tag != "equal" and lost_count >= END_LOSS_LIMIT_LINES:
            return f"it {description} {lost_count} lines are not in it"
    for tag, a, b, c, d in codes:
        removed_count = sum(bool(line.strip()) for line in old[a:b])
        if tag != "equal" and removed_count > max(30, 0.3 * len(non_empty)) and d - c < removed_count / 3:
            return f"{removed_count} lines from line {a + 1} on are not in it: it is not the whole file"
    return ""


def _all_lines_differ(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether the lines match the file's except for indentation: something changed all of them."""
    new_lines, stripped = set(new), {line.strip() for line in new}
    exact = sum(line in new_lines for line in old)
    return sum(line.strip() in stripped for line in old) > max(2 * exact, 4)


def _fill_omissions(old: Sequence[str], new: Sequence[str]) -> list[str] | str:
    """Fill the omissions of the new text with the file's lines; else return why that is impossible."""
    filled: list[str] = []
    parts = _split_at_omissions(old, new)
    position = 0
    for number, part in enumerate(parts):
        if number:
            start = _find_unique(old, part[:3], position) if part else len(old)
            if start is None:
                return "it leaves lines out, and the lines behind them are not there just once"
            filled += old[position:start]
            position = start
        filled += part
        if number < len(parts) - 1:
            end = _find_unique(old, part[-3:], 0) if part else 0
            if end is None or end + len(part[-3:]) < position:
                return "it leaves lines out, and the lines before them are not there just once"
            position = end + len(part[-3:])
    return filled


def _split_at_omissions(old: Sequence[str], new: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in new:
        if is_elision(line) and line not in old:
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


def _find_unique(old: Sequence[str], lines: Sequence[str], start: int) -> int | None:
    places = [
        index
        for index in range(start, len(old) - len(lines) + 1)
        if all(old[index + n] == line for n, line in enumerate(lines))
    ]
    return places[0] if len(places) == 1 else None
