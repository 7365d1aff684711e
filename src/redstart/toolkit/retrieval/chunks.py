"""Cut files into the parts worth showing, and fill a budget with them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from redstart.core.context import Chunk, Context
from redstart.toolkit.retrieval.code_reader import LineRange
from redstart.toolkit.retrieval.sources import Sources

WHOLE = 250
"""A file of at most this many lines is shown whole."""
LONG = 120
"""In a longer function or class, only the lines around the matches are shown."""
WORTH = 0.1
"""If less than this share of the budget is left, a file that does not fit is not cut."""
MARGIN = 2
AROUND = 20
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
    taken: list[Chunk] = []
    spent = left_out = 0
    for chunk in first:
        cost = _cost(chunk, sources)
        if taken and spent + cost > budget // 2:
            left_out += 1
            continue
        taken.append(chunk)
        spent += cost
    # a piece never scores more than its file, so no file is parsed before its turn
    queue = [_Offer(-item.score, item.path, 0, 0, item, None) for item in candidates]
    heapq.heapify(queue)
    while queue:
        offer = heapq.heappop(queue)
        chunk = offer.piece or _whole(offer.candidate, sources)
        cost = _cost(chunk, sources)
        if spent + cost <= budget and (offer.piece or chunk.end <= WHOLE):
            taken.append(chunk)
            spent += cost
        elif offer.piece or budget - spent < budget * WORTH:
            left_out += 1
        else:
            for piece in cut(offer.candidate, sources):
                place = (piece.path, piece.start, piece.end)
                heapq.heappush(queue, _Offer(-piece.score, *place, offer.candidate, piece))
    chunks = sorted(_merged(taken), key=lambda item: (item.source != "test", -item.score, item.path, item.start))
    return Context(chunks=tuple(chunks), left_out=left_out)


def _whole(one: ChunkCandidate, sources: Sources) -> Chunk:
    return Chunk(path=one.path, start=1, end=len(sources.lines(one.path)), score=one.score, source=one.source)


def cut(candidate: ChunkCandidate, sources: Sources) -> list[Chunk]:
    """Return the functions and classes around the marks, best first; the best has the candidate's own score."""
    length = len(sources.lines(candidate.path))
    spans = sources.reader(candidate.path).line_ranges(candidate.path)
    found: dict[LineRange, dict[str, float]] = {}
    for line, things in candidate.marks.items():
        weights = found.setdefault(_around(line, spans, length), {})
        for thing, weight in things.items():
            weights[thing] = max(weight, weights.get(thing, 0.0))
    weighed = sorted(
        ((sum(weights.values()), span) for span, weights in found.items()), key=lambda item: (-item[0], item[1])
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


def _around(line: int, spans: Sequence[LineRange], length: int) -> LineRange:
    holding = [span for span in spans if span.start <= line <= span.end]
    inner = min(holding, key=lambda span: (span.end - span.start, span), default=None)
    if inner is None or inner.end - inner.start >= LONG:
        inner = LineRange(line - AROUND, line + AROUND)
    return LineRange(max(inner.start - MARGIN, 1), min(inner.end + MARGIN, length))


def _merged(chunks: Iterable[Chunk]) -> list[Chunk]:
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
    return sum(len(line) + 1 for line in sources.lines(chunk.path)[chunk.start - 1 : chunk.end])
