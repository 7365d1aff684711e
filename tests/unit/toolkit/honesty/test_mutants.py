"""Small changes to a new program: their kinds, the sample, and what they show about its tests."""

from __future__ import annotations

import ast

import pytest

from redstart.core.report import Mutants
from redstart.toolkit.honesty import mutant as words
from redstart.toolkit.honesty.mutants import MOST, ProgramFile, counted, is_decided, sample
from redstart.toolkit.languages.node.mutants import node_mutants
from redstart.toolkit.languages.node.trees import faults
from redstart.toolkit.languages.python.mutants import python_mutants

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


def changes(path: str, text: bytes) -> dict[str, set[str]]:
    """Group the changed lines by kind of change."""
    make = python_mutants if path.endswith(".py") else node_mutants
    found: dict[str, set[str]] = {}
    for item in make(path, text):
        lines = item.of(text).decode().splitlines()
        found.setdefault(item.kind, set()).add(lines[item.line - 1].strip())
    return found


def test_what_is_changed_in_python():
    found = changes("fares.py", PROGRAM)
    assert {"if age >= 0:", "if age > LIMIT and not card:"} <= found[words.TURNED]
    assert {"if age <= 0:", "if age < LIMIT and not card:"} <= found[words.BORDER]
    assert {"price = 4 + 2", "return price + 1 if card or age > 64 else price"} <= found[words.CALCULATION]
    assert "if age <= LIMIT or not card:" in found[words.LOGIC]
    assert {"if (not (age < 0)):", "if age <= LIMIT and card:"} <= found[words.CONDITION]
    assert {"LIMIT = 4", "return 1.0", "price = 5 * 2"} <= found[words.CONSTANT]
    assert {"return None"} <= found[words.NOTHING_BACK]
    assert found[words.NOT_RAISED] == {"pass"}
    assert found[words.LEFT_OUT] == {"pass"}


def test_what_tests_need_not_notice_is_left_alone():
    lines = {mutant.line for mutant in python_mutants("fares.py", PROGRAM)}
    texts = PROGRAM.decode().splitlines()
    untouched = (
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
        assert not (text.strip().startswith(untouched) and number in lines), text


def test_which_python_or_system_it_is_is_left_alone_but_not_what_is_done_there():
    asked = ("sys.version_info >= (3, 11)", "sys.platform == 'win32' and not old", "TYPE_CHECKING", "os.name == 'nt'")
    for condition in asked:
        text = f"if {condition}:\n    step = 4 + 2\nelse:\n    step = 3\nwidth = 7 if {condition} else 9\n"
        made = {mutant.of(text.encode()).decode() for mutant in python_mutants("a.py", text.encode())}
        changed = {line for item in made for line in item.splitlines()} - set(text.splitlines())
        assert changed >= {"    step = 4 - 2", "    step = 4", f"width = 8 if {condition} else 9"}
        assert all(condition in item for item in changed if item.startswith(("if", "width"))), changed
    assert any(
        "not (sys.argv)" in mutant.of(b"if sys.argv:\n    x()\n").decode()
        for mutant in python_mutants("a.py", b"if sys.argv:\n    x()\n")
    )


def test_every_change_of_python_parses_and_differs():
    for mutant in python_mutants("fares.py", PROGRAM):
        assert mutant.of(PROGRAM) != PROGRAM
        ast.parse(mutant.of(PROGRAM))


def test_what_is_changed_in_javascript():
    found = changes("fare.js", SCRIPT)
    assert "if (age >= 0) {" in found[words.TURNED]
    assert "if (age <= 0) {" in found[words.BORDER]
    assert "const price = age === 7 || !card ? 4 * 2 : 3;" in found[words.LOGIC]
    assert "const price = age === 7 && !card ? 4 + 2 : 3;" in found[words.CALCULATION]
    assert "const price = age === 8 && !card ? 4 * 2 : 3;" in found[words.CONSTANT]
    assert "return undefined;" in found[words.NOTHING_BACK]
    assert found[words.NOT_RAISED] == {";"}
    assert ";" in found[words.LEFT_OUT]
    told = {mutant.line for mutant in node_mutants("fare.js", SCRIPT)}
    assert not told & {1, 2, 7, 10}
    assert not [mutant for mutant in node_mutants("fare.js", SCRIPT) if faults("fare.js", mutant.of(SCRIPT))]


def test_words_say_where_and_what_and_nothing_of_the_code():
    one = next(mutant for mutant in python_mutants("fares.py", PROGRAM) if mutant.kind == words.BORDER)
    assert one.words == "in `fare` (fares.py, line 8), a border is off by one"


def test_what_does_not_parse_gives_none():
    assert python_mutants("a.py", b"def (") == []
    assert node_mutants("a.js", b"function (") == []
    assert sample({"notes.md": ProgramFile(b"", b"1 + 1")}, "seed") == []


def test_a_sample_is_bounded_the_same_each_time_and_spread():
    files = {"fares.py": ProgramFile(b"", PROGRAM)}
    first = sample(files, "seed")
    assert len(first) == MOST
    assert first == sample(files, "seed")
    assert first != sample(files, "another")
    assert len({item.line for item in first}) >= 7
    assert len({item.kind for item in first}) >= 6


def test_only_what_is_new_is_changed():
    later = PROGRAM + b"\n\ndef twice(number):\n    return number * 2\n"
    found = sample({"fares.py": ProgramFile(PROGRAM, later)}, "seed", most=100)
    assert {item.where for item in found} == {"twice"}


@pytest.mark.parametrize(
    ("asked", "noticed", "decided"),
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
def test_it_ends_when_the_verdict_is_clear(asked, noticed, decided):
    assert is_decided(asked, noticed) is decided


def test_too_few_changes_say_nothing():
    some = sample({"fares.py": ProgramFile(b"", PROGRAM)}, "seed", most=2)
    assert counted(2, [False, False], some) is None
    weak = counted(5, [False, False, False], sample({"fares.py": ProgramFile(b"", PROGRAM)}, "seed", most=5))
    assert weak is not None
    assert (weak.sampled, weak.killed, len(weak.survivors)) == (3, 0, 3)
    assert weak.too_many_survive
    assert weak.words.startswith("the tests do not notice when, in ")


@pytest.mark.parametrize(("killed", "weak"), [(6, False), (5, True)])
def test_six_of_ten_are_enough(killed, weak):
    assert Mutants(sampled=10, killed=killed).too_many_survive is weak
