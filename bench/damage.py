"""Damaged search/replace blocks, whole files and `apply_patch` envelopes, made from real fixes."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from typing import NamedTuple

from kinds import Expect, Fix, Kind, Made


class Part(NamedTuple):
    """One hunk of the true diff: its lines with their marks, and the heading that git wrote after its numbers."""

    lines: tuple[tuple[str, str], ...]
    heading: str

    @property
    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "-"]


def parse_parts(fix: Fix) -> list[Part]:
    parsed: list[Part] = []
    for hunk in re.split(r"(?m)^(?=@@ )", fix.diff)[1:]:
        header, *body = hunk.removesuffix("\n").split("\n")
        lines = tuple((line[:1] or " ", line[1:]) for line in body if not line.startswith("\\"))
        parsed.append(Part(lines, header.split("@@")[2].strip()))
    return parsed


def count_occurrences(lines: list[str], text: str) -> int:
    """Count how often the lines occur in a text, as complete lines."""
    return ("\n" + text).count("\n" + "\n".join(lines) + "\n")


def block(path: str, old: list[str], new: list[str]) -> str:
    return "\n".join((path, "<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE", ""))


def format_blocks(fix: Fix, change: Callable[[Part], Part] = lambda part: part) -> str | None:
    """Return the fix as blocks; None if a location would not be unique."""
    hunks = parse_parts(fix)
    if any(count_occurrences(part.old, fix.old) != 1 or not part.old for part in hunks):
        return None
    return "\n".join(block(fix.path, changed.old, changed.new) for changed in map(change, hunks))


def map_part(part: Part, change: Callable[[str], str]) -> Part:
    return part._replace(lines=tuple((mark, change(text)) for mark, text in part.lines))


def _build_damage(fix: Fix, answer: str | None, expect: Expect | None = None) -> Made | None:
    return None if answer is None else Made(answer, fix.old, expect, fix.new)


def block_in_prose(fix: Fix, _: random.Random) -> Made | None:
    text = format_blocks(fix)
    if text is None:
        return None
    wrapped = text.replace(fix.path + "\n", f"**`{fix.path}`**\n\n```python\n").replace(
        ">>>>>>> REPLACE", ">>>>>>> REPLACE\n```"
    )
    return _build_damage(fix, f"The cause is an edge case.\n\n{wrapped}\nThis should make the tests pass.\n")


def block_dedented(fix: Fix, _: random.Random) -> Made | None:
    """Move every block as a whole to the left margin."""
    margins = [
        min((len(t) - len(t.lstrip()) for _, t in part.lines if t.strip()), default=0) for part in parse_parts(fix)
    ]
    if not margins or not min(margins):
        return None
    remaining_margins = iter(margins)

    def dedent_part(part: Part) -> Part:
        margin = next(remaining_margins)
        return map_part(part, lambda text: text[margin:])

    return _build_damage(fix, format_blocks(fix, dedent_part))


def block_tabs(fix: Fix, _: random.Random) -> Made | None:
    """The file is indented with tabs, the answer with spaces."""
    if "\t" in fix.old + fix.new or any((len(t) - len(t.lstrip())) % 4 for p in parse_parts(fix) for _, t in p.lines):
        return None
    text = format_blocks(fix)

    def use_tabs(content: str) -> str:
        return re.sub(r"(?m)^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), content)

    return None if text is None else Made(text, use_tabs(fix.old), None, use_tabs(fix.new))


def block_elided(fix: Fix, seeded: random.Random) -> Made | None:
    """Leave out context in the middle of a block on both sides."""
    formatted: list[str] = []
    for part in parse_parts(fix):
        if count_occurrences(part.old, fix.old) != 1:
            return None
        lines = list(part.lines)
        runs = [n for n in range(1, len(lines) - 1) if all(mark == " " for mark, _ in lines[n - 1 : n + 2])]
        if runs:
            lines[seeded.choice(runs)] = (" ", "...")
        elided = part._replace(lines=tuple(lines))
        formatted.append(block(fix.path, elided.old, elided.new))
    return _build_damage(fix, "\n".join(formatted)) if any("\n...\n" in text for text in formatted) else None


def block_typo(fix: Fix, seeded: random.Random) -> Made | None:
    def add_typo(part: Part) -> Part:
        lines = list(part.lines)
        long = [n for n, (mark, text) in enumerate(lines) if mark == " " and len(text.strip()) > 12]
        if long:
            index = seeded.choice(long)
            text = lines[index][1]
            middle = len(text) - len(text.strip()) // 2 - 1
            lines[index] = (" ", text[:middle] + text[middle + 1 :])
        return part._replace(lines=tuple(lines))

    return _build_damage(fix, format_blocks(fix, add_typo))


def block_ambiguous(fix: Fix, seeded: random.Random) -> Made | None:
    """Give only the changed lines, which occur in the file more than once."""
    for part in parse_parts(fix):
        old = [text for mark, text in part.lines if mark == "-"]
        new = [text for mark, text in part.lines if mark == "+"]
        if old and new and count_occurrences(old, fix.old) > 1:
            return _build_damage(fix, block(fix.path, old, new))
    repeated = [line for line in fix.old.split("\n") if line.strip() and count_occurrences([line], fix.old) > 1]
    if not repeated:
        return None
    line = seeded.choice(repeated)
    return _build_damage(fix, block(fix.path, [line], [line + "  # seen"]))


def block_cut(fix: Fix, seeded: random.Random) -> Made | None:
    text = format_blocks(fix)
    return None if text is None else _build_damage(fix, text[: text.rindex(">>>>>>> REPLACE") - seeded.randint(1, 12)])


def block_twice(fix: Fix, _: random.Random) -> Made | None:
    text = format_blocks(fix)
    return None if text is None else Made(text, fix.new, None, fix.new)


def block_stale(fix: Fix, seeded: random.Random) -> Made | None:
    text = format_blocks(fix)
    removed_lines = [
        line for part in parse_parts(fix) for mark, line in part.lines if mark == "-" and len(line.strip()) > 8
    ]
    if text is None or not removed_lines:
        return None
    line = seeded.choice(removed_lines)
    return Made(text, fix.old.replace(line + "\n", line + "  # touched elsewhere\n"), None, fix.new)


def whole_in_prose(fix: Fix, _: random.Random) -> Made | None:
    if re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    return _build_damage(
        fix, f"Here is the whole file:\n\n{fix.path}\n```python\n{fix.new}```\n\nNothing else changes.\n"
    )


def whole_of_windows(fix: Fix, seeded: random.Random) -> Made | None:
    """The file has a byte order mark and Windows line ends, the answer has neither."""
    damaged = whole_in_prose(fix, seeded)
    if damaged is None:
        return None
    old, new = ("\ufeff" + text.replace("\n", "\r\n") for text in (fix.old, fix.new))
    return Made(damaged.answer, old, None, new)


def whole_cut(fix: Fix, seeded: random.Random) -> Made | None:
    """Cut the file in the middle; half of the time the fence is closed anyway."""
    lines = fix.new.split("\n")
    if len(lines) < 20 or re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    content = "\n".join(lines[: seeded.randint(len(lines) // 3, len(lines) - 10)])
    return _build_damage(fix, f"{fix.path}\n```python\n{content}" + seeded.choice(["", "\n```\n"]))


def whole_elided(fix: Fix, _: random.Random) -> Made | None:
    """Far from the change, replace the file's own lines with `# ... existing code ...`."""
    changed = [line for part in parse_parts(fix) for mark, line in part.lines]
    lines = fix.new.split("\n")
    last = max((n for n, line in enumerate(lines) if line in changed and line.strip()), default=0)
    if len(lines) - last < 30 or re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    remaining_lines = [*lines[: last + 6], "# ... existing code ...", *lines[-6:]]
    return _build_damage(fix, f"{fix.path}\n```python\n" + "\n".join(remaining_lines) + "```\n")


