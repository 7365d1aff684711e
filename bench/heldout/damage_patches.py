"""Damage of apply_patch envelopes and of unified diffs."""

from __future__ import annotations

import json
import random
import re

from heldout.damage_base import (
    Hunk,
    doubled,
    envelope,
    fenced,
    hunks_of,
    made,
    mistaken,
    places,
    shifted,
    steady,
    tabbed,
    unified,
)
from kinds import Expect, Fix, Kind, Made


def _marked(hunks: tuple[Hunk, ...]) -> list[list[str]]:
    """The hunks as an envelope wants them."""
    return [["@@", *hunk.lines] for hunk in hunks]


def _headed(hunks: tuple[Hunk, ...]) -> list[list[str]]:
    """The hunks as a unified diff wants them."""
    return [[hunk.header, *hunk.lines] for hunk in hunks]


def no_begin(fix: Fix, _: random.Random) -> Made | None:
    """The first line of the envelope is missing."""
    hunks = hunks_of(fix)
    return made(fix, envelope(fix.path, _marked(hunks)).partition("\n")[2]) if hunks else None


def no_end(fix: Fix, _: random.Random) -> Made | None:
    """The last line of the envelope is missing; all hunks are there."""
    hunks = hunks_of(fix)
    return made(fix, envelope(fix.path, _marked(hunks)).removesuffix("*** End Patch\n")) if hunks else None


def cut(fix: Fix, rng: random.Random) -> Made | None:
    """The envelope ends within a line that the last change adds."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    lines = list(hunks[-1].lines)
    at = [n for n, line in enumerate(lines) if line[0] == "+" and len(line[1:].strip()) > 5]
    if not at:
        return None
    place = rng.choice(at)
    indent = len(lines[place][1:]) - len(lines[place][1:].lstrip())
    stop = rng.randrange(indent + 3, len(lines[place]))
    kept = [*_marked(hunks[:-1]), ["@@", *lines[:place], lines[place][:stop]]]
    return made(fix, envelope(fix.path, kept).removesuffix("\n*** End Patch\n"))


def heredoc(fix: Fix, rng: random.Random) -> Made | None:
    """The envelope stands in a shell command."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    start = rng.choice(("apply_patch <<'EOF'", "cat <<'EOF' | apply_patch", 'apply_patch << "EOF"'))
    return made(fix, fenced(f"{start}\n{envelope(fix.path, _marked(hunks))}EOF\n", rng.choice(("bash", "sh", ""))))


def as_json(fix: Fix, rng: random.Random) -> Made | None:
    """The envelope is a string in a JSON object, as in a call of a tool."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    body = envelope(fix.path, _marked(hunks))
    call = rng.choice(({"command": ["apply_patch", body]}, {"input": body}, {"name": "apply_patch", "patch": body}))
    return made(fix, json.dumps(call) + "\n")


def blank_context(fix: Fix, _: random.Random) -> Made | None:
    """Empty lines of the context have lost their leading space."""
    hunks = hunks_of(fix)
    if not hunks or not any(line == " " for hunk in hunks for line in hunk.lines):
        return None
    return made(
        fix, envelope(fix.path, [["@@", *("" if line == " " else line for line in hunk.lines)] for hunk in hunks])
    )


def numbers_inside(fix: Fix, rng: random.Random) -> Made | None:
    """Headers of a unified diff in the envelope; their numbers may be wrong."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    by = rng.choice((0, 0, 7, 40))
    return made(fix, envelope(fix.path, [[hunk._replace(start=hunk.start + by).header, *hunk.lines] for hunk in hunks]))


def dotted_path(fix: Fix, rng: random.Random) -> Made | None:
    """A prefix before the path that is not a folder."""
    hunks = hunks_of(fix)
    return made(fix, envelope(rng.choice(("./", "a/", "b/")) + fix.path, _marked(hunks))) if hunks else None


def envelope_each(fix: Fix, _: random.Random) -> Made | None:
    """Every hunk has an envelope of its own, with words between them."""
    hunks = hunks_of(fix)
    if len(hunks) < 2:
        return None
    return made(fix, "\nThen the next place.\n\n".join(envelope(fix.path, _marked((hunk,))) for hunk in hunks))


def last_first(fix: Fix, _: random.Random) -> Made | None:
    """The hunks stand in the wrong order."""
    hunks = hunks_of(fix)
    return made(fix, envelope(fix.path, _marked(hunks[::-1]))) if len(hunks) > 1 else None


