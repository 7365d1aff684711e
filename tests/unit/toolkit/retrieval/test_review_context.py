"""What is shown to a reader who judges a whole program."""

from __future__ import annotations

from redstart.toolkit.retrieval.review_context import survey

LINE = "x = 1  # padding that makes the line a hundred characters long".ljust(99) + "\n"


def build_files(count: int, lines: int) -> dict[str, bytes]:
    return {f"m{number:02}.py": (LINE * lines).encode() for number in range(count)}


def list_paths(
    tree: dict[str, bytes], *, first: tuple[str, ...] = (), turn: int = 1, budget: int = 10_000
) -> list[str]:
    context = survey(sorted(tree), tree.get, preferred=first, turn=turn, budget=budget)
    return list(dict.fromkeys(chunk.path for chunk in context.chunks))


def test_everything_is_shown_if_it_fits_the_budget():
    tree = {**build_files(3, 20), "empty.py": b"\n"}
    context = survey(sorted(tree), tree.get, preferred=(), turn=7, budget=10_000)
    assert [(chunk.path, chunk.start, chunk.end) for chunk in context.chunks] == [
        (f"m0{n}.py", 1, 20) for n in range(3)
    ]
    assert context.left_out == 0


def test_every_file_appears_in_some_cycle_and_priority_files_in_each():
    tree = build_files(12, 20)
    turns = [list_paths(tree, first=("m07.py",), turn=turn) for turn in range(1, 5)]
    assert all(turn[0] == "m07.py" for turn in turns)
    assert {path for turn in turns for path in turn} == set(tree)
    assert turns[0] != turns[1]


def test_oversized_file_shows_its_beginning_and_a_long_file_is_split():
    large = {"large.py": LINE.encode() * 400}
    context = survey(["large.py"], large.get, preferred=(), turn=1, budget=10_000)
    assert [(chunk.start, chunk.end) for chunk in context.chunks] == [(1, 100)]
    full_context = survey(["large.py"], large.get, preferred=(), turn=1, budget=50_000)
    assert [(chunk.start, chunk.end) for chunk in full_context.chunks] == [(1, 200), (201, 400)]
