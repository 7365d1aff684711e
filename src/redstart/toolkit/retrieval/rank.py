"""Rank the code that matters for a failure, best first."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from posixpath import basename, dirname, splitext
from typing import NamedTuple

from redstart.core.context import Chunk, Context
from redstart.core.report import Case
from redstart.core.spectrum import Spectrum
from redstart.toolkit.base.code_files import Read, is_searchable
from redstart.toolkit.base.search import Search, WordHit
from redstart.toolkit.base.tracebacks import Frame, find_frames
from redstart.toolkit.languages.registry import is_code
from redstart.toolkit.retrieval.chunks import LONG, ChunkCandidate, fill
from redstart.toolkit.retrieval.code_reader import CodePlace
from redstart.toolkit.retrieval.query import RetrievalQuery, ask
from redstart.toolkit.retrieval.sources import Sources

MAX_CASES = 10
MAX_FILES = 12
"""The default number of best files to cut into chunks; the others are counted as left out."""
BUDGET = 24_000
"""The default number of characters to show."""

FRAME, LEXICAL, NAME, DEFINITION_WEIGHT, IMPORT_WEIGHT, RUN = 1.0, 1.0, 1.0, 0.7, 0.5, 2.0
OUTER_FRAME_WEIGHT = 0.7
"""The weight of a frame relative to the frame that it called."""
PROSE_FACTOR, TEST_FACTOR, NOT_RUN_FACTOR = 0.2, 0.1, 0.5
SUSPECT = 0.7
"""A large file is cut around lines with at least this share of the suspicion of its most suspicious line."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[_.-]")
_SATURATION, _LENGTH = 1.2, 0.75  # BM25's k and b, at their usual values

Scores = dict[str, float]


class RankingQuestion(NamedTuple):
    cases: Sequence[Case]
    """The failing ones, with their `detail`; only the first ten are used."""
    goal: str
    tests: Sequence[str]
    """Paths of the files that contain the failing tests."""
    is_test: Callable[[str], bool]
    budget: int = BUDGET
    """In characters."""
    files: int = MAX_FILES
    spectrum: Spectrum | None = None
    """The lines that the tests ran, if that was recorded."""


def retrieve(question: RankingQuestion, files: Sequence[str], read: Read, search: Search) -> Context:
    """Return the failing tests, then the code that most likely makes them fail, within the budget.

    Depends only on its arguments: the same question about the same files has the same answer. A file that is binary,
    huge or neither code nor prose is skipped; code that does not parse is still found by its words.
    """
    cases = [case for case in question.cases if case.is_red][:MAX_CASES]
    sources = Sources(files, read)
    query = ask(cases, question.goal, question.tests, sources)
    traces = [find_frames(case.detail, sources.files) for case in cases]
    hits = [hit for hit in search(query.identifiers) if hit.path in sources.files]
    run = _run(question, sources)
    scores = _score_signals(question, query, traces, hits, sources) | {"run": _score_by_lines(run)}
    candidates = _rank_candidates(scores, _build_marks(traces, hits, run), _create_factor(question, run))
    best = [candidate for candidate in candidates[: 2 * question.files] if sources.read_lines(candidate.path)][
        : question.files
    ]
    context = fill(_build_test_chunks(query), best, sources, question.budget)
    return context.model_copy(update={"left_out": context.left_out + max(len(candidates) - question.files, 0)})


def _score_signals(
    question: RankingQuestion,
    query: RetrievalQuery,
    traces: Sequence[Sequence[Frame]],
    hits: Sequence[WordHit],
    sources: Sources,
) -> dict[str, Scores]:
    """Score files by `Chunk.source`. Each signal is about 1 at its best."""
    code = [hit for hit in hits if not question.is_test(hit.path)]
    signals = {
        "frame": [(FRAME, _score_by_frame(traces, question.is_test))],
        "name": [(NAME, _score_by_name(question.tests, question.is_test, sources))],
        "search": [
            (LEXICAL, _normalize_scores(_score_by_words(code, sources))),
            (DEFINITION_WEIGHT, _normalize_scores(_score_by_definition(code))),
            (IMPORT_WEIGHT, dict.fromkeys(query.imports, 1.0)),
        ],
    }
    return {source: _sum(parts) for source, parts in signals.items()}


def _run(question: RankingQuestion, sources: Sources) -> dict[str, dict[int, float]]:
    """Return how suspicious the lines of code are that the failing tests ran; the most suspicious line is at 1."""
    suspicions = question.spectrum.compute_suspicion() if question.spectrum else {}
    code = {path: lines for path, lines in suspicions.items() if path in sources.files and not question.is_test(path)}
    highest = max((item for lines in code.values() for item in lines.values()), default=1.0)
    return {path: {line: item / highest for line, item in lines.items()} for path, lines in code.items()}


def _score_by_lines(run: Mapping[str, Mapping[int, float]]) -> Scores:
    """Square the suspicion: a line half as suspicious as the most suspicious one is rarely the cause."""
    return {path: RUN * max(lines.values()) ** 2 for path, lines in run.items() if lines}


def _create_factor(question: RankingQuestion, run: Mapping[str, object]) -> Callable[[str], float]:
    """Weight a file's signals: lower for prose and tests, and for code that no failing test ran."""
    executed_suffixes = tuple({ending for path in run if (ending := splitext(path)[1])})

    def compute_factor(path: str) -> float:
        kind_factor = (1.0 if is_code(path) else PROSE_FACTOR) * (TEST_FACTOR if question.is_test(path) else 1.0)
        return kind_factor * (NOT_RUN_FACTOR if path.endswith(executed_suffixes) and path not in run else 1.0)

    return compute_factor


