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


def parts(fix: Fix) -> list[Part]:
    made: list[Part] = []
    for hunk in re.split(r"(?m)^(?=@@ )", fix.diff)[1:]:
        header, *body = hunk.removesuffix("\n").split("\n")
        marked = tuple((line[:1] or " ", line[1:]) for line in body if not line.startswith("\\"))
        made.append(Part(marked, header.split("@@")[2].strip()))
    return made


def times(lines: list[str], text: str) -> int:
    """Count how often the lines occur in a text, as complete lines."""
    return ("\n" + text).count("\n" + "\n".join(lines) + "\n")


def block(path: str, old: list[str], new: list[str]) -> str:
    return "\n".join((path, "<<<<<<< SEARCH", *old, "=======", *new, ">>>>>>> REPLACE", ""))


def blocks(fix: Fix, change: Callable[[Part], Part] = lambda part: part) -> str | None:
    """Return the fix as blocks; None if a location would not be unique."""
    made = parts(fix)
    if any(times(part.old, fix.old) != 1 or not part.old for part in made):
        return None
    return "\n".join(block(fix.path, changed.old, changed.new) for changed in map(change, made))


def mapped(part: Part, change: Callable[[str], str]) -> Part:
    return part._replace(lines=tuple((mark, change(text)) for mark, text in part.lines))


def _made(fix: Fix, answer: str | None, expect: Expect | None = None) -> Made | None:
    return None if answer is None else Made(answer, fix.old, expect, fix.new)


def block_in_prose(fix: Fix, _: random.Random) -> Made | None:
    text = blocks(fix)
    if text is None:
        return None
    wrapped = text.replace(fix.path + "\n", f"**`{fix.path}`**\n\n```python\n").replace(
        ">>>>>>> REPLACE", ">>>>>>> REPLACE\n```"
    )
    return _made(fix, f"The cause is an edge case.\n\n{wrapped}\nThis should make the tests pass.\n")


def block_dedented(fix: Fix, _: random.Random) -> Made | None:
    """Move every block as a whole to the left margin."""
    margins = [min((len(t) - len(t.lstrip()) for _, t in part.lines if t.strip()), default=0) for part in parts(fix)]
    if not margins or not min(margins):
        return None
    left = iter(margins)

    def moved(part: Part) -> Part:
        margin = next(left)
        return mapped(part, lambda text: text[margin:])

    return _made(fix, blocks(fix, moved))


