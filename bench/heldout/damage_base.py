"""What the kinds of damage share: the hunks of a fix, and guards that keep the truth about an answer certain."""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kinds import Expect, Fix, Made

MARKS = ("<<<<", ">>>>", "====", "```", "~~~", "*** ", "@@", "diff --git", "--- ", "+++ ")
"""Starts of lines that one of the formats could take for its own."""


class Hunk(NamedTuple):
    """Neighbouring changes with their context; every line carries its sign and no line break."""

    start: int
    """The index of the first old line."""
    after: int
    """The index of the first new line."""
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        """The lines before, without signs."""
        return [line[1:] for line in self.lines if line[0] != "+"]

    @property
    def new(self) -> list[str]:
        """The lines after, without signs."""
        return [line[1:] for line in self.lines if line[0] != "-"]

    @property
    def header(self) -> str:
        """The header of a unified diff."""
        return f"@@ -{self.start + 1},{len(self.old)} +{self.after + 1},{len(self.new)} @@"


def places(lines: Sequence[str], part: Sequence[str]) -> list[int]:
    """Where the part stands in the lines, whatever the whitespace at both ends of each line is."""
    inner, outer = [line.strip() for line in part], [line.strip() for line in lines]
    return [at for at in range(len(outer) - len(inner) + 1) if outer[at : at + len(inner)] == inner]


def grouped(fix: Fix, context: int) -> list[Hunk]:
    """The hunks of a fix with so many lines of context."""
    old, new = fix.old.splitlines(), fix.new.splitlines()
    found: list[Hunk] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [" " + line for line in old[i1:i2]]
            else:
                lines += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
        found.append(Hunk(group[0][1], group[0][3], tuple(lines)))
    return found


def certain(fix: Fix, hunks: list[Hunk]) -> bool:
    """Whether the hunks, one after the other, each fit one place only and give the new content."""
    now = fix.old.splitlines()
    for hunk in hunks:
        at = places(now, hunk.old)
        if len(at) != 1 or len(places(fix.old.splitlines(), hunk.old)) != 1:
            return False
        if not any(line.strip() for line in hunk.old) or places(fix.old.splitlines(), hunk.new):
            return False
        if now[at[0] : at[0] + len(hunk.old)] != hunk.old:
            return False
        now[at[0] : at[0] + len(hunk.old)] = hunk.new
    return now == fix.new.splitlines()


@lru_cache(maxsize=1024)
def sound(fix: Fix) -> bool:
    """Whether the fix is plain text whose lines mean the same to everyone, and Python before and after."""
    for text in (fix.old, fix.new):
        if not text.endswith("\n") or text.split("\n")[:-1] != text.splitlines() or text.startswith("\ufeff"):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return fix.old != fix.new


@lru_cache(maxsize=1024)
def hunks_of(fix: Fix) -> tuple[Hunk, ...]:
    """Hunks with the least context that makes each of them certain; nothing if there is none."""
    if not sound(fix):
        return ()
    for context in (3, 4, 6, 9, 13):
        hunks = grouped(fix, context)
        if hunks and certain(fix, hunks):
            marked = any(line[1:].lstrip().startswith(MARKS) for hunk in hunks for line in hunk.lines)
            return () if marked else tuple(hunks)
    return ()


