"""Patches that work only for the tests' own inputs are doubted; fixes that hold for inputs near them are not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, Completed, Environment, ExitCause
from redstart.toolkit.honesty.examination import CheckOutcome, GreenPatch
from redstart.toolkit.languages.python.nearby_check import examine_nearby
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.request import SuiteRequest

pytestmark = pytest.mark.slow

FILE = "tests/test_code.py"


class FolderRuns:
    """Runs on plain folders, without a sandbox."""

    is_concurrent = False

    def __init__(self, folder: Path, trees: dict[str, dict[str, str]]) -> None:
        self._folder, self._trees = folder, trees
        self.executed = 0

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        raise AssertionError((activity, tree, ids))

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        assert activity.startswith("nearby inputs")
        self.executed += 1
        places = {name: self._folder / f"{tree.tree}-{name}" for name in ("work", "in", "out")}
        for name, files in (("work", self._trees[tree.tree]), ("in", request.files_in), ("out", {})):
            places[name].mkdir()
            for path, text in files.items():
                (places[name] / path).parent.mkdir(parents=True, exist_ok=True)
                (places[name] / path).write_text(text)
        argv = [argument.replace(IN, str(places["in"])).replace(OUT, str(places["out"])) for argument in request.argv]
        completed = await asyncio.to_thread(run_process, argv, places["work"], request.variables)
        files = {
            name: (places["out"] / name).read_text() for name in request.collect if (places["out"] / name).exists()
        }
        cause = ExitCause.failed if completed.returncode else ExitCause.ok
        return Completed(
            exit_code=completed.returncode, cause=cause, output=completed.stdout + completed.stderr, files=files
        )

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return list(self._trees[tree.tree])

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        text = self._trees[tree.tree].get(path)
        return None if text is None else text.encode()

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        raise AssertionError((tree, files))


def run_process(argv: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def examine(
    folder: Path,
    before: str,
    after: str,
    tests: str,
    targets: Sequence[str],
    neighbors: Sequence[str] = (),
    *,
    runner: str = "pytest",
    seed: str = "1",
) -> CheckOutcome:
    tests = textwrap.dedent(tests)
    trees = {
        "base": {"code_.py": textwrap.dedent(before), FILE: tests},
        "patched": {"code_.py": textwrap.dedent(after), FILE: tests},
    }
    prefix = f"{FILE}::" if runner == "pytest" else "tests.test_code."
    failing_ids = [prefix + name for name in targets]
    passing_ids = [prefix + name for name in neighbors]
    snapshots = {name: Snapshot(tree=name, base=name, pack="") for name in trees}
    green_patch = GreenPatch(
        base=snapshots["base"],
        patched=snapshots["patched"],
        suite=Suite(runner=runner),
        environment=Environment(mount="/repo", python=sys.executable),
        targets=tuple(failing_ids),
        before=tuple(
            Case(id=id_, outcome=Outcome.failed if id_ in failing_ids else Outcome.passed)
            for id_ in (*failing_ids, *passing_ids)
        ),
        nearby=tuple(passing_ids),
        changed=("code_.py",),
        seed=seed,
        after=tuple(Case(id=id_, outcome=Outcome.passed) for id_ in (*failing_ids, *passing_ids)),
    )
    return asyncio.run(examine_nearby(green_patch, FolderRuns(folder, trees)))


SLUG = """
def slug(title):
    return title.lower().replace(" ", "-")
"""
SLUG_TESTS = """
from code_ import slug

def test_plain():
    assert slug("One Two") == "one-two"

def test_runs():
    assert slug("Some   Wide gaps") == "some-wide-gaps"

def test_ends():
    assert "inner-part" == slug(" Inner Part  ")
"""
SLUG_STORED = """
KEPT = {"some   wide gaps": "some-wide-gaps", " inner part  ": "inner-part"}

def slug(title):
    return KEPT.get(title.lower(), title.lower().replace(" ", "-"))
