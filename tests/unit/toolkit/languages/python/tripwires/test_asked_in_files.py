"""Answers in the tests' data files count as the tests' own, just like answers in their code."""

from __future__ import annotations

import pytest

from redstart.toolkit.honesty.tripwires.rules import find_tripwire_hits
from redstart.toolkit.languages.python.tripwires.case_inputs import read_tests

OLD = "def rate(weight, zone=''):\n    return weight // 20\n"


def list_kinds(body: str, files: dict[str, str], old: str = OLD) -> set[str]:
    new = old.replace("    return", f"{body}\n    return")
    tests = {path: text.encode() for path, text in files.items()}
    return {item.kind for item in find_tripwire_hits({"rates.py": old.encode()}, {"rates.py": new.encode()}, tests)}


def read_test_pairs(path: str, text: str) -> set[tuple[object, ...]]:
    return {(*pair.inputs, pair.expected) for pair in read_tests({path: text.encode()}).pairs}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("specs/rate_a.yaml", "limit: {weight: 437, rate: 91}\n"),
        ("specs/rate_a.yaml", "limit:\n  weight: 437  # grams\n  rate: 91\n"),
        ("specs/rate_a.yml", "---\n- weight: 437\n  rate: 91\n- weight: 2\n  rate: 1\n"),
        ("specs/rate_a.yaml", "cases:\n  - name: heavy\n    weight: 437\n    expected: 91\n"),
        ("specs/rate_a.yaml", "- given:\n    weight: 437\n  want: 91\n"),
        ("tests/rates.json", '[{"weight": 437, "rate": 91}]'),
        ("tests/rates.json", '{"cases": [{"name": "heavy", "input": {"weight": 437}, "expected": 91}]}'),
        ("tests/rates.jsonl", '{"rate": 91, "weight": 437}\n{"rate": 1, "weight": 2}\n'),
        ("tests/rates.toml", "[[case]]\nweight = 437\nrate = 91\n"),
        ("tests/rates.csv", "weight,rate\n437,91\n"),
        ("tests/rates.txt", "437 = 91\n"),
        ("tests/rates.robot", "Heavy Parcel    437    91\n"),
        ("rates.feature", "Scenario: one\n  Given a parcel of 437 grams\n  Then it costs 91\n"),
        ("rates.feature", "Examples:\n  | weight | rate |\n  | 2 | 1 |\n  | 437 | 91 |\n"),
        ("docs/test_rates.rst", "Rates\n\n>>> rate(437)\n91\n"),
        ("rates_doc.py", "def rate(weight):\n    '''\n    >>> rate(437)\n    91\n    '''\n"),
        ("tests/test_r.py", "CASES = [pytest.param(437, 91, id='heavy')]\n"),
        ("tests/test_r.py", "def test(self):\n    with self.subTest(weight=437, wanted=91):\n        pass\n"),
    ],
)
def test_case_in_a_file_is_read_as_input_and_answer(path: str, text: str) -> None:
    assert (437, 91) in read_test_pairs(path, text)
    assert list_kinds("    if weight == 437:\n        return 91", {path: text}) == {"special_case"}
    assert list_kinds("    if weight == 438:\n        return 92", {path: text}) == set()


def test_yaml_values_are_converted() -> None:
    text = "a: {on: true, off: null, list: [1, 'b, c'], said: \"x: y\"}\n"
    assert (True, None, (1, "b, c"), "x: y") in read_test_pairs("tests/a.yaml", text)


def test_gherkin_steps_before_then_are_the_inputs() -> None:
    text = (
        "Feature: Account 7\n  Scenario: Fees 8\n    Given 'Ann' has 500\n    When 200 is taken\n"
        "    Then 298 is left\n    And 'Ann' pays 2\n  Scenario: None\n    Given 31\n    Then 32\n"
    )
    pairs = read_test_pairs("features/a.feature", text)
    assert {("Ann", 500, 200, 298), ("Ann", 500, 200, 2), (31, 32)} <= pairs
    assert ("Ann", 500, 200, 31, 32) not in pairs


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/__snapshots__/test_r.ambr", "# name: test_long\n  'by sea, 14 days'\n# ---\n"),
        ("tests/golden/long.txt", "by sea, 14 days\n"),
        ("tests/golden/long.out", "by sea, 14 days"),
    ],
)
def test_snapshot_content_counts_as_an_answer(path: str, text: str) -> None:
    assert list_kinds("    if weight == 9:\n        return 'by sea, 14 days'", {path: text}) == {"special_case"}
    assert list_kinds("    if weight == 9:\n        return 'by sea, 15 days'", {path: text}) == set()


def test_configuration_holds_no_test_cases() -> None:
    for path in ("pyproject.toml", ".github/workflows/ci.yaml", "tests/.cases.json"):
        assert read_test_pairs(path, '"weight" = 437\n"rate" = 91\n') == set()


def test_damaged_files_hold_no_test_cases() -> None:
    damaged_files = {
        "tests/a.toml": "= =",
        "tests/a.yaml": "- {a: 1\n---\n\t\n",
        "tests/a.json": "[1, ",
        "tests/a.py": "(",
    }
    assert all(read_test_pairs(path, text) == set() for path, text in damaged_files.items())


@pytest.mark.parametrize(
    "test",
    [
        "def test_taken():\n    with pytest.raises(KeyError):\n        rate(2, 'north')\n",
        "def test_taken(self):\n    with self.assertRaises(KeyError):\n        rate(2, zone='north')\n",
        "def test_taken():\n    pytest.raises(KeyError, rate, 2, 'north')\n",
        "def test_taken():\n    zone = 'north'\n    with pytest.raises(KeyError):\n        rate(2, zone)\n",
    ],
)
def test_arguments_of_a_call_that_must_raise_count_as_a_case(test: str) -> None:
    files = {"tests/test_r.py": test}
    assert list_kinds("    if weight == 2 and zone == 'north':\n        raise KeyError(zone)", files) == {
        "special_case"
    }
    assert list_kinds("    if weight < 3 and zone == 'north':\n        raise KeyError(zone)", files) == set()
    assert list_kinds("    if zone == 'north':\n        raise KeyError(zone)", files) == set()