def anchored(fix: Fix, _: random.Random) -> Made | None:
    """One line of context at most, and the function's first line after the `@@`."""
    hunks = hunks_of(fix)
    lines = fix.old.splitlines()
    parts: list[list[str]] = []
    expect: Expect | None = None
    for hunk in hunks:
        signs = [n for n, line in enumerate(hunk.lines) if line[0] != " "]
        body = list(hunk.lines[max(signs[0] - 1, 0) : signs[-1] + 2])
        old = [line[1:] for line in body if line[0] != "+"]
        start = hunk.start + max(signs[0] - 1, 0)
        depth = min((len(line) - len(line.lstrip()) for line in old if line.strip()), default=0)
        heads = [n for n in range(start) if re.match(r" *(async )?def \w", lines[n])]
        heads = [n for n in heads if len(lines[n]) - len(lines[n].lstrip()) < depth]
        if not heads or not any(line.strip() for line in old) or len(places(lines, [lines[heads[-1]]])) != 1:
            return None
        outer = len(lines[heads[-1]]) - len(lines[heads[-1]].lstrip())
        inner = [line for line in lines[heads[-1] + 1 : start] if line.strip() and line.lstrip()[0] != ")"]
        if any(len(line) - len(line.lstrip()) <= outer for line in inner):
            return None
        if len(places(lines[heads[-1] + 1 :], old)) != 1 or places(fix.new.splitlines(), old):
            expect = "either"
        parts.append([f"@@ {lines[heads[-1]].strip()}", *body])
    return made(fix, envelope(fix.path, parts), expect) if parts else None


def wrong_anchor(fix: Fix, rng: random.Random) -> Made | None:
    """The line after the `@@` is not in the file; the hunk itself fits one place."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    anchor = rng.choice(("def handle_it(self):", "class Worker:", "async def _go_on(value):"))
    if anchor in fix.old:
        return None
    return made(fix, envelope(fix.path, [[f"@@ {anchor}", *hunk.lines] for hunk in hunks]))


def deleted_and_added(fix: Fix, _: random.Random) -> Made | None:
    """The file is deleted and added again with its new content."""
    if not hunks_of(fix):
        return None
    lines = [f"*** Delete File: {fix.path}", f"*** Add File: {fix.path}", *("+" + x for x in fix.new.splitlines())]
    return made(fix, "\n".join(("*** Begin Patch", *lines, "*** End Patch", "")))


def wrong_removal(fix: Fix, rng: random.Random) -> Made | None:
    """One removed line of the envelope was never in the file."""
    hunks = hunks_of(fix)
    parts = _marked(hunks)
    choose = rng.randrange(100)
    for n, hunk in enumerate(hunks):
        if wrong := mistaken(hunk.lines, fix.old, choose):
            parts[n] = ["@@", *wrong]
            return made(fix, envelope(fix.path, parts))
    return None


def diff_wrong_removal(fix: Fix, rng: random.Random) -> Made | None:
    """One removed line of the diff was never in the file."""
    hunks = hunks_of(fix)
    parts = _headed(hunks)
    choose = rng.randrange(100)
    for n, hunk in enumerate(hunks):
        if wrong := mistaken(hunk.lines, fix.old, choose):
            parts[n] = [hunk.header, *wrong]
            return made(fix, unified(fix.path, parts))
    return None


def fence_each(fix: Fix, _: random.Random) -> Made | None:
    """Every hunk stands in a fence of its own with the headers again, and words between them."""
    hunks = hunks_of(fix)
    if len(hunks) < 2:
        return None
    parts = [fenced(unified(fix.path, _headed((hunk,))), "diff") for hunk in hunks]
    return made(fix, "\nAnd further down:\n\n".join(parts))


def moved_right(fix: Fix, rng: random.Random) -> Made | None:
    """The whole diff is moved to the right, headers and all."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    return made(fix, "The change:\n\n" + shifted(unified(fix.path, _headed(hunks)), rng.choice(("  ", "    ", "\t"))))


