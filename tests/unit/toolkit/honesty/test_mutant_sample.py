"""Small changes to a new program: their kinds, the sample, and what they show about its tests."""

from __future__ import annotations

import ast

import pytest

from redstart.core.report import Mutants
from redstart.toolkit.honesty import mutation as words
from redstart.toolkit.honesty.mutant_sample import (
    MAX_MUTANTS,
    ProgramFile,
    is_decided,
    sample_mutants,
    summarize_mutants,
)
from redstart.toolkit.languages.node.mutants import create_node_mutants
from redstart.toolkit.languages.node.trees import find_syntax_errors
from redstart.toolkit.languages.python.mutants import create_python_mutants

PROGRAM = b'''"""Fares."""

LIMIT = 3


def fare(age: int, *, card: bool = False) -> float:
    """What a ride costs."""
    if age < 0:
        raise ValueError(f"no age: {age + 1}")
    if age <= LIMIT and not card:
        return 0.0
    price = 4 * 2
    log(price)
    while price > 9:
        price -= 1
    return price - 1 if card or age > 64 else price


class Book:
    def __repr__(self) -> str:
        return "Book" + "!"

    def add(self, line):
        self.lines.append(line)
        logging.info("added", 3)


if __name__ == "__main__":
    print(fare(int(input())) + 1)
'''

SCRIPT = b"""import { x } from "./other.js";
export function fare(age, card = false) {
  if (age < 0) {
    throw new RangeError("no age " + (age + 1));
  }
  const price = age === 7 && !card ? 4 * 2 : 3;
  console.error(price + 1);
  x.push(price);
  for (let i = 0; i < 3; i += 1) { note(i); }
  while (x.length > 3) { x.pop(); }
  return price;
}
"""


def list_changes(path: str, text: bytes) -> dict[str, set[str]]:
    """Group the changed lines by kind of change."""
    make = create_python_mutants if path.endswith(".py") else create_node_mutants
    lines_by_kind: dict[str, set[str]] = {}
    for item in make(path, text):
        lines = item.apply_to(text).decode().splitlines()
        lines_by_kind.setdefault(item.kind, set()).add(lines[item.line - 1].strip())
    return lines_by_kind


def test_python_mutants_cover_every_kind():
    lines_by_kind = list_changes("fares.py", PROGRAM)
    assert {"if age >= 0:", "if age > LIMIT and not card:"} <= lines_by_kind[words.NEGATED_COMPARISON]
    assert {"if age <= 0:", "if age < LIMIT and not card:"} <= lines_by_kind[words.BORDER]
    assert {"price = 4 + 2", "return price + 1 if card or age > 64 else price"} <= lines_by_kind[words.CALCULATION]
    assert "if age <= LIMIT or not card:" in lines_by_kind[words.LOGIC]
    assert {"if (not (age < 0)):", "if age <= LIMIT and card:"} <= lines_by_kind[words.CONDITION]
    assert {"LIMIT = 4", "return 1.0", "price = 5 * 2"} <= lines_by_kind[words.CONSTANT]
    assert {"return None"} <= lines_by_kind[words.NOTHING_BACK]
    assert lines_by_kind[words.NOT_RAISED] == {"pass"}
    assert lines_by_kind[words.LEFT_OUT] == {"pass"}


def test_code_that_tests_need_not_cover_is_not_mutated():
    lines = {mutant.line for mutant in create_python_mutants("fares.py", PROGRAM)}
    texts = PROGRAM.decode().splitlines()
    untouched_prefixes = (
        '"""Fares."""',
        "def fare",
        '"""What',
        'return "Book"',
        "if __name__",
        "print(fare",
        "while",
        "logging",
    )
    for number, text in enumerate(texts, 1):
        assert not (text.strip().startswith(untouched_prefixes) and number in lines), text


def test_platform_checks_are_kept_but_their_branches_are_mutated():
    conditions = (
        "sys.version_info >= (3, 11)",
        "sys.platform == 'win32' and not old",
        "TYPE_CHECKING",
        "os.name == 'nt'",
    )
    for condition in conditions:
        text = f"if {condition}:\n    step = 4 + 2\nelse:\n    step = 3\nwidth = 7 if {condition} else 9\n"
        mutated_texts = {
            mutant.apply_to(text.encode()).decode() for mutant in create_python_mutants("a.py", text.encode())
        }
        changed = {line for item in mutated_texts for line in item.splitlines()} - set(text.splitlines())
        assert changed >= {"    step = 4 - 2", "    step = 4", f"width = 8 if {condition} else 9"}
        assert all(condition in item for item in changed if item.startswith(("if", "width"))), changed
    assert any(
        "not (sys.argv)" in mutant.apply_to(b"if sys.argv:\n    x()\n").decode()
        for mutant in create_python_mutants("a.py", b"if sys.argv:\n    x()\n")
    )