def doubled(fix: Fix) -> tuple[list[Hunk], str, str] | None:
    """Hunks of which one fits two places, for a file with a second copy of the changed function or class.

    Gives the hunks, the file's content and the content that the author meant.
    """
    if not hunks_of(fix):
        return None
    lines, hunks = fix.old.splitlines(), list(hunks_of(fix))
    for place, hunk in enumerate(hunks):
        signs = [n for n, line in enumerate(hunk.lines) if line[0] != " "]
        small = hunk.lines[max(signs[0] - 2, 0) : signs[-1] + 3]
        start = hunk.start + max(signs[0] - 2, 0)
        old = [line[1:] for line in small if line[0] != "+"]
        for node in ast.parse(fix.old).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            first, last = node.lineno, node.end_lineno or 0
            if not (first <= start and start + len(old) <= last) or not any(len(line.strip()) > 3 for line in old):
                continue
            copy = lines[first - 1 : last]
            copy[0] = re.sub(rf"\b{node.name}\b", f"{node.name}_again", copy[0], count=1)
            tail = "\n\n" + "\n".join(copy) + "\n"
            hunks[place] = Hunk(start, hunk.after + start - hunk.start, tuple(small))
            content = fix.old + tail
            exact = content.splitlines()
            if sum(exact[n : n + len(old)] == old for n in range(len(exact))) < 2:
                return None
            return hunks, content, fix.new + tail
    return None


def block(path: str, old: Sequence[str], new: Sequence[str]) -> str:
    """A search/replace block as the prompt asks for it."""
    lines = [path, "<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE"]
    return "\n".join(lines) + "\n"


def blocks(fix: Fix, hunks: Sequence[Hunk]) -> str:
    """All hunks as search/replace blocks."""
    return "\n".join(block(fix.path, hunk.old, hunk.new) for hunk in hunks)


def envelope(path: str, hunks: Sequence[Sequence[str]]) -> str:
    """An apply_patch envelope; every hunk begins with its own `@@` line."""
    lines = ["*** Begin Patch", f"*** Update File: {path}", *(line for hunk in hunks for line in hunk), "*** End Patch"]
    return "\n".join(lines) + "\n"


def unified(path: str, hunks: Sequence[Sequence[str]]) -> str:
    """A unified diff; every hunk begins with its own header."""
    lines = [f"--- a/{path}", f"+++ b/{path}", *(line for hunk in hunks for line in hunk)]
    return "\n".join(lines) + "\n"


def fenced(text: str, info: str = "", mark: str = "```") -> str:
    """The text in a fence."""
    return f"{mark}{info}\n{text}{mark}\n"


def shifted(text: str, by: str = "    ") -> str:
    """Every line that is not empty, moved to the right."""
    return "".join(by + line if line.strip("\n") else line for line in text.splitlines(keepends=True))


def made(
    fix: Fix, answer: str, expect: Expect | None = None, old: str | None = None, wanted: str | None = None
) -> Made:
    """An answer with the fix's own truth, unless another one is given."""
    return Made(answer, fix.old if old is None else old, expect, fix.new if wanted is None else wanted)


def tabbed(line: str) -> str:
    """The line with tabs for every four leading spaces."""
    body = line.lstrip(" ")
    depth = len(line) - len(body)
    return "\t" * (depth // 4) + " " * (depth % 4) + body


def steady(hunks: Sequence[Hunk]) -> bool:
    """Whether all lines are indented by a multiple of four and every hunk has an indented old line with words."""
    lines = [line[1:] for hunk in hunks for line in hunk.lines if line[1:].strip()]
    if any((len(line) - len(line.lstrip(" "))) % 4 or "\t" in line for line in lines):
        return False
    return all(any(line.startswith("    ") and line.strip() for line in hunk.old) for hunk in hunks)


def mistaken(lines: Sequence[str], old: str, choose: int) -> list[str] | None:
    """The hunk with one removed line that never was in the file; None if nothing is removed."""
    at = [n for n, line in enumerate(lines) if line[0] == "-" and len(line.strip("- ()[]{}:,")) > 8]
    if not at:
        return None
    place = at[choose % len(at)]
    line = lines[place]
    words = [
        word for word in dict.fromkeys(line[1:].replace("(", " ").replace(".", " ").split()) if word.isidentifier()
    ]
    words = [word for word in words if len(word) > 3]
    if not words:
        return None
    wrong = line.replace(words[-1], words[-1] + "_value", 1)
    if wrong[1:].strip() in {known.strip() for known in old.splitlines()}:
        return None
    return [*lines[:place], wrong, *lines[place + 1 :]]