def block_tabs(fix: Fix, _: random.Random) -> Made | None:
    """The file is indented with tabs, the answer with spaces."""
    if "\t" in fix.old + fix.new or any((len(t) - len(t.lstrip())) % 4 for p in parts(fix) for _, t in p.lines):
        return None
    text = blocks(fix)

    def tabbed(content: str) -> str:
        return re.sub(r"(?m)^(?: {4})+", lambda found: "\t" * (len(found[0]) // 4), content)

    return None if text is None else Made(text, tabbed(fix.old), None, tabbed(fix.new))


def block_elided(fix: Fix, seeded: random.Random) -> Made | None:
    """Leave out context in the middle of a block on both sides."""
    made: list[str] = []
    for part in parts(fix):
        if times(part.old, fix.old) != 1:
            return None
        lines = list(part.lines)
        runs = [n for n in range(1, len(lines) - 1) if all(mark == " " for mark, _ in lines[n - 1 : n + 2])]
        if runs:
            lines[seeded.choice(runs)] = (" ", "...")
        cut = part._replace(lines=tuple(lines))
        made.append(block(fix.path, cut.old, cut.new))
    return _made(fix, "\n".join(made)) if any("\n...\n" in text for text in made) else None


def block_typo(fix: Fix, seeded: random.Random) -> Made | None:
    def changed(part: Part) -> Part:
        lines = list(part.lines)
        long = [n for n, (mark, text) in enumerate(lines) if mark == " " and len(text.strip()) > 12]
        if long:
            at = seeded.choice(long)
            text = lines[at][1]
            middle = len(text) - len(text.strip()) // 2 - 1
            lines[at] = (" ", text[:middle] + text[middle + 1 :])
        return part._replace(lines=tuple(lines))

    return _made(fix, blocks(fix, changed))


def block_ambiguous(fix: Fix, seeded: random.Random) -> Made | None:
    """Give only the changed lines, which occur in the file more than once."""
    for part in parts(fix):
        old = [text for mark, text in part.lines if mark == "-"]
        new = [text for mark, text in part.lines if mark == "+"]
        if old and new and times(old, fix.old) > 1:
            return _made(fix, block(fix.path, old, new))
    repeated = [line for line in fix.old.split("\n") if line.strip() and times([line], fix.old) > 1]
    if not repeated:
        return None
    line = seeded.choice(repeated)
    return _made(fix, block(fix.path, [line], [line + "  # seen"]))


def block_cut(fix: Fix, seeded: random.Random) -> Made | None:
    text = blocks(fix)
    return None if text is None else _made(fix, text[: text.rindex(">>>>>>> REPLACE") - seeded.randint(1, 12)])


def block_twice(fix: Fix, _: random.Random) -> Made | None:
    text = blocks(fix)
    return None if text is None else Made(text, fix.new, None, fix.new)


def block_stale(fix: Fix, seeded: random.Random) -> Made | None:
    text = blocks(fix)
    gone = [line for part in parts(fix) for mark, line in part.lines if mark == "-" and len(line.strip()) > 8]
    if text is None or not gone:
        return None
    line = seeded.choice(gone)
    return Made(text, fix.old.replace(line + "\n", line + "  # touched elsewhere\n"), None, fix.new)


def whole_in_prose(fix: Fix, _: random.Random) -> Made | None:
    if re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    return _made(fix, f"Here is the whole file:\n\n{fix.path}\n```python\n{fix.new}```\n\nNothing else changes.\n")


def whole_of_windows(fix: Fix, seeded: random.Random) -> Made | None:
    """The file has a byte order mark and Windows line ends, the answer has neither."""
    made = whole_in_prose(fix, seeded)
    if made is None:
        return None
    old, new = ("\ufeff" + text.replace("\n", "\r\n") for text in (fix.old, fix.new))
    return Made(made.answer, old, None, new)


def whole_cut(fix: Fix, seeded: random.Random) -> Made | None:
    """Cut the file in the middle; half of the time the fence is closed anyway."""
    lines = fix.new.split("\n")
    if len(lines) < 20 or re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    kept = "\n".join(lines[: seeded.randint(len(lines) // 3, len(lines) - 10)])
    return _made(fix, f"{fix.path}\n```python\n{kept}" + seeded.choice(["", "\n```\n"]))


def whole_elided(fix: Fix, _: random.Random) -> Made | None:
    """Far from the change, replace the file's own lines with `# ... existing code ...`."""
    changed = [line for part in parts(fix) for mark, line in part.lines]
    lines = fix.new.split("\n")
    last = max((n for n, line in enumerate(lines) if line in changed and line.strip()), default=0)
    if len(lines) - last < 30 or re.search(r"(?m)^\s{0,3}```", fix.new):
        return None
    kept = [*lines[: last + 6], "# ... existing code ...", *lines[-6:]]
    return _made(fix, f"{fix.path}\n```python\n" + "\n".join(kept) + "```\n")


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
        within = old[: len(before)] == before and old[len(old) - len(after) :] == after
        if within and len(old) > len(before) + len(after):
            return _made(fix, f"`{fix.path}`:\n\n```python\n" + "\n".join(body) + "\n```\n")
    return None


def _envelope(fix: Fix, body: list[str], end: str = "*** End Patch\n") -> str:
    return "\n".join(("*** Begin Patch", f"*** Update File: {fix.path}", *body, end))


def _body(fix: Fix, heading: bool = False, around: int = 3) -> list[str] | None:
    made: list[str] = []
    for part in parts(fix):
        changed = [n for n, (mark, _) in enumerate(part.lines) if mark != " "]
        kept = part._replace(lines=part.lines[max(changed[0] - around, 0) : changed[-1] + 1 + around])
        if times(kept.old, fix.old) != 1 and not (heading and part.heading):
            return None
        made += [
            f"@@ {part.heading}" if heading and part.heading else "@@",
            *(mark + text for mark, text in kept.lines),
        ]
    return made


def envelope_in_prose(fix: Fix, seeded: random.Random) -> Made | None:
    body = _body(fix)
    if body is None:
        return None
    called = "I apply it now.\n\n```sh\napply_patch <<'EOF'\n" + _envelope(fix, body) + "EOF\n```\n"
    return _made(fix, seeded.choice([called, _envelope(fix, body)]))


def envelope_headings(fix: Fix, _: random.Random) -> Made | None:
    """Give one line of context, and the name of the function that contains it."""
    body = _body(fix, heading=True, around=1)
    return None if body is None else _made(fix, _envelope(fix, body), "either")


def envelope_cut(fix: Fix, _: random.Random) -> Made | None:
    body = _body(fix)
    if body is None:
        return None
    last = max(n for n, line in enumerate(body) if line[:1] in "+-")
    return _made(
        fix,
        "\n".join(_envelope(fix, body[:last], end="").rstrip("\n").split("\n"))
        + "\n"
        + body[last][: len(body[last]) // 2],
    )


def envelope_twice(fix: Fix, _: random.Random) -> Made | None:
    body = _body(fix)
    return None if body is None else Made(_envelope(fix, body), fix.new, None, fix.new)


def envelope_wrong_folder(fix: Fix, seeded: random.Random) -> Made | None:
    body = _body(fix)
    wrong = fix._replace(path=seeded.choice(["/workspace/project/" + fix.path, fix.path.rpartition("/")[2]]))
    return None if body is None else Made(_envelope(wrong, body), fix.old, None, fix.new)


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
