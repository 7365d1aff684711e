"""Find the old lines of a hunk in a file, also if one transformation explains all differences of the hunk."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from redstart.toolkit.patching.hunks import STAYS, DiffHunk, HunkLine

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│] ?|[.)] |\t| )")
_TIGHT_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│]|[.)]|\t|(?= ))")


LineTransform = Callable[[str], str | None]
"""Restores a line; None if the transformation does not apply to it."""


def get_indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def shift(old: str, file_line: str) -> LineTransform | None:
    """Return the transformation of the indentation of `old` to that of `file_line`: text added or removed at the
    left."""
    before, after = get_indentation(old), get_indentation(file_line)
    if old[len(before) :].rstrip() != file_line[len(after) :].rstrip() or before == after:
        return None
    if after.endswith(before):
        more = after[: len(after) - len(before)]
        return partial(_push, more=more)
    if before.endswith(after):
        less = before[: len(before) - len(after)]
        return partial(_cut, less=less)
    return None


def iterate_tab_conversions() -> Iterator[LineTransform]:
    """Yield conversions of spaces to tabs and the reverse, at the usual widths."""
    for width in (4, 8, 2):
        yield partial(_convert_to_tabs, width=width)
        yield partial(_convert_to_spaces, width=width)


def adopt_tabs(lines: Sequence[str], hunk: DiffHunk) -> DiffHunk:
    """Indent added lines with tabs if the file uses only tabs and no old line shows the indentation."""
    margins = {get_indentation(line)[:1] for line in lines if line.strip()}
    if margins - {""} != {"\t"} or any(get_indentation(line.text) for line in hunk.old):
        return hunk
    depths = [len(get_indentation(line.text)) for line in hunk.lines if get_indentation(line.text).strip("\t")]
    if not depths or min(depths) not in (2, 4, 8):
        return hunk
    return transform_hunk(hunk, partial(_convert_to_tabs, width=min(depths))) or hunk


def iterate_transport_fixes(lines: Sequence[str]) -> Iterator[LineTransform]:
    """Yield reversals of what a display or a transport did to every line: line numbers, escaped characters."""
    non_empty = [line for line in lines if line.strip()]
    if non_empty and all(_GUTTER.match(line) for line in non_empty):
        yield partial(_GUTTER.sub, "", count=1)
        yield partial(_TIGHT_GUTTER.sub, "", count=1)
    if any(_ENTITY.search(line) for line in non_empty):
        yield html.unescape
    if any(line != line.translate(_CURLY) for line in non_empty):
        yield _straighten_quotes


def find_foreign_characters(lines: Sequence[str], hunk: DiffHunk, new: Sequence[str]) -> str:
    """Return a name for escaped characters or curly quotes in the new lines if the file has none and no old line shows
    that the answer writes such characters plainly; empty otherwise. A transport may have added them.
    """
    new_text = "\n".join(new)
    old = "\n".join(line.text for line in hunk.old)
    file = "\n".join(lines)
    if _ENTITY.search(new_text) and not _ENTITY.search(file) and not any(character in old for character in "<>&"):
        return "escaped characters"
    curly = new_text != _straighten_quotes(new_text) and file == _straighten_quotes(file)
    return "curly quotes" if curly and not any(character in old for character in "'\"") else ""


def transform_hunk(hunk: DiffHunk, transform: LineTransform) -> DiffHunk | None:
    lines: list[HunkLine] = []
    for line in hunk.lines:
        text = transform(line.text)
        if text is None:
            return None
        lines.append(HunkLine(line.mark, text, text if line.mark == STAYS else ""))
    return hunk._replace(lines=tuple(lines))


def _straighten_quotes(text: str) -> str:
    return text.translate(_CURLY)


def _push(text: str, more: str) -> str:
    return more + text if text.strip() else text


def _cut(text: str, less: str) -> str | None:
    if not text.strip():
        return ""
    return text[len(less) :] if text.startswith(less) else None


def _convert_to_tabs(text: str, width: int) -> str:
    columns = len(get_indentation(text).expandtabs(width))
    return "\t" * (columns // width) + " " * (columns % width) + text.lstrip(" \t")


def _convert_to_spaces(text: str, width: int) -> str:
    return get_indentation(text).expandtabs(width) + text.lstrip(" \t")


LineMatcher = Callable[[HunkLine, str], bool]


class IndexedLines:
    """A file's lines with an index, built once for all its hunks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        self._line_numbers: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            self._line_numbers[line.strip()].append(number)

    def find_lines(self, text: str) -> Sequence[int]:
        """Return the numbers of lines equal to `text`, ignoring surrounding whitespace."""
        return self._line_numbers.get(text.strip(), ())

    def find_starts(self, old: Sequence[HunkLine]) -> list[int]:
        """List every start at which the rarest of the lines matches and the others have room."""
        if not old:
            return []
        rarest = min(
            range(len(old)), key=lambda index: (not old[index].text.strip(), len(self.find_lines(old[index].text)))
        )
        last = len(self.lines) - len(old)
        return [index - rarest for index in self.find_lines(old[rarest].text) if 0 <= index - rarest <= last]

    def find_matches(self, old: Sequence[HunkLine], is_equal: LineMatcher) -> list[int]:
        return [
            start
            for start in self.find_starts(old)
            if all(is_equal(line, self.lines[start + offset]) for offset, line in enumerate(old))
        ]


def is_exact_match(line: HunkLine, file_line: str) -> bool:
    return line.text == file_line


def is_loose_match(line: HunkLine, file_line: str) -> bool:
    """Compare without trailing whitespace; a context line may have lost its marker, or never had one."""
    if line.text.rstrip() == file_line.rstrip():
        return True
    return line.mark == STAYS and line.raw.rstrip() == file_line.rstrip()


def find_variants(page: IndexedLines, hunk: DiffHunk) -> list[tuple[DiffHunk, int]]:
    """Transform the hunk as a whole so that it fits, and return each variant with its place."""
    variants: list[tuple[DiffHunk, int]] = []
    old = hunk.old
    first_index = next((index for index, line in enumerate(old) if line.text.strip()), None)
    if first_index is None:
        return variants
    for start in page.find_starts(old):
        transform = shift(old[first_index].text, page.lines[start + first_index])
        if transform is not None and (fitting := _transform_to_fit(page, hunk, transform, start)):
            variants.append((fitting, start))
    if variants:
        return variants
    for transform in (*iterate_tab_conversions(), *iterate_transport_fixes([line.text for line in hunk.lines])):
        if changed := transform_hunk(hunk, transform):
            variants = [(changed, start) for start in page.find_matches(changed.old, is_loose_match)]
            if variants:
                return variants
    return []


def _transform_to_fit(page: IndexedLines, hunk: DiffHunk, transform: LineTransform, start: int) -> DiffHunk | None:
    changed = transform_hunk(hunk, transform)
    if changed is None:
        return None
    return (
        changed
        if all(is_loose_match(line, page.lines[start + offset]) for offset, line in enumerate(changed.old))
        else None
    )