def only_function(fix: Fix, _: random.Random) -> Made | None:
    """Give only the one function of the file that changed."""
    try:
        tree = ast.parse(fix.new)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.decorator_list:
            continue
        lines = fix.new.split("\n")
        before, body, after = (
            lines[: node.lineno - 1],
            lines[node.lineno - 1 : node.end_lineno],
            lines[node.end_lineno :],
        )
        old = fix.old.split("\n")
        is_within = old[: len(before)] == before and old[len(old) - len(after) :] == after
        if is_within and len(old) > len(before) + len(after):
            return _build_damage(fix, f"`{fix.path}`:\n\n```python\n" + "\n".join(body) + "\n```\n")
    return None


def _format_envelope(fix: Fix, body: list[str], end: str = "*** End Patch\n") -> str:
    return "\n".join(("*** Begin Patch", f"*** Update File: {fix.path}", *body, end))


def _format_body(fix: Fix, heading: bool = False, context: int = 3) -> list[str] | None:
    lines: list[str] = []
    for part in parse_parts(fix):
        changed = [n for n, (mark, _) in enumerate(part.lines) if mark != " "]
        trimmed = part._replace(lines=part.lines[max(changed[0] - context, 0) : changed[-1] + 1 + context])
        if count_occurrences(trimmed.old, fix.old) != 1 and not (heading and part.heading):
            return None
        lines += [
            f"@@ {part.heading}" if heading and part.heading else "@@",
            *(mark + text for mark, text in trimmed.lines),
        ]
    return lines


