"""The expressions of a test that are evaluated, the inputs near theirs, and what the results mean."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest

from redstart.toolkit.languages.python.nearby_inputs import inputs_near, is_boundary
from redstart.toolkit.languages.python.nearby_judgement import CallOutcome, ComparedExpression, InputPoint, judge
from redstart.toolkit.languages.python.nearby_questions import questions
from redstart.toolkit.languages.python.read_tests import TestFile

MODULE = """
import json
import subprocess
import pytest
from math import floor
from code_ import Thing, f, g

TABLE = [("ab", 1), ("cd", 2)]
TEXT = "module text"

"""


def sources(test: str, modules: tuple[str, ...] = ()) -> list[str]:
    file = TestFile((MODULE + textwrap.dedent(test)).encode())
    function = file.function("test_it")
    assert function is not None
    return [question.source for question in questions(file, function, modules)]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("def test_it():\n    assert f('a', 2) == 3", ["f('a', 2)"]),
        ("def test_it():\n    assert 3 == f('a', 2)", ["f('a', 2)"]),
        ("def test_it():\n    assert not f('a') and g(1) is None", ["f('a')", "g(1)"]),
        ("def test_it():\n    assert f('a') == Thing(1)", ["f('a')"]),
        ("def test_it():\n    assert f(TEXT) == json.loads('{}')", ["f('module text')"]),
        ("def test_it():\n    given = [1, 2]\n    result = f(given)\n    assert result == 3", ["f([1, 2])"]),
        ("def test_it():\n    assert Thing(1).go('x').name == 'y'", ["Thing(1).go('x').name"]),
        ("def test_it():\n    with pytest.raises(ValueError):\n        f('bad')", ["f('bad')"]),
        ("def test_it():\n    for text, size in TABLE:\n        assert f(text) == size", ["f('ab')", "f('cd')"]),
        (
            "@pytest.mark.parametrize('a, want', TABLE)\n@pytest.mark.parametrize('b', [1, 2])\n"
            "def test_it(a, b, want):\n    assert f(a, b) == want",
            ["f('ab', 1)", "f('ab', 2)", "f('cd', 1)", "f('cd', 2)"],
        ),
        (
            "def test_it(self):\n    self.assertEqual(f(1), 2)\n    self.assertRaises(OSError, g, 'x')",
            ["f(1)", "g('x')"],
        ),
    ],
)
def test_questions_stand_alone(test: str, expected: list[str]):
    assert sources(test) == expected


@pytest.mark.parametrize(
    "test",
    [
        "def test_it(tmp_path):\n    assert f(tmp_path) == 1",
        "def test_it(g):\n    assert f(g, 'text') == 1",
        "def test_it():\n    thing = Thing()\n    thing.go(1)\n    assert f(thing) == 1",
        "def test_it():\n    f = 3\n    assert f(1) == 1",
        "def test_it():\n    assert f(1) == g(1)",
        "def test_it():\n    assert len('abc') == 3",
        "def test_it():\n    assert unknown(1) == 3",
        "def test_it():\n    assert subprocess.run(['x']).stdout == ''",
        "async def test_it():\n    assert await f(1) == 3",
    ],
)
def test_what_needs_the_frame_or_is_not_the_projects_is_left_out(test: str):
    assert sources(test) == []


def test_a_module_of_the_project_may_hide_one_of_the_library():
    test = "def test_it():\n    assert floor(1) == 1"
    assert sources(test) == []
    assert sources(test, ("math",)) == ["floor(1)"]


def near(source: str, seed: str = "a") -> list[str]:
    expression = ast.parse(source, mode="eval").body
    return [item.source for item in inputs_near(expression, random.Random(seed))]


def test_numbers_move_a_little():
    assert sorted(near("f(7)")) == ["f(14)", "f(17)", "f(5)", "f(6)", "f(8)", "f(9)"]
    assert near("f(2.5)")
    assert sorted(near("f(0)")) == ["f(1)", "f(10)", "f(2)"]


def test_texts_keep_their_form():
    own = "Go to 42, Now"
    (texts,) = [[ast.literal_eval(item[2:-1]) for item in near(f"f({own!r})")]]
    assert len(texts) == 6
    letters = [text for text in texts if len(text) == len(own)]
    for text in letters:
        differing = [(old, new) for old, new in zip(own, text, strict=True) if old != new]
        assert len(differing) == 1 or text.split()[0] != "Go"
        assert all((old.isdigit(), old.isupper()) == (new.isdigit(), new.isupper()) for old, new in differing)
    assert all(text.count(" ") == 3 and "," in text for text in texts)


def test_every_argument_is_varied_and_nothing_else():
    sample = near("round(f([1, {'k': 'ab'}], 20, key=Thing('xy')), 3)[0]")
    assert len(sample) == 6
    assert all(text.endswith(", 3)[0]") and "'k'" in text for text in sample)
    assert len({text.partition("20")[0] for text in sample}) > 2
    assert any("Thing('xy')" not in text for text in sample)


def test_draws_follow_the_seed():
    own = "f('some longer text here')"
    assert near(own) == near(own)
    assert near(own) != near(own, "b")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("f('')", True), ("f(None, 0)", True), ("f(-1)", True), ("f([7])", True), ("f('ab')", False), ("f([], 5)", False)],
)
def test_boundaries_are_known(source: str, expected: bool):
    assert is_boundary(ast.parse(source, mode="eval").body) is expected


def compared(source: str, before: str, after: str) -> ComparedExpression:
    results = [CallOutcome(text.removeprefix("!"), text.startswith("!")) for text in (before, after)]
    return ComparedExpression(source, *results)


def point(own: str, function: str = "f", *, before: str = "1", after: str = "2", changed: int = 0) -> InputPoint:
    others = tuple(compared(f"{own}{at}", str(at + 5), str(at + (9 if at < changed else 5))) for at in range(4))
    return InputPoint("test", function, is_target=True, boundary=False, own=compared(own, before, after), near=others)


def test_one_isolated_point_is_evidence_only():
    judgement = judge([point("f(3)")])
    assert judgement.doubts == ()
    assert judgement.notes == ("changed only there: f(3) 1 -> 2; none of 4 inputs near it",)


def test_points_of_two_functions_count_together():
    (doubt,) = judge([point("f(3)"), point("g(4)", "g"), point("g(5)", "g")]).doubts
    assert doubt.words.endswith("own inputs: f(3) and 2 others, not for inputs near them")


def test_a_changed_input_near_a_target_speaks_for_its_function():
    assert judge([point("f(3)"), point("f(4)"), point("f(5)", changed=1)]).doubts == ()
    assert judge([point("f(3)"), point("f(4)"), point("g(5)", "g", changed=1)]).doubts


def test_a_boundary_is_no_isolated_point():
    points = [point("f(0)"), point("f(1)")]
    assert judge(points).doubts
    assert judge([item._replace(boundary=True) for item in points]).doubts == ()


def with_near(own: InputPoint, *results: tuple[str, int]) -> InputPoint:
    """Return the same point with these unchanged results near it, each of one literal."""
    others = [compared(f"{own.own.source}{text}", text, text)._replace(literal=literal) for text, literal in results]
    return own._replace(near=tuple(others))


def test_a_point_that_moves_over_an_edge_is_not_isolated():
    points = [point("f(90)", before="B", after="A"), point("f(75)", before="C", after="B")]
    edges = [(("A", 0), ("A", 0), ("B", 0)), (("B", 0), ("C", 0), ("C", 0))]
    assert judge([with_near(item, *near) for item, near in zip(points, edges, strict=True)]).doubts == ()
    accidents = [(("A", 0), ("A", 0), ("B", 1)), (("B", 0), ("C", 1), ("C", 1))]
    assert judge([with_near(item, *near) for item, near in zip(points, accidents, strict=True)]).doubts


def test_other_exceptions_for_the_tests_inputs_alone_are_doubted():
    answered = point("f('80')", before="80", after="80")
    points = [point(own, before="!ValueError", after="!Bad") for own in ("f('http')", "f('x1')")]
    refused = tuple(compared(f"f('{at}')", "!ValueError", "!ValueError") for at in range(3))
    assert judge([answered, *(item._replace(near=refused) for item in points)]).doubts


def test_too_few_comparable_inputs_say_nothing():
    points = [point("f(3)"), point("f(4)")]
    refused = tuple(compared("f(x)", "!KeyError", "!KeyError") for _ in range(2))
    assert judge([item._replace(near=item.near[:2] + refused) for item in points]).doubts == ()
    assert judge([item._replace(near=item.near[:3] + refused) for item in points]).doubts


def test_a_check_that_no_longer_refuses_is_doubted():
    others = tuple(compared(f"f({at})", "!ValueError", "1") for at in range(3))
    beside = InputPoint(
        "test", "f", is_target=False, boundary=False, own=compared("f(9)", "!ValueError", "1"), near=others
    )
    assert [doubt.words for doubt in judge([beside]).doubts] == ["f() accepts inputs that it refused before: f(9)"]
    assert judge([beside._replace(near=(*others, compared("f(8)", "1", "1")))]).doubts == ()
