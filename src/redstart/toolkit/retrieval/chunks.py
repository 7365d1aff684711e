"""Cut files into the parts worth showing, and fill a budget with them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from redstart.core.context import Chunk, Context
from redstart.toolkit.retrieval.code_reader import LineRange
from redstart.toolkit.retrieval.sources import Sources

MAX_WHOLE_FILE_LINES = 250
"""A file of at most this many lines is shown whole."""
LONG = 120
"""In a longer function or class, only the lines around the matches are shown."""
MIN_BUDGET_SHARE = 0.1
"""If less than this share of the budget is left, a file that does not fit is not cut."""
MARGIN_LINES = 2
CONTEXT_LINES = 20
PIECES = 6
"""The maximum number of pieces of one file."""


class ChunkCandidate(NamedTuple):
    """A file worth showing. `marks` maps its lines to what was found there: a name to its weight."""

    path: str
    score: float
    source: str
    marks: Mapping[int, Mapping[str, float]]


class _Offer(NamedTuple):
    """The next part to show, in the order of the queue: a file, or (once it was cut) a piece of one."""

    rank: float
    path: str
    start: int
    end: int
    candidate: ChunkCandidate
    piece: Chunk | None


def fill(first: Sequence[Chunk], candidates: Sequence[ChunkCandidate], sources: Sources, budget: int) -> Context:
    """Fill `budget` characters with `first` and then the candidates by score; overlapping chunks are merged.

    The first chunk of `first` is always included, the others only while `first` takes at most half of the budget.
    """
    selected: list[Chunk] = []
    spent = left_out = 0
    for chunk in first:
        cost = _cost(chunk, sources)
        if selected and spent + cost > budget // 2:
            left_out += 1
            continue
        selected.append(chunk)
        spent += cost
    # a piece never scores more than its file, so no file is parsed before its turn
    queue = [_Offer(-item.score, item.path, 0, 0, item, None) for item in candidates]
    heapq.heapify(queue)
    while queue:
        offer = heapq.heappop(queue)
        chunk = offer.piece or _create_whole_chunk(offer.candidate, sources)
        cost = _cost(chunk, sources)
        if spent + cost <= budget and (offer.piece or chunk.end <= MAX_WHOLE_FILE_LINES):
            selected.append(chunk)
            spent += cost
        elif offer.piece or budget - spent < budget * MIN_BUDGET_SHARE:
            left_out += 1
        else:
            for piece in cut(offer.candidate, sources):
                place = (piece.path, piece.start, piece.end)
                heapq.heappush(queue, _Offer(-piece.score, *place, offer.candidate, piece))
    chunks = sorted(
        _merge_chunks(selected), key=lambda item: (item.source != "test", -item.score, item.path, item.start)
    )
    return Context(chunks=tuple(chunks), left_out=left_out)


def _create_whole_chunk(candidate: ChunkCandidate, sources: Sources) -> Chunk:
    return Chunk(
        path=candidate.path,
        start=1,
        end=len(sources.read_lines(candidate.path)),
        score=candidate.score,
        source=candidate.source,
    )


def cut(candidate: ChunkCandidate, sources: Sources) -> list[Chunk]:
    """Return the functions and classes around the marks, best first; the best has the candidate's own score."""
    length = len(sources.read_lines(candidate.path))
    spans = sources.get_reader(candidate.path).list_line_ranges(candidate.path)
    weights_by_span: dict[LineRange, dict[str, float]] = {}
    for line, things in candidate.marks.items():
        weights = weights_by_span.setdefault(_find_range_around(line, spans, length), {})
        for name, weight in things.items():
            weights[name] = max(weight, weights.get(name, 0.0))
    weighed = sorted(
        ((sum(weights.values()), span) for span, weights in weights_by_span.items()),
        key=lambda item: (-item[0], item[1]),
    )
    top = weighed[0][0] if weighed else 1.0
    return [
        Chunk(
            path=candidate.path,
            start=span.start,
            end=span.end,
            score=round(candidate.score * weight / top, 6),
            source=candidate.source,
        )
        for weight, span in weighed[:PIECES]
    ]


def _find_range_around(line: int, spans: Sequence[LineRange], length: int) -> LineRange:
    holding = [span for span in spans if span.start <= line <= span.end]
    innermost = min(holding, key=lambda span: (span.end - span.start, span), default=None)
    if innermost is None or innermost.end - innermost.start >= LONG:
        innermost = LineRange(line - CONTEXT_LINES, line + CONTEXT_LINES)
    return LineRange(max(innermost.start - MARGIN_LINES, 1), min(innermost.end + MARGIN_LINES, length))


def _merge_chunks(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Merge overlapping or adjacent chunks of one file under the source of the best one; a test's source wins."""
    merged: list[Chunk] = []
    for chunk in sorted(chunks, key=lambda item: (item.path, item.start, item.end)):
        last = merged[-1] if merged else None
        if last is None or last.path != chunk.path or chunk.start > last.end + 1:
            merged.append(chunk)
            continue
        best = max(last, chunk, key=lambda item: (item.source == "test", item.score))
        merged[-1] = best.model_copy(update={"start": last.start, "end": max(last.end, chunk.end)})
    return merged


def _cost(chunk: Chunk, sources: Sources) -> int:
    return sum(len(line) + 1 for line in sources.read_lines(chunk.path)[chunk.start - 1 : chunk.end])