def extra_space(fix: Fix, _: random.Random) -> Made | None:
    """One more space after every sign."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    parts = [[hunk.header, *(f"{x[0]} {x[1:]}" if x[1:] else x for x in hunk.lines)] for hunk in hunks]
    return made(fix, unified(fix.path, parts))


def diff_tabs(fix: Fix, _: random.Random) -> Made | None:
    """Tabs after the signs where the file has four spaces."""
    hunks = hunks_of(fix)
    if not hunks or not steady(hunks):
        return None
    return made(fix, unified(fix.path, [[hunk.header, *(x[0] + tabbed(x[1:]) for x in hunk.lines)] for hunk in hunks]))


def one_hunk(fix: Fix, _: random.Random) -> Made | None:
    """All hunks run into one another without headers between them."""
    hunks = hunks_of(fix)
    if len(hunks) < 2:
        return None
    return made(fix, unified(fix.path, [[hunks[0].header, *(line for hunk in hunks for line in hunk.lines)]]))


def dots_between(fix: Fix, _: random.Random) -> Made | None:
    """Three dots as a line of context between the hunks, and no header there."""
    hunks = hunks_of(fix)
    if len(hunks) < 2 or re.search(r"^\s*\.\.\.$", fix.old, re.MULTILINE):
        return None
    body = [line for n, hunk in enumerate(hunks) for line in ([" ..."] if n else []) + list(hunk.lines)]
    return made(fix, unified(fix.path, [[hunks[0].header, *body]]))


def backwards(fix: Fix, _: random.Random) -> Made | None:
    """Plus and minus are exchanged: the diff leads from the new content to the old one."""
    hunks = hunks_of(fix)
    if not hunks:
        return None
    sign = {"+": "-", "-": "+", " ": " "}
    turned = [Hunk(h.after, h.start, tuple(sign[line[0]] + line[1:] for line in h.lines)) for h in hunks]
    return made(fix, unified(fix.path, _headed(tuple(turned))))


def half_there(fix: Fix, _: random.Random) -> Made | None:
    """The first hunk is in the file already."""
    hunks = hunks_of(fix)
    if len(hunks) < 2 or len(places(fix.new.splitlines(), hunks[0].new)) != 1:
        return None
    lines = fix.old.splitlines()
    first = hunks[0]
    lines[first.start : first.start + len(first.old)] = first.new
    if any(len(places(lines, hunk.old)) != 1 for hunk in hunks[1:]):
        return None
    return made(fix, unified(fix.path, _headed(hunks)), None, "\n".join(lines) + "\n")


def marked_file(fix: Fix, _: random.Random) -> Made | None:
    """The file has a byte order mark and the diff has none; the file keeps it."""
    hunks = hunks_of(fix)
    return made(fix, unified(fix.path, _headed(hunks)), None, "\ufeff" + fix.old, "\ufeff" + fix.new) if hunks else None


def diff_two_places(fix: Fix, _: random.Random) -> Made | None:
    """No numbers, and the old lines of a hunk stand at two places of the file."""
    found = doubled(fix)
    if not found:
        return None
    hunks, old, wanted = found
    expect = "either" if len(hunks) > 1 else None  # the order of the hunks may tell
    return made(fix, unified(fix.path, [["@@ @@", *hunk.lines] for hunk in hunks]), expect, old, wanted)


def two_places(fix: Fix, _: random.Random) -> Made | None:
    """The old lines of a hunk of the envelope stand at two places of the file."""
    found = doubled(fix)
    if not found:
        return None
    hunks, old, wanted = found
    expect = "either" if len(hunks) > 1 else None
    return made(fix, envelope(fix.path, _marked(tuple(hunks))), expect, old, wanted)


PATCH_KINDS: tuple[Kind, ...] = (
    Kind("ap_no_begin", "reach", no_begin),
    Kind("ap_heredoc", "reach", heredoc),
    Kind("ap_blank_context", "reach", blank_context),
    Kind("ap_numbers_inside", "reach", numbers_inside),
    Kind("ap_dotted_path", "reach", dotted_path),
    Kind("ap_envelope_each", "reach", envelope_each),
    Kind("ap_last_first", "reach", last_first),
    Kind("ap_anchored", "reach", anchored),
    Kind("ap_wrong_anchor", "either", wrong_anchor),
    Kind("ap_no_end", "either", no_end),
    Kind("ap_json", "either", as_json),
    Kind("ap_deleted_and_added", "either", deleted_and_added),
    Kind("ap_cut", "refuse", cut),
    Kind("ap_two_places", "refuse", two_places),
    Kind("ap_wrong_removal", "refuse", wrong_removal),
    Kind("ud_fence_each", "reach", fence_each),
    Kind("ud_moved_right", "reach", moved_right),
    Kind("ud_extra_space", "reach", extra_space),
    Kind("ud_tabs", "reach", diff_tabs),
    Kind("ud_bom_file", "reach", marked_file),
    Kind("ud_one_hunk", "either", one_hunk),
    Kind("ud_dots_between", "either", dots_between),
    Kind("ud_half_there", "either", half_there),
    Kind("ud_wrong_removal", "refuse", diff_wrong_removal),
    Kind("ud_backwards", "refuse", backwards),
    Kind("ud_two_places", "refuse", diff_two_places),
)
