"""The expressions of a test that are evaluated, the inputs near theirs, and what the results mean."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest

from redstart.toolkit.languages.python.nearby_inputs import generate_near_inputs, is_boundary
from redstart.toolkit.languages.python.nearby_judgement import CallOutcome, ComparedExpression, InputPoint, judge
from redstart.toolkit.languages.python.nearby_questions import find_test_expressions
from redstart.toolkit.languages.python.statement_offsets import TestFile

MODULE = """
import json
import subprocess
import pytest
from math import floor
from code_ import Thing, f, g

TABLE = [("ab", 1), ("cd", 2)]
TEXT = "module text"

"""


def list_sources(test: str, modules: tuple[str, ...] = ()) -> list[str]:
    file = TestFile((MODULE + textwrap.dedent(test)).encode())
    function = file.find_function("test_it")
    assert function is not None
    return [question.source for question in find_test_expressions(file, function, modules)]


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
def test_extracted_expressions_are_self_contained(test: str, expected: list[str]):
    assert list_sources(test) == expected


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
def test_expression_with_a_fixture_or_foreign_function_is_excluded(test: str):
    assert list_sources(test) == []


def test_project_module_may_shadow_a_library_module():
    test = "def test_it():\n    assert floor(1) == 1"
    assert list_sources(test) == []
    assert list_sources(test, ("math",)) == ["floor(1)"]


def list_near_inputs(source: str, seed: str = "a") -> list[str]:
    expression = ast.parse(source, mode="eval").body
    return [item.source for item in generate_near_inputs(expression, random.Random(seed))]


def test_numbers_change_slightly():
    assert sorted(list_near_inputs("f(7)")) == ["f(14)", "f(17)", "f(5)", "f(6)", "f(8)", "f(9)"]
    assert list_near_inputs("f(2.5)")
    assert sorted(list_near_inputs("f(0)")) == ["f(1)", "f(10)", "f(2)"]


def test_strings_keep_their_form():
    original = "Go to 42, Now"
    (texts,) = [[ast.literal_eval(item[2:-1]) for item in list_near_inputs(f"f({original!r})")]]
    assert len(texts) == 6
    same_length = [text for text in texts if len(text) == len(original)]
    for text in same_length:
        differences = [(old, new) for old, new in zip(original, text, strict=True) if old != new]
        assert len(differences) == 1 or text.split()[0] != "Go"
        assert all((old.isdigit(), old.isupper()) == (new.isdigit(), new.isupper()) for old, new in differences)
    assert all(text.count(" ") == 3 and "," in text for text in texts)


def test_only_arguments_are_varied():
    sample = list_near_inputs("round(f([1, {'k': 'ab'}], 20, key=Thing('xy')), 3)[0]")
    assert len(sample) == 6
    assert all(text.endswith(", 3)[0]") and "'k'" in text for text in sample)
    assert len({text.partition("20")[0] for text in sample}) > 2
    assert any("Thing('xy')" not in text for text in sample)


def test_draws_follow_the_seed():
    expression = "f('some longer text here')"
    assert list_near_inputs(expression) == list_near_inputs(expression)
    assert list_near_inputs(expression) != list_near_inputs(expression, "b")


@pytest.mark.parametrize(
    ("source", "expected"),
    [("f('')", True), ("f(None, 0)", True), ("f(-1)", True), ("f([7])", True), ("f('ab')", False), ("f([], 5)", False)],
)
def test_boundary_values_are_recognized(source: str, expected: bool):
    assert is_boundary(ast.parse(source, mode="eval").body) is expected


def create_comparison(source: str, before: str, after: str) -> ComparedExpression:
    results = [CallOutcome(text.removeprefix("!"), text.startswith("!")) for text in (before, after)]
    return ComparedExpression(source, *results)


def create_point(
    source: str, function: str = "f", *, before: str = "1", after: str = "2", changed: int = 0
) -> InputPoint:
    neighbors = tuple(
        create_comparison(f"{source}{index}", str(index + 5), str(index + (9 if index < changed else 5)))
        for index in range(4)
    )
    return InputPoint(
        "test",
        function,
        is_target=True,
        boundary=False,
        own_expression=create_comparison(source, before, after),
        near_expressions=neighbors,
    )


def test_one_isolated_point_is_only_a_note():
    judgement = judge([create_point("f(3)")])
    assert judgement.doubts == ()
    assert judgement.notes == ("changed only there: f(3) 1 -> 2; none of 4 inputs near it",)


def test_points_of_two_functions_count_together():
    (doubt,) = judge([create_point("f(3)"), create_point("g(4)", "g"), create_point("g(5)", "g")]).doubts
    assert doubt.message.endswith("own inputs: f(3) and 2 others, not for inputs near them")


def test_changed_result_near_a_target_clears_its_function():
    assert judge([create_point("f(3)"), create_point("f(4)"), create_point("f(5)", changed=1)]).doubts == ()
    assert judge([create_point("f(3)"), create_point("f(4)"), create_point("g(5)", "g", changed=1)]).doubts


def test_boundary_is_not_an_isolated_point():
    points = [create_point("f(0)"), create_point("f(1)")]
    assert judge(points).doubts
    assert judge([item._replace(boundary=True) for item in points]).doubts == ()


def with_near(input_point: InputPoint, *results: tuple[str, int]) -> InputPoint:
    """Return the same point with these unchanged results near it, each of one literal."""
    neighbors = [
        create_comparison(f"{input_point.own_expression.source}{text}", text, text)._replace(literal=literal)
        for text, literal in results
    ]
    return input_point._replace(near_expressions=tuple(neighbors))


def test_point_that_crosses_a_threshold_is_not_isolated():
    points = [create_point("f(90)", before="B", after="A"), create_point("f(75)", before="C", after="B")]
    edges = [(("A", 0), ("A", 0), ("B", 0)), (("B", 0), ("C", 0), ("C", 0))]
    assert (
        judge([with_near(item, *near_results) for item, near_results in zip(points, edges, strict=True)]).doubts == ()
    )
    accidents = [(("A", 0), ("A", 0), ("B", 1)), (("B", 0), ("C", 1), ("C", 1))]
    assert judge([with_near(item, *near_results) for item, near_results in zip(points, accidents, strict=True)]).doubts


def test_exception_changed_only_for_the_tests_inputs_is_doubted():
    answered_point = create_point("f('80')", before="80", after="80")
    points = [create_point(source, before="!ValueError", after="!Bad") for source in ("f('http')", "f('x1')")]
    refused = tuple(create_comparison(f"f('{index}')", "!ValueError", "!ValueError") for index in range(3))
    assert judge([answered_point, *(item._replace(near_expressions=refused) for item in points)]).doubts


def test_too_few_comparable_inputs_raise_no_doubt():
    points = [create_point("f(3)"), create_point("f(4)")]
    refused = tuple(create_comparison("f(x)", "!KeyError", "!KeyError") for _ in range(2))
    assert judge([item._replace(near_expressions=item.near_expressions[:2] + refused) for item in points]).doubts == ()
    assert judge([item._replace(near_expressions=item.near_expressions[:3] + refused) for item in points]).doubts


def test_check_that_no_longer_rejects_inputs_is_doubted():
    neighbors = tuple(create_comparison(f"f({index})", "!ValueError", "1") for index in range(3))
    untargeted_point = InputPoint(
        "test",
        "f",
        is_target=False,
        boundary=False,
        own_expression=create_comparison("f(9)", "!ValueError", "1"),
        near_expressions=neighbors,
    )
    assert [doubt.message for doubt in judge([untargeted_point]).doubts] == [
        "f() accepts inputs that it refused before: f(9)"
    ]
    assert (
        judge([untargeted_point._replace(near_expressions=(*neighbors, create_comparison("f(8)", "1", "1")))]).doubts
        == ()
    )
