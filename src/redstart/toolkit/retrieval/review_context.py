"""Code for a reader who reviews a program as a whole: all of it if it fits, else other files each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redstart.core.context import Chunk, Context
from redstart.toolkit.base.code_files import Read

LONGEST_PIECE = 20_000
"""Characters of a file above which it is shown in several pieces."""
LEAST_PART = 2_000
"""The minimum number of characters of a useful part, if the whole file does not fit."""


def survey(files: Sequence[str], read: Read, *, preferred: Iterable[str], turn: int, budget: int) -> Context:
    """Choose files to show whole, in at most `budget` characters.

    If all of them fit, all are shown. Otherwise `preferred` gets half of the budget, and the others the rest: different
    ones for each `turn`, from 1, until every file was shown and it starts over.
    """
    texts = {path: (read(path) or b"").decode(errors="replace") for path in files}
    sizes = {path: len(text) for path, text in texts.items() if text.strip()}
    if sum(sizes.values()) <= budget:
        return Context(
            chunks=tuple(chunk for path in files if path in sizes for chunk in _split_chunks(path, texts[path]))
        )
    preferred_paths = [path for path in dict.fromkeys(preferred) if path in sizes]
    head = _fill_chunks(preferred_paths, texts, budget // 2)
    shown_paths = {chunk.path for chunk in head}
    remaining = [path for path in files if path in sizes and path not in shown_paths]
    remaining_budget = max(budget - sum(sizes[path] for path in shown_paths), budget // 2)
    pages = _split_pages(remaining, sizes, remaining_budget)
    start = sum(map(len, pages[: (turn - 1) % len(pages)])) if pages else 0
    tail = _fill_chunks([*remaining[start:], *remaining[:start]], texts, remaining_budget)
    included = {chunk.path for chunk in (*head, *tail)}
    return Context(chunks=(*head, *tail), left_out=len(sizes) - len(included))


def _split_pages(paths: Sequence[str], sizes: dict[str, int], budget: int) -> list[list[str]]:
    """Group the paths, in order, so that each group fills the budget."""
    pages: list[list[str]] = []
    remaining = 0
    for path in paths:
        if not pages or sizes[path] > remaining:
            pages.append([])
            remaining = budget
        pages[-1].append(path)
        remaining -= sizes[path]
    return pages


def _fill_chunks(paths: Sequence[str], texts: dict[str, str], budget: int) -> list[Chunk]:
    """Show as many of the files as fit, in their order, and the beginning of the first file that does not fit."""
    chunks: list[Chunk] = []
    for path in paths:
        if len(texts[path]) <= budget:
            chunks += _split_chunks(path, texts[path])
            budget -= len(texts[path])
            continue
        if budget >= LEAST_PART:
            chunks += _split_chunks(path, texts[path][:budget])
        break
    return chunks


def _split_chunks(path: str, text: str) -> list[Chunk]:
    """Split the text's lines into pieces that are short enough for a prompt to show uncut."""
    chunks: list[Chunk] = []
    start, size = 1, 0
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        size += len(line)
        if size >= LONGEST_PIECE or number == len(lines):
            chunks.append(Chunk(path=path, start=start, end=number, score=1.0, source="survey"))
            start, size = number + 1, 0
    return chunks