def _sum(parts: Sequence[tuple[float, Scores]]) -> Scores:
    total: Scores = defaultdict(float)
    for weight, scores in parts:
        for path, score in scores.items():
            total[path] += weight * score
    return total


def _normalize_scores(scores: Scores) -> Scores:
    best = max(scores.values(), default=1.0)
    return {path: score / best for path, score in scores.items()}


def _score_by_frame(traces: Sequence[Sequence[Frame]], is_test: Callable[[str], bool]) -> Scores:
    scores: Scores = {}
    for steps in traces:
        innermost_first = dict.fromkeys(step.path for step in reversed(steps) if not is_test(step.path))
        for distance, path in enumerate(innermost_first):
            scores[path] = max(scores.get(path, 0.0), OUTER_FRAME_WEIGHT**distance)
    return scores


def _score_by_words(hits: Sequence[WordHit], sources: Sources) -> Scores:
    """Score by BM25 over the lines that use the words: a rare word counts for more, a long file for less."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for hit in hits:
        if not hit.defines:
            counts[hit.word][hit.path] += 1
    lengths = {
        path: len(sources.read_data(path)) or 1
        for path in {path for path_counts in counts.values() for path in path_counts}
    }
    mean_length = sum(lengths.values()) / len(lengths) if lengths else 1.0
    scores: Scores = defaultdict(float)
    for _, path_counts in sorted(counts.items()):
        rarity = _compute_rarity(len(path_counts), len(sources.files))
        for path, count in path_counts.items():
            damped = count + _SATURATION * (1 - _LENGTH + _LENGTH * lengths[path] / mean_length)
            scores[path] += rarity * count * (_SATURATION + 1) / damped
    return scores


def _compute_rarity(holders: int, files: int) -> float:
    return math.log(1 + (max(files - holders, 0) + 0.5) / (holders + 0.5))


def _score_by_definition(hits: Sequence[WordHit]) -> Scores:
    """A name that is defined in one place says more than a name that is defined in many."""
    places: dict[str, list[str]] = defaultdict(list)
    for hit in hits:
        if hit.defines:
            places[hit.word].append(hit.path)
    scores: Scores = defaultdict(float)
    for _, paths in sorted(places.items()):
        for path in paths:
            scores[path] += 1 / len(paths)
    return scores


def _score_by_name(tests: Sequence[str], is_test: Callable[[str], bool], sources: Sources) -> Scores:
    """Score how similar a file's name is to that of a failing test's file; a folder of the same name adds a little."""
    test_names = [(_name_parts(test), set(dirname(test).split("/"))) for test in sorted(set(tests))]
    scores: Scores = {}
    for path in sorted(sources.files) if test_names else ():
        if not is_code(path) or is_test(path):
            continue
        parts, folders = _name_parts(path), set(dirname(path).split("/"))
        likeness = [
            2 * len(parts & test_parts) / (len(parts) + len(test_parts))
            + 0.2 * len(folders & test_folders) / max(len(test_folders), 1)
            for test_parts, test_folders in test_names
            if parts & test_parts
        ]
        if likeness:
            scores[path] = max(likeness)
    return scores


def _name_parts(path: str) -> set[str]:
    stem = basename(path).rpartition(".")[0]
    if stem in ("__init__", "index"):
        stem = basename(dirname(path))
    words = _CAMEL.sub("_", stem).lower()
    return {part for part in _BETWEEN.split(words) if part and part not in ("test", "tests", "spec", "specs")}


def _build_marks(
    traces: Sequence[Sequence[Frame]], hits: Sequence[WordHit], run: Mapping[str, Mapping[int, float]]
) -> dict[str, dict[int, dict[str, float]]]:
    """Map file and line to what was found there, and its weight when a large file is cut."""
    spread: dict[str, set[str]] = defaultdict(set)
    for hit in hits:
        spread[hit.word].add(hit.path)
    marks: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for hit in hits:
        name, weight = (f"def {hit.word}", 2.0) if hit.defines else (hit.word, 1.0)
        marks[hit.path][hit.line][name] = weight / math.sqrt(len(spread[hit.word]))
    for steps in traces:
        for distance, step in enumerate(reversed(steps)):
            marks[step.path][step.number][f"frame {step.path}:{step.number}"] = 3 * OUTER_FRAME_WEIGHT**distance
    for path, lines in run.items():
        for line, suspicion in lines.items():
            if suspicion >= SUSPECT * max(lines.values()):
                marks[path][line]["run"] = 3 * suspicion
    return marks


def _rank_candidates(
    signals: Mapping[str, Scores],
    marks: Mapping[str, Mapping[int, Mapping[str, float]]],
    factor: Callable[[str], float],
) -> list[ChunkCandidate]:
    candidates: list[ChunkCandidate] = []
    for path in {path for scores in signals.values() for path in scores}:
        if not is_searchable(path):
            continue
        shares = {source: scores.get(path, 0.0) for source, scores in signals.items()}
        score = round(factor(path) * sum(shares.values()), 6)
        if score > 0:
            source = max(shares, key=lambda share: (shares[share], share))
            candidates.append(ChunkCandidate(path, score, source, marks.get(path) or {1: {"top": 1.0}}))
    return sorted(candidates, key=lambda item: (-item.score, item.path))


def _build_test_chunks(query: RetrievalQuery) -> list[Chunk]:
    def create_chunk(place: CodePlace, score: float) -> Chunk:
        end = min(place.end, place.start + LONG - 1)
        return Chunk(path=place.path, start=place.start, end=end, score=score, source="test")

    count = max(len(query.tests), 1)
    functions = [create_chunk(place, round(10 - number / count, 6)) for number, place in enumerate(query.tests)]
    return functions + [create_chunk(place, 8.0) for place in query.helpers]
