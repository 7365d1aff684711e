"""Damage of search/replace blocks."""

from __future__ import annotations

import html
import random
import re

from heldout.damage_base import (
    block,
    blocks,
    doubled,
    fenced,
    grouped,
    hunks_of,
    made,
    places,
    shifted,
    steady,
    tabbed,
)
from kinds import Fix, Kind, Made

ELLIPSES = ("...", "# ... existing code ...", "# (unchanged)", "# ... rest stays as it is ...")
QUOTES = str.maketrans({"'": "\u2019", '"': "\u201d"})


def short_markers(fix: Fix, rng: random.Random) -> Made | None:
    """Markers that are a little too short or too long."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    left, middle, right = (rng.choice((5, 6, 8, 9)) for _ in range(3))
    answer = blocks(fix, hunks)
    answer = answer.replace("<<<<<<< SEARCH", "<" * left + " SEARCH").replace("\n=======\n", "\n" + "=" * middle + "\n")
    return made(fix, answer.replace(">>>>>>> REPLACE", ">" * right + " REPLACE"))


def other_labels(fix: Fix, rng: random.Random) -> Made | None:
    """Markers with the labels of another tool."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    before, after = rng.choice((("ORIGINAL", "UPDATED"), ("search", "replace"), ("SEARCH:", "REPLACE:")))
    answer = blocks(fix, hunks).replace("<<<<<<< SEARCH", f"<<<<<<< {before}")
    return made(fix, answer.replace(">>>>>>> REPLACE", f">>>>>>> {after}"))


def signs_inside(fix: Fix, _: random.Random) -> Made | None:
    """Minus signs before all searched lines and plus signs before all new ones."""
    hunks = hunks_of(fix)
    if not hunks or any(line.startswith(("+", "-")) for hunk in hunks for line in hunk.old + hunk.new):
        return None
    parts = [block(fix.path, ["-" + line for line in hunk.old], ["+" + line for line in hunk.new]) for hunk in hunks]
    return made(fix, "\n".join(parts))


def in_a_list(fix: Fix, rng: random.Random) -> Made | None:
    """Blocks below a point of a list, moved to the right as a whole."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    by = rng.choice(("  ", "   ", "    "))
    parts = [f"{n}. Change this place:\n\n" + shifted(blocks(fix, [hunk]), by) for n, hunk in enumerate(hunks, 1)]
    return made(fix, "\n".join(parts))


def path_in_fence(fix: Fix, rng: random.Random) -> Made | None:
    """The path stands in the fence's first line instead of on a line of its own."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    info = rng.choice(("python {}", "python:{}", "{}", "python title={}")).format(fix.path)
    parts = [fenced(block(fix.path, hunk.old, hunk.new).partition("\n")[2], info) for hunk in hunks]
    return made(fix, "\n".join(parts), "either" if "title" in info else None)


def tabs(fix: Fix, _: random.Random) -> Made | None:
    """Tabs where the file has four spaces."""
    hunks = hunks_of(fix)
    if not hunks or not steady(hunks) or "\t" in fix.old:
        return None
    parts = [block(fix.path, [*map(tabbed, hunk.old)], [*map(tabbed, hunk.new)]) for hunk in hunks]
    return made(fix, "\n".join(parts))


def numbered(fix: Fix, rng: random.Random) -> Made | None:
    """Line numbers copied from a viewer, on both sides."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    shape = rng.choice(("{:>4} | {}", "{}: {}", "{:>6}\t{}"))
    parts: list[str] = []
    for hunk in hunks:
        old = [shape.format(n, line) for n, line in enumerate(hunk.old, hunk.start + 1)]
        new = [shape.format(n, line) for n, line in enumerate(hunk.new, hunk.start + 1)]
        parts.append(block(fix.path, old, new))
    return made(fix, "\n".join(parts))


def elided(fix: Fix, rng: random.Random) -> Made | None:
    """The middle of the searched text is left out, on both sides at the same place."""
    if not hunks_of(fix):
        return None
    lines = fix.old.splitlines()
    mark = rng.choice(ELLIPSES)
    if any(line.strip() == mark for line in fix.old.splitlines() + fix.new.splitlines()):
        return None
    parts: list[str] = []
    for hunk in grouped(fix, 13):
        first = next(n for n, line in enumerate(hunk.lines) if line[0] != " ")
        if first < 9 or not hunk.lines[0].strip() or not any(line.strip() for line in hunk.old[first - 3 :]):
            return None
        if len(places(lines, hunk.old[:2])) != 1 or len(places(lines, hunk.old[first - 3 :])) != 1:
            return None
        gap = re.match(" *", hunk.old[first - 4])[0] + mark  # pyright: ignore
        old = [*hunk.old[:2], gap, *hunk.old[first - 3 :]]
        parts.append(block(fix.path, old, [*hunk.new[:2], gap, *hunk.new[first - 3 :]]))
    return made(fix, "\n".join(parts))


def escaped(fix: Fix, _: random.Random) -> Made | None:
    """The whole answer went through an escape for HTML."""
    hunks = hunks_of(fix)
    return made(fix, html.escape(blocks(fix, hunks))) if hunks else None


def curly_quotes(fix: Fix, _: random.Random) -> Made | None:
    """Typographic quotes in place of the straight ones."""
    hunks = hunks_of(fix)
    if not hunks or not all(re.search("['\"]", "\n".join(hunk.old)) for hunk in hunks):
        return None
    parts = [
        block(fix.path, [line.translate(QUOTES) for line in hunk.old], [line.translate(QUOTES) for line in hunk.new])
        for hunk in hunks
    ]
    return made(fix, "\n".join(parts))


def turned(fix: Fix, _: random.Random) -> Made | None:
    """The new lines stand in the SEARCH part and the old ones in the REPLACE part."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    return made(fix, "\n".join(block(fix.path, hunk.new, hunk.old) for hunk in hunks))


def cut(fix: Fix, rng: random.Random) -> Made | None:
    """The answer ends within the last REPLACE part."""
    hunks = hunks_of(fix)
    if not hunks or not any(line.strip() for line in hunks[-1].new):
        return None
    head, _, tail = blocks(fix, hunks).rpartition("\n=======\n")
    tail = tail.removesuffix(">>>>>>> REPLACE\n").rstrip("\n")
    keep = rng.randrange(1, len(tail) + 1)
    return made(fix, f"{head}\n=======\n{tail[:keep]}", "either" if keep == len(tail) else None)


def two_places(fix: Fix, _: random.Random) -> Made | None:
    """The searched lines stand at two places of the file."""
    found = doubled(fix)
    if not found:
        return None
    hunks, old, wanted = found
    return made(fix, blocks(fix, hunks), None, old, wanted)


BLOCK_KINDS: tuple[Kind, ...] = (
    Kind("sr_short_markers", "reach", short_markers),
    Kind("sr_other_labels", "reach", other_labels),
    Kind("sr_signs_inside", "reach", signs_inside),
    Kind("sr_in_a_list", "reach", in_a_list),
    Kind("sr_path_in_fence", "reach", path_in_fence),
    Kind("sr_tabs", "reach", tabs),
    Kind("sr_numbered", "either", numbered),
    Kind("sr_elided", "either", elided),
    Kind("sr_html", "either", escaped),
    Kind("sr_curly_quotes", "either", curly_quotes),
    Kind("sr_turned", "refuse", turned),
    Kind("sr_cut", "refuse", cut),
    Kind("sr_two_places", "refuse", two_places),
)
