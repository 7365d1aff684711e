"""What is shown to a reader who judges a whole program."""

from __future__ import annotations

from redstart.toolkit.retrieval.survey import survey

LINE = "x = 1  # padding that makes the line a hundred characters long".ljust(99) + "\n"


def files(count: int, lines: int) -> dict[str, bytes]:
    return {f"m{number:02}.py": (LINE * lines).encode() for number in range(count)}


def paths(there: dict[str, bytes], *, first: tuple[str, ...] = (), turn: int = 1, budget: int = 10_000) -> list[str]:
    shown = survey(sorted(there), there.get, first=first, turn=turn, budget=budget)
    return list(dict.fromkeys(chunk.path for chunk in shown.chunks))


def test_all_is_shown_where_it_fits():
    there = {**files(3, 20), "empty.py": b"\n"}
    shown = survey(sorted(there), there.get, first=(), turn=7, budget=10_000)
    assert [(chunk.path, chunk.start, chunk.end) for chunk in shown.chunks] == [(f"m0{n}.py", 1, 20) for n in range(3)]
    assert shown.left_out == 0


def test_every_file_is_read_in_some_cycle_and_those_named_in_each():
    there = files(12, 20)
    turns = [paths(there, first=("m07.py",), turn=turn) for turn in range(1, 5)]
    assert all(turn[0] == "m07.py" for turn in turns)
    assert {path for turn in turns for path in turn} == set(there)
    assert turns[0] != turns[1]


def test_a_file_larger_than_the_budget_is_shown_by_its_beginning_and_a_long_one_in_pieces():
    large = {"large.py": LINE.encode() * 400}
    shown = survey(["large.py"], large.get, first=(), turn=1, budget=10_000)
    assert [(chunk.start, chunk.end) for chunk in shown.chunks] == [(1, 100)]
    whole = survey(["large.py"], large.get, first=(), turn=1, budget=50_000)
    assert [(chunk.start, chunk.end) for chunk in whole.chunks] == [(1, 200), (201, 400)]
