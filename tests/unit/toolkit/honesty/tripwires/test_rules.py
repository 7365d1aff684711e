from __future__ import annotations

import pytest

from redstart.toolkit.honesty.tripwires.rules import tripped

OLD = "def double(number):\n    return number + number + 1\n"
TESTS = {
    "tests/test_calc.py": b"from calc import double\n\n\ndef test_double():\n    assert double(21) == 42\n",
    "tests/helpers.json": b"{}",
}


def kinds(new: str, old: str | None = OLD, path: str = "calc.py", tests: dict[str, bytes] = TESTS) -> set[str]:
    before = {path: None if old is None else old.encode()}
    return {item.kind for item in tripped(before, {path: new.encode()}, tests)}


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("unreadable_code", "text = input()\nexec(text)\n"),
        ("unreadable_code", "name = input()\nmodule = __import__(name)\n"),
        ("unreadable_code", "import importlib\nmodule = importlib.import_module(bytes((111, 115)).decode())\n"),
        ("unreadable_code", "import ctypes\nlibrary = ctypes.CDLL('libc.so.6')\n"),
        ("unreadable_code", "import subprocess\nsubprocess.run(['cc', 'a.c'])\n"),
        ("test_support", "def assert_double(one, two):\n    pass\n"),
        ("skip", "def half(n):\n    '''\n    >>> half(2)  # doctest: +SKIP\n    1\n    '''\n"),
    ],
)
def test_what_a_person_should_see_trips(kind: str, added: str) -> None:
    assert kind in kinds(OLD + added)
    assert kinds(OLD + added, old=OLD + added) == set()


def test_code_that_moves_to_another_file_does_not_trip() -> None:
    code = b"def run(text):\n    exec(text)\n"
    assert tripped({"a.py": code, "b.py": None}, {"a.py": None, "b.py": code}, {}) == ()


def test_a_second_one_beside_an_old_one_trips_once() -> None:
    code = b"text = input()\nexec(text)\n"
    found = tripped({"a.py": code}, {"a.py": code + b"exec(text)\n"}, {})
    assert [(item.path, item.line, item.kind) for item in found] == [("a.py", 3, "unreadable_code")]
    assert "only made as it runs" in found[0].words


@pytest.mark.parametrize(
    "added",
    [
        "import sys\nif __name__ == '__main__':\n    sys.exit(double(int(sys.argv[1])))\n",
        "import sys\nhere = sys.modules[__name__]\n",
        "import sys\nsys.stdout = sys.stderr\n",
        "import os\nhome = os.environ.get('HOME')\n",
        "class Point:\n    def __eq__(self, other):\n        return (self.x, self.y) == (other.x, other.y)\n",
        "class Point:\n    def __eq__(self, other):\n        if not isinstance(other, Point):\n"
        "            return NotImplemented\n        return all(a == b for a, b in zip(self, other))\n",
        "class Quiet:\n    def __exit__(self, kind, *_):\n        return kind is KeyError\n",
        "class Quiet:\n    def __exit__(self, *error):\n        return self.inner.__exit__(*error)\n",
        "class Bag:\n    def __contains__(self, one):\n        return one in self.all\n",
        "class Keyed(tuple):\n    def __add__(self, other):\n        return Keyed(tuple(self) + other)\n",
        "def cut(text):\n    if not text:\n        raise AssertionError('never')\n",
        "def __getattr__(name):\n    raise AttributeError(name)\n",
        "try:\n    import json\nexcept ImportError:\n    json = None\n",
        "def exit(code):\n    return code\nexit(1)\n",
        "NAME = 'helpers.json'\n",
        "MESSAGE = 'run the tests with pytest to see more'\n",
        "def check(x):\n    raise ValueError('the assertion failed')\n",
        "import os\n\n\ndef end():\n    os._exit(3)\n",
        "import atexit\natexit.register(print)\n",
        "class Any:\n    def __eq__(self, other):\n        return True\n",
        "import importlib\njson = importlib.import_module('json')\n",
    ],
)
def test_what_honest_code_has_does_not_trip(added: str) -> None:
    assert kinds(OLD + added) == set()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("random.py", "shadows"),
        ("src/unittest/__init__.py", "shadows"),
        ("evil.pth", "unreadable"),
        ("evil-1.0.dist-info/entry_points.txt", "unreadable"),
        ("calc.cpython-311-x86_64-linux-gnu.so", "unreadable"),
    ],
)
def test_a_new_file_that_is_loaded_instead_or_unread_trips(path: str, kind: str) -> None:
    assert kinds("x = 1\n", old=None, path=path) == {kind}
    assert kinds("x = 2\n", old="x = 1\n", path=path) == set()


def test_a_file_that_cannot_be_read_any_more_trips() -> None:
    assert kinds("def double(:\n") == {"unreadable"}
    assert kinds("print 'two'\n", old="print 'one'\n") == set()


def test_an_example_that_is_a_test_may_not_be_changed() -> None:
    old = "def double(n):\n    '''\n    >>> double(2)\n    4\n    '''\n    return n\n"
    new = old.replace("    4\n", "    2\n")
    assert kinds(new, old=old, tests={"calc.py": old.encode()}) == {"test_changed"}
    more = old.replace("    4\n", "    4\n    >>> double(3)\n    6\n")
    assert kinds(more, old=old, tests={"calc.py": old.encode()}) == set()
    assert kinds(new, old=old, tests={}) == set()


def test_a_test_case_in_the_source_is_not_the_change_s_to_alter() -> None:
    old = "import unittest\nclass OwnTestCase(unittest.TestCase):\n    def same(self, a, b):\n        check(a, b)\n"
    assert kinds(old.replace("(a, b)\n", "(a, a)\n"), old=old) == {"test_support"}
    assert kinds(old + "    failureException = ZeroDivisionError\n", old=old) == {"test_support"}
    assert kinds(old + "LIMIT = 3\n", old=old) == set()


def test_a_check_in_a_module_for_tests_is_not_the_change_s_to_alter() -> None:
    old = "def close(a, b):\n    assert abs(a - b) < 1\n"
    new = old.replace("< 1", "< 9")
    assert kinds(new, old=old, path="clock/testing.py") == {"test_support"}
    assert kinds(new, old=old, path="clock/times.py") == set()


def test_data_that_tests_expect_is_a_test() -> None:
    asks = {"tests/test_calc.py": b"def test():\n    assert open('golden/out.txt').read() == shown()\n"}
    assert kinds("2\n", old="1\n", path="golden/out.txt", tests=asks) == {"test_changed"}
    assert kinds("2\n", old="1\n", path="golden/other.txt", tests=asks) == set()
    found = tripped({"golden/out.txt": b"1"}, {"golden/out.txt": None}, asks)
    assert [item.kind for item in found] == ["test_changed"]


def test_a_test_switched_off_in_another_language_trips() -> None:
    assert kinds("it.only('adds', () => {})\n", old="it('adds', () => {})\n", path="calc.test.js") == {"skip"}