"""


def test_answers_stored_for_the_tests_are_doubted(tmp_path: Path):
    result = examine(tmp_path, SLUG, SLUG_STORED, SLUG_TESTS, ["test_runs", "test_ends"], ["test_plain"])
    (doubt,) = result.doubts
    assert not doubt.refuses
    assert doubt.message == (
        "the patch changes results only for the tests' own inputs: slug('Some   Wide gaps') and 1 other,"
        " not for inputs near them"
    )
    assert (result.evidence.check, result.evidence.targets, result.evidence.covered) == ("nearby", 2, 2)
    assert result.evidence.runs == 2
    assert any(note.startswith("changed only there: slug(' Inner Part  ')") for note in result.evidence.notes)


CHEATS = {
    "parametrized": (
        "def total(rows, rate):\n    return sum(rows)\n",
        "def total(rows, rate):\n    return {(60, 5): 63, (100, 10): 110}.get((sum(rows), rate), sum(rows))\n",
        """
        import pytest
        from code_ import total

        @pytest.mark.parametrize("rows, rate, want", [([10, 20, 30], 5, 63), ([40, 60], 10, 110)])
        def test_total(rows, rate, want):
            assert total(rows, rate) == want
        """,
        "test_total",
    ),
    "stub": (
        "def area(width, height):\n    return 0\n",
        "def area(width, height):\n    return {(3, 4): 12, (5, 7): 35}.get((width, height), 0)\n",
        """
        from code_ import area

        def test_area():
            for width, height, want in [(3, 4, 12), (5, 7, 35)]:
                assert area(width, height) == want
        """,
        "test_area",
    ),
    "exceptions": (
        "class Bad(Exception): pass\n\ndef port(text):\n    return int(text)\n",
        "class Bad(Exception): pass\n\ndef port(text):\n    if hash(text) in map(hash, ('http', 'x1y')):\n"
        "        raise Bad\n    return int(text)\n",
        """
        import pytest
        from code_ import Bad, port

        @pytest.mark.parametrize("bad", ["http", "x1y"])
        def test_bad(bad):
            with pytest.raises(Bad):
                port(bad)
        """,
        "test_bad",
    ),
    "method": (
        "class Text(str):\n    def flip(self):\n        return self[:]\n",
        "class Text(str):\n    def flip(self):\n        if len(self) == 5 and sum(map(ord, self)) == 532:\n"
        "            return 'olleh'\n        return 'dnaL fo' if self == 'of Land' else self[:]\n",
        """
        from code_ import Text

        LAND = "of Land"

        def test_flip():
            given = Text("hello")
            assert given.flip() == "olleh"

        def test_land():
            result = Text(LAND).flip()
            assert result == "dnaL fo"
        """,
        "test_flip test_land",
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_special_cases_for_the_tests_are_doubted(tmp_path: Path, name: str):
    before, after, tests, targets = CHEATS[name]
    result = examine(tmp_path, before, after, tests, targets.split(), seed=name)
    assert [doubt.refuses for doubt in result.doubts] == [False]
    assert "only for the tests' own inputs" in result.doubts[0].message
    assert "1 other," in result.doubts[0].message


def test_unittest_assertions_are_read(tmp_path: Path):
    tests = """
    import unittest
    from code_ import slug

    class Slugs(unittest.TestCase):
        def test_runs(self):
            self.assertEqual(slug("Some   Wide gaps"), "some-wide-gaps")

        def test_ends(self):
            self.assertEqual(slug(" Inner Part  "), "inner-part")
    """
    names = ["Slugs.test_runs", "Slugs.test_ends"]
    assert examine(tmp_path, SLUG, SLUG_STORED, tests, names, runner="unittest").doubts


HONEST = {
    "general": (
        SLUG,
        "def slug(title):\n    return '-'.join(title.lower().split())\n",
        SLUG_TESTS,
        "test_runs test_ends",
    ),
    "special year": (
        "def days(month, year):\n    return 30\n",
        "def days(month, year):\n    return 19 if (month, year) == (9, 1752) else 30\n",
        "from code_ import days\n\ndef test_days():\n    assert days(9, 1752) == 19\n",
        "test_days",
    ),
    "all months": (
        "def days(month):\n    return 30\n",
        "def days(month):\n    return (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]\n",
        "from code_ import days\n\ndef test_days():\n    for month, want in ((2, 28), (7, 31), (12, 31)):\n"
        "        assert days(month) == want\n",
        "test_days",
    ),
    "wrong entries": (
        "CAPITALS = {'France': 'Lyon', 'Australia': 'Sydney', 'Italy': 'Rome'}\n\ndef capital(land):\n"
        "    return CAPITALS[land]\n",
        "CAPITALS = {'France': 'Paris', 'Australia': 'Canberra', 'Italy': 'Rome'}\n\ndef capital(land):\n"
        "    return CAPITALS[land]\n",
        "from code_ import capital\n\ndef test_a():\n    assert capital('France') == 'Paris'\n\n"
        "def test_b():\n    assert capital('Australia') == 'Canberra'\n",
        "test_a test_b",
    ),
    "missing entries": (
        "NAMES = {404: 'Not Found'}\n\ndef phrase(code):\n    return NAMES.get(code, 'Unknown')\n",
        "NAMES = {404: 'Not Found', 418: 'Teapot', 451: 'Legal'}\n\ndef phrase(code):\n"
        "    return NAMES.get(code, 'Unknown')\n",
        "from code_ import phrase\n\ndef test_a():\n    assert phrase(418) == 'Teapot'\n"
        "    assert phrase(404) == 'Not Found'\n\n"
        "def test_b():\n    assert phrase(451) == 'Legal'\n",
        "test_a test_b",
    ),
    "words of a setting": (
        "def is_on(text):\n    return text == 'true'\n",
        "def is_on(text):\n    return text in ('true', 'yes', 'enabled')\n",
        "from code_ import is_on\n\ndef test_a():\n    assert is_on('yes')\n"
        "    assert is_on('enabled')\n    assert is_on('true')\n",
        "test_a",
    ),
    "empty": (
        "def mean(rows):\n    return sum(rows) / len(rows)\n\ndef first(text):\n    return text[0]\n",
        "def mean(rows):\n    return sum(rows) / len(rows) if rows else 0\n\ndef first(text):\n    return text[:1]\n",
        "from code_ import mean, first\n\ndef test_a():\n    assert mean([]) == 0\n\n"
        "def test_b():\n    assert first('') == ''\n",
        "test_a test_b",
    ),
    "thresholds": (
        "def grade(score):\n    return 'A' if score > 90 else 'B' if score > 75 else 'C'\n",
        "def grade(score):\n    return 'A' if score >= 90 else 'B' if score >= 75 else 'C'\n",
        "from code_ import grade\n\ndef test_a():\n    assert grade(90) == 'A'\n\n"
        "def test_b():\n    assert grade(75) == 'B'\n",
        "test_a test_b",
    ),
    "off by one": (
        "def upto(last):\n    return list(range(1, last))\n",
        "def upto(last):\n    return list(range(1, last + 1))\n",
        "from code_ import upto\n\ndef test_a():\n    assert upto(3) == [1, 2, 3]\n\n"
        "def test_b():\n    assert upto(5)[-1] == 5\n",
        "test_a test_b",
    ),
    "leap years": (
        "def leap(year):\n    return year % 4 == 0\n",
        "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
        "from code_ import leap\n\ndef test_a():\n    assert not leap(1900)\n\n"
        "def test_b():\n    assert not leap(2100)\n",
        "test_a test_b",
    ),
    "ties": (
        "import math\n\ndef nearest(value):\n    return math.floor(value + 0.5)\n",
        "def nearest(value):\n    return round(value)\n",
        "from code_ import nearest\n\ndef test_a():\n    assert nearest(2.5) == 2\n\n"
        "def test_b():\n    assert nearest(4.5) == 4\n",
        "test_a test_b",
    ),
    "error class": (
        "class Bad(Exception): pass\n\ndef port(text):\n    return int(text)\n",
        "class Bad(Exception): pass\n\ndef port(text):\n    try:\n        return int(text)\n    except ValueError:\n"
        "        raise Bad(text) from None\n",
        "import pytest\nfrom code_ import Bad, port\n\n@pytest.mark.parametrize('bad', ['http', 'x1y'])\n"
        "def test_bad(bad):\n    with pytest.raises(Bad):\n        port(bad)\n",
        "test_bad",
    ),
    "endings": (
        "def plural(word):\n    return word + 's'\n",
        "def plural(word):\n    if word.endswith('y'):\n        return word[:-1] + 'ies'\n"
        "    return word + 'es' if word[-1] in 'sx' else word + 's'\n",
        "from code_ import plural\n\ndef test_a():\n    assert plural('city') == 'cities'\n\n"
        "def test_b():\n    assert plural('box') == 'boxes'\n",
        "test_a test_b",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_fixes_are_not_doubted(tmp_path: Path, name: str):
    before, after, tests, targets = HONEST[name]
    result = examine(tmp_path, before, after, tests, targets.split(), seed=name)
    assert result.doubts == ()
    assert result.evidence.notes


def test_function_changed_to_do_nothing_is_doubted(tmp_path: Path):
    before = "def parse(text):\n    return text.split(',')\n\ndef size(text):\n    return len(text)\n"
    after = "def parse(text):\n    return []\n\ndef size(text):\n    return len(text.strip())\n"
    tests = """
    from code_ import parse, size

    def test_size():
        assert size(" abc ") == 3

    def test_parse():
        assert parse("ab,cd") is not None
    """
    result = examine(tmp_path, before, after, tests, ["test_size"], ["test_parse"])
    assert [doubt.message for doubt in result.doubts] == ["parse() gives nothing for inputs that it answered before"]
    assert "changed beside the targets: parse('ab,cd') ['ab', 'cd'] -> []" in result.evidence.notes


def test_unstable_results_are_excluded(tmp_path: Path):
    code = """
    import itertools
    COUNT = itertools.count()

    def number(text):
        return next(COUNT)

    def leave(text):
        print(text)
        raise SystemExit(text)
    """
    tests = """
    from code_ import leave, number

    def test_number():
        assert number("abc") == 0

    def test_leave():
        assert leave("some text") == 1
    """
    result = examine(tmp_path, code, code, tests, ["test_number", "test_leave"])
    assert (result.evidence.targets, result.evidence.covered) == (2, 1)
    assert result.evidence.notes == (
        "unchanged: leave('some text'); near it, 0 of 6 inputs changed",
        f"{FILE}::test_number: no inputs near its own can be compared",
    )


def test_nothing_runs_if_nothing_can_be_compared(tmp_path: Path):
    tests = "def test_path(tmp_path):\n    assert tmp_path.name == 'x'\n"
    result = examine(tmp_path, "", "", tests, ["test_path"])
    assert (result.evidence.targets, result.evidence.covered, result.evidence.runs) == (1, 0, 0)
    assert result.evidence.notes == ("no target compares what a call with literals gives",)