def test_every_python_mutant_parses_and_differs():
    for mutant in create_python_mutants("fares.py", PROGRAM):
        assert mutant.apply_to(PROGRAM) != PROGRAM
        ast.parse(mutant.apply_to(PROGRAM))


def test_javascript_mutants_cover_every_kind():
    lines_by_kind = list_changes("fare.js", SCRIPT)
    assert "if (age >= 0) {" in lines_by_kind[words.NEGATED_COMPARISON]
    assert "if (age <= 0) {" in lines_by_kind[words.BORDER]
    assert "const price = age === 7 || !card ? 4 * 2 : 3;" in lines_by_kind[words.LOGIC]
    assert "const price = age === 7 && !card ? 4 + 2 : 3;" in lines_by_kind[words.CALCULATION]
    assert "const price = age === 8 && !card ? 4 * 2 : 3;" in lines_by_kind[words.CONSTANT]
    assert "return undefined;" in lines_by_kind[words.NOTHING_BACK]
    assert lines_by_kind[words.NOT_RAISED] == {";"}
    assert ";" in lines_by_kind[words.LEFT_OUT]
    changed_lines = {mutant.line for mutant in create_node_mutants("fare.js", SCRIPT)}
    assert not changed_lines & {1, 2, 7, 10}
    assert not [
        mutant
        for mutant in create_node_mutants("fare.js", SCRIPT)
        if find_syntax_errors("fare.js", mutant.apply_to(SCRIPT))
    ]


def test_mutant_description_gives_place_and_kind_but_no_code():
    border_mutant = next(mutant for mutant in create_python_mutants("fares.py", PROGRAM) if mutant.kind == words.BORDER)
    assert border_mutant.words == "in `fare` (fares.py, line 8), a border is off by one"


def test_invalid_source_has_no_mutants():
    assert create_python_mutants("a.py", b"def (") == []
    assert create_node_mutants("a.js", b"function (") == []
    assert sample_mutants({"notes.md": ProgramFile(b"", b"1 + 1")}, "seed") == []


def test_mutant_sample_is_bounded_repeatable_and_spread():
    files = {"fares.py": ProgramFile(b"", PROGRAM)}
    first_sample = sample_mutants(files, "seed")
    assert len(first_sample) == MAX_MUTANTS
    assert first_sample == sample_mutants(files, "seed")
    assert first_sample != sample_mutants(files, "another")
    assert len({item.line for item in first_sample}) >= 7
    assert len({item.kind for item in first_sample}) >= 6


def test_only_new_code_is_mutated():
    new_program = PROGRAM + b"\n\ndef twice(number):\n    return number * 2\n"
    mutants = sample_mutants({"fares.py": ProgramFile(PROGRAM, new_program)}, "seed", limit=100)
    assert {item.function_name for item in mutants} == {"twice"}


@pytest.mark.parametrize(
    ("asked_count", "noticed_count", "expected"),
    [
        (10, [True] * 6, True),
        (10, [True] * 5, False),
        (10, [False] * 4, False),
        (10, [False] * 5, True),
        (3, [True, True], True),
        (3, [False, True], False),
        (3, [False, False], True),
    ],
)
def test_sampling_ends_when_the_verdict_is_clear(asked_count, noticed_count, expected):
    assert is_decided(asked_count, noticed_count) is expected


def test_too_few_mutants_give_no_verdict():
    mutants = sample_mutants({"fares.py": ProgramFile(b"", PROGRAM)}, "seed", limit=2)
    assert summarize_mutants(2, [False, False], mutants) is None
    result = summarize_mutants(
        5, [False, False, False], sample_mutants({"fares.py": ProgramFile(b"", PROGRAM)}, "seed", limit=5)
    )
    assert result is not None
    assert (result.sampled, result.killed, len(result.survivors)) == (3, 0, 3)
    assert result.too_many_survive
    assert result.words.startswith("the tests do not notice when, in ")


@pytest.mark.parametrize(("killed", "is_weak"), [(6, False), (5, True)])
def test_six_killed_mutants_of_ten_are_enough(killed, is_weak):
    assert Mutants(sampled=10, killed=killed).too_many_survive is is_weak
