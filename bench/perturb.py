"""Damaged unified diffs: true diffs as weak models garble them, 20 kinds, deterministic by seed.

A fix is a mapping with `path`, `old`, `new` and `diff`. Each kind returns the diff, the file's content before, and what
a good applier must do: `new` (reach the true result), `new_crlf` (reach it, with the file's Windows line endings),
`reject` (refuse and leave the file unchanged) or `any` (refuse or reach it, and nothing else).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_HEADER = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$", re.MULTILINE)

Fix = Mapping[str, str]


class Damaged(NamedTuple):
    diff: str
    old: str
    expect: str


def exact(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(fix["diff"], fix["old"], "new")


def shift_lines(fix: Fix, seeded: random.Random) -> Damaged:
    offset = seeded.choice([-9, 7, 37, 120])

    def shift_header(header: re.Match[str]) -> str:
        old, new = max(1, int(header[1]) + offset), max(1, int(header[3]) + offset)
        return f"@@ -{old},{header[2] or 1} +{new},{header[4] or 1} @@{header[5]}"

    return Damaged(_HEADER.sub(shift_header, fix["diff"]), fix["old"], "new")


def wrong_counts(fix: Fix, seeded: random.Random) -> Damaged:
    def change_counts(header: re.Match[str]) -> str:
        old = int(header[2] or 1) + seeded.choice([-1, 1, 2])
        new = int(header[4] or 1) + seeded.choice([-2, 1, 3])
        return f"@@ -{header[1]},{old} +{header[3]},{new} @@{header[5]}"

    return Damaged(_HEADER.sub(change_counts, fix["diff"]), fix["old"], "new")


def no_numbers(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(_HEADER.sub("@@ ... @@", fix["diff"]), fix["old"], "new")


def no_prefix(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(fix["diff"].replace("--- a/", "--- ").replace("+++ b/", "+++ "), fix["old"], "new")


def fenced_prose(fix: Fix, _: random.Random) -> Damaged:
    intro = "Sure! The bug is an edge case. Here is the fix:\n\n```diff\n"
    return Damaged(f"{intro}{fix['diff']}```\n\nThis change makes the test pass.\n", fix["old"], "new")


def git_header(fix: Fix, _: random.Random) -> Damaged:
    header = f"diff --git a/{fix['path']} b/{fix['path']}\nindex 1234567..89abcdef 100644\n"
    return Damaged(header + fix["diff"], fix["old"], "new")


def crlf_diff(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(fix["diff"].replace("\n", "\r\n"), fix["old"], "new")


def crlf_file(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(fix["diff"], fix["old"].replace("\n", "\r\n"), "new_crlf")


def blank_ctx(fix: Fix, _: random.Random) -> Damaged:
    lines = ("" if line == " " else line for line in fix["diff"].split("\n"))
    return Damaged("\n".join(lines), fix["old"], "new")


def rstrip(fix: Fix, _: random.Random) -> Damaged:
    return Damaged("\n".join(line.rstrip() for line in fix["diff"].split("\n")), fix["old"], "new")


def dedent(fix: Fix, _: random.Random) -> Damaged:
    dedented: list[str] = []
    for line in fix["diff"].split("\n"):
        in_hunk = line[:1] in " +-" and not line.startswith(("---", "+++"))
        dedented.append(line[0] + line[5:] if in_hunk and line[1:5] == "    " else line)
    body = [line for line in fix["diff"].split("\n")[2:] if line[:1] in " +-" and line[1:].strip()]
    uniform = all(line[1:5] == "    " for line in body)
    return Damaged("\n".join(dedented), fix["old"], "new" if uniform else "any")


def lost_space(fix: Fix, _: random.Random) -> Damaged:
    lines = (line[1:] if line.startswith(" ") and line.strip() else line for line in fix["diff"].split("\n"))
    return Damaged("\n".join(lines), fix["old"], "any")


def less_context(fix: Fix, _: random.Random) -> Damaged:
    head, *hunks = re.split(r"(?m)^(?=@@ )", fix["diff"])
    trimmed: list[str] = []
    for hunk in hunks:
        header, *body = hunk.split("\n")
        if body and body[-1] == "":
            body = body[:-1]
        changed = [number for number, line in enumerate(body) if line[:1] in "+-"]
        trimmed.append("\n".join([header, *body[max(0, changed[0] - 1) : changed[-1] + 2]]) + "\n")
    return Damaged(head + "".join(trimmed), fix["old"], "any")


def drop_context(fix: Fix, _: random.Random) -> Damaged:
    lines = fix["diff"].split("\n")
    context = [number for number, line in enumerate(lines) if line.startswith(" ") and line.strip()]
    if len(context) > 2:
        del lines[context[len(context) // 2]]
    return Damaged("\n".join(lines), fix["old"], "any")


def typo_context(fix: Fix, seeded: random.Random) -> Damaged:
    lines = fix["diff"].split("\n")
    context = [number for number, line in enumerate(lines) if line.startswith(" ") and len(line.strip()) > 12]
    if context:
        index = seeded.choice(context)
        lines[index] = lines[index].rstrip()[:-1] + ("x" if lines[index][-1] != "x" else "y")
    return Damaged("\n".join(lines), fix["old"], "any")


def wrong_path(fix: Fix, _: random.Random) -> Damaged:
    name = fix["path"].split("/")[-1]
    diff = fix["diff"].replace("a/" + fix["path"], "a/" + name).replace("b/" + fix["path"], "b/" + name)
    return Damaged(diff, fix["old"], "any")


def truncated(fix: Fix, _: random.Random) -> Damaged:
    lines = fix["diff"].rstrip("\n").split("\n")
    changed = [number for number, line in enumerate(lines) if number > 2 and line[:1] in "+-"]
    cut_index = changed[len(changed) // 2] if len(changed) > 1 else changed[0]
    partial = lines[cut_index][: max(1, len(lines[cut_index]) // 2)]
    return Damaged("\n".join(lines[:cut_index]) + "\n" + partial, fix["old"], "reject")


def twice(fix: Fix, _: random.Random) -> Damaged:
    return Damaged(fix["diff"], fix["new"], "reject")


def stale(fix: Fix, _: random.Random) -> Damaged:
    """Someone else changed the lines: those to remove are no longer there."""
    body = fix["diff"].split("\n")[2:]
    removed = [line[1:] for line in body if line.startswith("-") and len(line.strip()) > 8]
    old = fix["old"]
    if removed:
        old = old.replace(removed[0] + "\n", removed[0].rstrip() + "  # touched elsewhere\n")
    return Damaged(fix["diff"], old, "reject" if removed and old != fix["old"] else "new")


_KINDS = (
    *(exact, shift_lines, wrong_counts, no_numbers, no_prefix, fenced_prose, git_header, crlf_diff, crlf_file),
    *(blank_ctx, rstrip, dedent, lost_space, less_context, drop_context, typo_context, wrong_path, truncated),
    *(twice, stale),
)

ALL: dict[str, Callable[[Fix, random.Random], Damaged]] = {kind.__name__: kind for kind in _KINDS}
