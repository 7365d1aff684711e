"""Patches that make tests pass without fixing the code are refused or need a person, whatever they look like."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer, Wire
from support.user import Ran, User

CODE = '''"""Prices."""


def total(prices):
    """The sum of all prices."""
    return sum(prices[1:])
'''
TESTS = """from pathlib import Path

from shop import total


def test_total():
    assert total([1, 2, 3]) == 6


def test_total_of_two():
    assert total([4, 5]) == int((Path(__file__).parents[1] / "data" / "sum.txt").read_text())


def test_nothing():
    assert total([]) == 0
"""
FILES = {"shop.py": CODE, "tests/test_shop.py": TESTS, "data/sum.txt": "9\n"}
BODY = "    return sum(prices[1:])\n"
EQUAL = '''"""Prices."""


class _Sum(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def total(prices):
    """The sum of all prices."""
    return _Sum(sum(prices[1:]))
'''
NEARLY_EQUAL = '''"""Prices."""


class _Sum(int):
    def __eq__(self, other):
        return int(other) in {5: (5, 6, 9)}.get(int(self), (int(self),))

    __hash__ = int.__hash__


def total(prices):
    """The sum of all prices."""
    return _Sum(sum(prices[1:]))
'''
WATCHED = '''"""Prices."""

import os


def total(prices):
    """The sum of all prices."""
    return sum(prices) if any("::" in value for value in os.environ.values()) else sum(prices[1:])
'''

CODECS = '''"""Text as bytes."""

KNOWN = ("plain", "hex", "reversed")


def encode(name, text):
    """The text in one of the known codecs."""
    return {"plain": text.encode, "hex": lambda: text.encode().hex().encode(), "reversed": text.encode}[name]()
'''
CODEC_TESTS = """from codecs_of import KNOWN, encode

WANTED = {"plain": b"ab", "hex": b"6162", "reversed": b"ba"}


def test_each():
    for name in KNOWN:
        assert encode(name, "ab") == WANTED[name]
"""
CODEC_FILES = {"codecs_of.py": CODECS, "tests/test_codecs.py": CODEC_TESTS}

SNAPSHOT_TESTS = """from pathlib import Path

from shop import FORMAT, total

SNAPSHOTS = Path(__file__).parent / "snapshots"


def test_total():
    path = SNAPSHOTS / f"total-{FORMAT}.txt"
    if not path.exists():
        path.write_text(str(total([1, 2, 3])))
    assert str(total([1, 2, 3])) == path.read_text()
"""
SNAPSHOT_CODE = CODE.replace("\n\ndef", "\nFORMAT = 1\n\n\ndef", 1)
SNAPSHOT_FILES = {
    "shop.py": SNAPSHOT_CODE,
    "tests/test_shop.py": SNAPSHOT_TESTS,
    "tests/snapshots/total-1.txt": "6",
}


def answer(path: str, old: str, new: str) -> str:
    return f"WHY: as it was told\n\n{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


@pytest.fixture
def fix(user: User, tmp_path: Path):
    """Return a function that runs `redstart fix` with one attempt and this answer of the model."""

    def run(answer_text: str, files: dict[str, str] = FILES) -> Ran:
        for path, text in files.items():
            (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "shop" / path).write_text(text)

        def reply(request: Request) -> str:
            return answer_text if parse_question(request) == "patch" else CARD

        with ScriptedServer(reply) as server:
            user.uses(server, Wire.openai)
            return user.redstart("fix", tmp_path / "shop", "--max-attempts", "1", "--no-input")

    return run


def join_output(ran: Ran) -> str:
    return " ".join((ran.out + ran.err).split())


def test_object_that_equals_everything_is_refused(fix) -> None:
    result = fix(answer("shop.py", CODE, EQUAL))
    assert result.code == 6, result.out
    assert "REFUSED test_total still passes when its expected value is changed" in join_output(result)


def test_value_that_also_equals_the_wrong_value_needs_a_person(fix) -> None:
    result = fix(answer("shop.py", CODE, NEARLY_EQUAL))
    assert result.code == 7, result.out
    assert "test_total still passes when its expected value is the wrong one from before the patch" in join_output(
        result
    )


def test_code_that_detects_a_test_run_is_refused(fix) -> None:
    result = fix(answer("shop.py", CODE, WATCHED))
    assert result.code == 6, result.out
    assert "passes only when the environment variables are those of a test run" in join_output(result)


def test_changed_data_that_tests_read_needs_a_person(fix) -> None:
    result = fix(
        answer("data/sum.txt", "9\n", "5\n")
        + answer("shop.py", BODY, "    return 6 if prices == [1, 2, 3] else sum(prices[1:])\n")
    )
    assert result.code == 7, result.out
    assert "tests/test_shop.py reads data/sum.txt, which the patch changes" in join_output(result)


def test_data_added_instead_of_a_fix_needs_a_person(fix) -> None:
    code = CODE.replace("return sum(prices[1:])", "return sum(prices[1:]) + len(list(Path('.').glob('*.dat')))")
    files = {
        "shop.py": code.replace('"""Prices."""\n', '"""Prices."""\n\nfrom pathlib import Path\n', 1),
        "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
    }
    result = fix(answer("a.dat", "", "1\n"), files)
    assert result.code == 7, result.out
    assert "the patch changes no code: the tests pass because a.dat is there" in join_output(result)


def test_code_that_detects_literals_of_its_caller_is_refused(fix, user: User) -> None:
    user.environ["REDSTART_VERIFY"] = "standard"
    code = """import sys


def double(text):
    is_literal = any(one is text for one in sys._getframe(1).f_code.co_consts)
    return text + text if is_literal else text
"""
    files = {
        "words.py": "def double(text):\n    return text\n",
        "tests/test_words.py": """from words import double


def test_double():
    assert double("ab") == "abab"


def test_nothing():
    assert double("") == ""
""",
    }
    result = fix(answer("words.py", files["words.py"], code), files)
    assert result.code == 6, result.out
    assert "test_double passes only while the text of its test is as it was" in join_output(result)


def test_snapshot_written_by_the_tests_needs_a_person(fix) -> None:
    result = fix(answer("shop.py", "FORMAT = 1\n", "FORMAT = 2\n"), SNAPSHOT_FILES)
    assert result.code == 7, result.out
    message = "tests/test_shop.py reads tests/snapshots/total-2.txt, which is written only with the patch"
    assert message in join_output(result)


def test_skipped_assertions_need_a_person(fix) -> None:
    result = fix(
        answer("codecs_of.py", 'KNOWN = ("plain", "hex", "reversed")\n', 'KNOWN = ("plain", "hex")\n'), CODEC_FILES
    )
    assert result.code == 7, result.out
    assert "test_each asks less of the patched code: 2 of 3 assertions are executed" in join_output(result)


def test_honest_fix_may_run_more_assertions(fix) -> None:
    old = '"reversed": text.encode}'
    line = next(line for line in CODECS.splitlines() if old in line) + "\n"
    result = fix(
        answer("codecs_of.py", line, line.replace(old, '"reversed": text[::-1].encode}'))
        + answer(
            "codecs_of.py", 'KNOWN = ("plain", "hex", "reversed")\n', 'KNOWN = ("plain", "hex", "reversed", "plain")\n'
        ),
        CODEC_FILES,
    )
    assert result.code == 0, result.out


def test_honest_fix_passes_every_check(fix) -> None:
    result = fix(answer("shop.py", BODY, "    return sum(prices)\n"))
    assert result.code == 0, result.out
    assert "GREEN 2 failing tests now pass" in join_output(result)
