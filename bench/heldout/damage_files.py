"""Damage of whole files."""

from __future__ import annotations

import difflib
import random

from heldout.damage_base import fenced, grouped, made, shifted, sound
from kinds import Fix, Kind, Made

EXAMPLE = '\n\nEXAMPLE = """\nUse it so:\n\n```python\nrun()\n```\n\nand no other way.\n"""\n'
NOTES = (
    "# ... the rest of the file is unchanged ...",
    "# ... existing code ...",
    "# (other functions unchanged)",
)


def _usable(fix: Fix) -> bool:
    return sound(fix) and "```" not in fix.old + fix.new and "~~~" not in fix.old + fix.new


def crlf(fix: Fix, _: random.Random) -> Made | None:
    """The whole answer has CRLF; the file has LF and keeps it."""
    if not _usable(fix):
        return None
    return made(fix, f"{fix.path}\n{fenced(fix.new, 'python')}".replace("\n", "\r\n"))


def bom_and_crlf(fix: Fix, _: random.Random) -> Made | None:
    """The file has a byte order mark and CRLF, the answer neither; the file keeps both."""
    if not _usable(fix):
        return None
    old, wanted = ("\ufeff" + text.replace("\n", "\r\n") for text in (fix.old, fix.new))
    return made(fix, f"{fix.path}\n{fenced(fix.new, 'python')}", None, old, wanted)


def no_last_break(fix: Fix, _: random.Random) -> Made | None:
    """The file ends without a line break and keeps that; a fence cannot show it."""
    if not _usable(fix) or fix.old.endswith("\n\n") or fix.new.endswith("\n\n"):
        return None
    answer = f"{fix.path}\n{fenced(fix.new, 'python')}"
    return made(fix, answer, None, fix.old.removesuffix("\n"), fix.new.removesuffix("\n"))


def long_fence(fix: Fix, rng: random.Random) -> Made | None:
    """The file holds a fence, and the fence around it is longer or of another sign."""
    if not _usable(fix):
        return None
    mark = rng.choice(("````", "~~~", "``````"))
    answer = f"{fix.path}\n{fenced(fix.new + EXAMPLE, 'python', mark)}"
    return made(fix, answer, None, fix.old + EXAMPLE, fix.new + EXAMPLE)


def inner_fence(fix: Fix, _: random.Random) -> Made | None:
    """The file holds a fence, and the fence around it is the same."""
    if not _usable(fix):
        return None
    answer = f"{fix.path}\n{fenced(fix.new + EXAMPLE, 'python')}"
    return made(fix, answer, None, fix.old + EXAMPLE, fix.new + EXAMPLE)


def excerpt_before(fix: Fix, _: random.Random) -> Made | None:
    """A short excerpt of the old file stands in a fence of its own before the answer."""
    if not _usable(fix):
        return None
    excerpt = "\n".join(grouped(fix, 2)[0].old) + "\n"
    answer = f"The fault is in these lines:\n\n{fenced(excerpt, 'python')}\nThis is the whole corrected file.\n\n"
    return made(fix, f"{answer}{fix.path}\n{fenced(fix.new, 'python')}")


def usage_after(fix: Fix, rng: random.Random) -> Made | None:
    """The answer is followed by a command to try."""
    if not _usable(fix):
        return None
    info, words = rng.choice((("bash", "python -m pytest -q"), ("", "$ make test"), ("console", "$ tox -q")))
    tail = f"\nTo check the change:\n\n{fenced(words + chr(10), info)}\nNothing else had to be touched.\n"
    return made(fix, f"{fix.path}\n{fenced(fix.new, 'python')}{tail}")


def in_a_list(fix: Fix, rng: random.Random) -> Made | None:
    """Path, fence and content stand below a point of a list, moved to the right as a whole."""
    if not _usable(fix):
        return None
    by = rng.choice(("  ", "   ", "    "))
    if any(line and not line.strip() for line in fix.new.splitlines()):
        return None
    return made(fix, "1. The corrected file:\n\n" + shifted(f"{fix.path}\n{fenced(fix.new, 'python')}", by))


def path_as_comment(fix: Fix, _: random.Random) -> Made | None:
    """No line with the path; it is a comment at the top of the content."""
    if not _usable(fix) or fix.new.startswith("#!"):
        return None
    return made(fix, "Here is the corrected file.\n\n" + fenced(f"# {fix.path}\n{fix.new}", "python"))


def numbered(fix: Fix, rng: random.Random) -> Made | None:
    """Every line of the content has its number in front."""
    if not _usable(fix):
        return None
    shape = rng.choice(("{:>4} | {}", "{:>5}\t{}", "{}: {}"))
    body = "\n".join(shape.format(n, line) for n, line in enumerate(fix.new.splitlines(), 1)) + "\n"
    return made(fix, f"{fix.path}\n{fenced(body, 'python')}")


def elided(fix: Fix, rng: random.Random) -> Made | None:
    """A long part that did not change is left out, with a note in its place."""
    if not _usable(fix):
        return None
    old, new = fix.old.splitlines(), fix.new.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    match = max(matcher.get_matching_blocks(), key=lambda found: found.size)
    if match.size < 30:
        return None
    first, last = match.b + 8, match.b + match.size - 8
    indent = next((line[: len(line) - len(line.lstrip())] for line in new[first:] if line.strip()), "")
    note = rng.choice(NOTES)
    if note in fix.old:
        return None
    body = "\n".join([*new[:first], indent + note, *new[last:]]) + "\n"
    return made(fix, f"{fix.path}\n{fenced(body, 'python')}")


def cut(fix: Fix, rng: random.Random) -> Made | None:
    """The answer ends within the content, and the fence stays open."""
    if not _usable(fix) or len(fix.new) < 200:
        return None
    keep = int(len(fix.new) * rng.uniform(0.3, 0.9))
    return made(fix, f"{fix.path}\n```python\n{fix.new[:keep]}")


FILE_KINDS: tuple[Kind, ...] = (
    Kind("wf_crlf", "reach", crlf),
    Kind("wf_bom_and_crlf", "reach", bom_and_crlf),
    Kind("wf_no_last_break", "reach", no_last_break),
    Kind("wf_long_fence", "reach", long_fence),
    Kind("wf_excerpt_before", "reach", excerpt_before),
    Kind("wf_usage_after", "reach", usage_after),
    Kind("wf_in_a_list", "reach", in_a_list),
    Kind("wf_inner_fence", "either", inner_fence),
    Kind("wf_path_as_comment", "either", path_as_comment),
    Kind("wf_numbered", "either", numbered),
    Kind("wf_elided", "either", elided),
    Kind("wf_cut", "refuse", cut),
)