def envelope_in_prose(fix: Fix, seeded: random.Random) -> Made | None:
    body = _format_body(fix)
    if body is None:
        return None
    command = "I apply it now.\n\n```sh\napply_patch <<'EOF'\n" + _format_envelope(fix, body) + "EOF\n```\n"
    return _build_damage(fix, seeded.choice([command, _format_envelope(fix, body)]))


def envelope_headings(fix: Fix, _: random.Random) -> Made | None:
    """Give one line of context, and the name of the function that contains it."""
    body = _format_body(fix, heading=True, context=1)
    return None if body is None else _build_damage(fix, _format_envelope(fix, body), "either")


def envelope_cut(fix: Fix, _: random.Random) -> Made | None:
    body = _format_body(fix)
    if body is None:
        return None
    last = max(n for n, line in enumerate(body) if line[:1] in "+-")
    return _build_damage(
        fix,
        "\n".join(_format_envelope(fix, body[:last], end="").rstrip("\n").split("\n"))
        + "\n"
        + body[last][: len(body[last]) // 2],
    )


def envelope_twice(fix: Fix, _: random.Random) -> Made | None:
    body = _format_body(fix)
    return None if body is None else Made(_format_envelope(fix, body), fix.new, None, fix.new)


def envelope_wrong_folder(fix: Fix, seeded: random.Random) -> Made | None:
    body = _format_body(fix)
    misplaced = fix._replace(path=seeded.choice(["/workspace/project/" + fix.path, fix.path.rpartition("/")[2]]))
    return None if body is None else Made(_format_envelope(misplaced, body), fix.old, None, fix.new)


KINDS = (
    Kind("block_in_prose", "reach", block_in_prose),
    Kind("block_dedented", "reach", block_dedented),
    Kind("block_tabs", "reach", block_tabs),
    Kind("block_elided", "either", block_elided),
    Kind("block_typo", "either", block_typo),
    Kind("block_ambiguous", "refuse", block_ambiguous),
    Kind("block_cut", "refuse", block_cut),
    Kind("block_twice", "refuse", block_twice),
    Kind("block_stale", "refuse", block_stale),
    Kind("whole_in_prose", "reach", whole_in_prose),
    Kind("whole_of_windows", "reach", whole_of_windows),
    Kind("whole_cut", "refuse", whole_cut),
    Kind("whole_elided", "either", whole_elided),
    Kind("only_function", "either", only_function),
    Kind("envelope_in_prose", "reach", envelope_in_prose),
    Kind("envelope_headings", "either", envelope_headings),
    Kind("envelope_cut", "refuse", envelope_cut),
    Kind("envelope_twice", "refuse", envelope_twice),
    Kind("envelope_wrong_folder", "either", envelope_wrong_folder),
)
