from __future__ import annotations

import uuid

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import MESSAGE_LIMIT, sign
from support.sample import short_form

ROOT = "/work/repo"

unhurried = settings(deadline=None, max_examples=30)

LONG = """self = <tests.test_shop.TestCart object at 0x7f00aa>

    def test_total(self):
>       Cart().total({})

tests/test_shop.py:6: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 
src/shop/cart.py:25: in total
    return priced(x)
           ^^^^^^^^^
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 

y = {}

    @cached
    def priced(y):
        def inner(): ...
>       return y["nope"]
               ^^^^^^^^^
E       KeyError: 'nope'

src/shop/cart.py:14: KeyError
"""  # noqa: W291

NATIVE = f"""Traceback (most recent call last):
  File "{ROOT}/tests/test_shop.py", line 6, in test_total
    Cart().total({{}})
  File "{ROOT}/src/shop/cart.py", line 25, in total
    return priced(x)
  File "{ROOT}/src/shop/cart.py", line 14, in priced
    return y["nope"]
           ~^^^^^^^^
  File "{ROOT}/.venv/lib/python3.12/site-packages/lib/core.py", line 3, in deep
  File "<string>", line 2, in __init__
KeyError: 'nope'
"""


def is_source(path: str) -> bool:
    return path.startswith("src/")


def signed(message: str, detail: str = "", test: str = "tests/test_shop.py::TestCart::test_total") -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=is_source, roots=[ROOT])


@pytest.mark.parametrize("detail", [LONG, NATIVE, LONG.replace("\n", "\r\n")])
def test_the_innermost_source_frame_is_found_in_either_kind_of_traceback(detail: str) -> None:
    assert signed("KeyError: 'nope'", detail) == Signature(
        exception="KeyError", message="'nope'", frame="src/shop/cart.py:priced", kind="<name>"
    )


def test_lines_that_move_and_a_repo_that_moves_change_nothing() -> None:
    moved = NATIVE.replace(ROOT, "/elsewhere/copy").replace("line 14", "line 99")
    case = Case(id="tests/test_shop.py::TestCart::test_total", outcome=Outcome.failed, detail=moved)
    assert sign(case, is_source=is_source, roots=["/elsewhere/copy"]).key == signed("", NATIVE).key


def test_without_a_source_frame_the_test_is_named_without_its_parameters() -> None:
    detail = "    def test_eq(v):\n>       assert v == 2\nE       assert 1 == 2\n\ntests/test_a.py:4: AssertionError"
    assert signed("assert 1 == 2", detail, "tests/test_a.py::test_eq[a::b[1]]").frame == "tests/test_a.py::test_eq"


def test_the_last_exception_of_a_chain_counts_and_its_cause_where_it_has_no_source_frame() -> None:
    cause = "    def load(x):\n>       int(x)\nE       ValueError: bad\n\nsrc/a.py:3: ValueError\n"
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    last = "    def save(x):\n>       raise RuntimeError\nE       RuntimeError\n\nsrc/b.py:3: RuntimeError\n"
    in_test = "    def test_x():\n>       raise RuntimeError\nE       RuntimeError\n\ntests/test_b.py:3: RuntimeError\n"
    assert signed("RuntimeError", cause + between + last).frame == "src/b.py:save"
    assert signed("", cause + between + in_test) == Signature(
        exception="RuntimeError", message="", frame="src/a.py:load"
    )


def test_what_is_installed_in_the_folder_of_the_repo_is_not_its_source() -> None:
    case = Case(id="tests/test_shop.py::test_x", outcome=Outcome.failed, detail=NATIVE)
    found = sign(case, is_source=lambda path: not path.startswith("tests/"), roots=[ROOT])
    assert found.frame == "src/shop/cart.py:priced"


def test_what_the_test_printed_is_not_taken_for_its_traceback() -> None:
    printed = f'{LONG}\n--------- Captured stdout call ---------\n  File "{ROOT}/src/other.py", line 3, in lie\n'
    assert signed("KeyError: 'nope'", printed).frame == "src/shop/cart.py:priced"


@pytest.mark.parametrize("name", ["<lambda>", "<listcomp>", "outer.<locals>.<genexpr>"])
def test_frames_without_a_lasting_name_are_passed_over(name: str) -> None:
    detail = f"src/a.py:3: in outer\n    f()\nsrc/a.py:9: in {name}\n    g()\nE   ValueError: x"
    assert signed("ValueError: x", detail).frame == "src/a.py:outer"
    assert signed("ValueError: x", "src/a.py:3: in outer.<locals>.inner\nE   ValueError: x").frame == (
        "src/a.py:outer.inner"
    )


def test_a_file_that_does_not_parse_is_the_frame() -> None:
    detail = f'tests/test_a.py:1: in <module>\n    import a\nE     File "{ROOT}/src/a.py", line 1\nE       def f(:\n'
    found = signed("collection failure", detail + "E   SyntaxError: invalid syntax", "tests/test_a.py")
    assert found == Signature(exception="SyntaxError", message="", frame="src/a.py:<module>")


@pytest.mark.parametrize(
    ("message", "detail", "exception", "normal"),
    [
        ("assert 1.5 == 2", "", "AssertionError", "assert <n> == <n>"),
        (
            "AssertionError: assert [1, {'a': (2,)}] == [1]",
            "",
            "AssertionError",
            "assert [<n>, {'a': (<n>,)}] == [<n>]",
        ),
        ("\x1b[31mKeyError: 'k'\x1b[0m", "", "KeyError", "'k'"),
        ("#x1B[1mKeyError: 'k'#x1B[0m", "", "KeyError", "'k'"),
        ("failed on setup with \"KeyError: 'k'\"", "", "KeyError", "'k'"),
        ("shop.errors.Refused: no\nmore", "", "shop.errors.Refused", "no"),
        ("tests.test_a.test_x.<locals>.Odd: no", "", "tests.test_a.test_x.Odd", "no"),
        ("zlib.error: Error -3 while decompressing", "", "zlib.error", "Error <n> while decompressing"),
        ("StopIteration", "", "StopIteration", ""),
        ("", "E   StopIteration\n\nsrc/a.py:3: StopIteration", "StopIteration", ""),
        ("it broke oddly", "E   ValueError: it broke oddly", "ValueError", "it broke oddly"),
        ("worker crashed", "", "", "worker crashed"),
        ("OSError: can't open 'a b' or 'c'", "", "OSError", "can't open 'a b' or 'c'"),
        ("OSError: GET http://127.0.0.1:81/x?y=1", "", "OSError", "GET <url>"),
        (f"OSError: {ROOT}/data/x.csv:3", "", "OSError", "<repo>/data/x.csv:<n>"),
        ("OSError: /usr/lib/python3/dist-packages/yaml/x.py", "", "OSError", "<site>/yaml/x.py"),
        ("OSError: /opt/a/b.txt at 2024-01-02T03:04:05Z", "", "OSError", "b.txt at <time>"),
        ("NameError: name 'x1' and 'utf8' of defaced", "", "NameError", "name 'x1' and 'utf8' of defaced"),
    ],
)
def test_messages(message: str, detail: str, exception: str, normal: str) -> None:
    found = signed(message, detail)
    assert (found.exception, found.message) == (exception, normal)


VALUES = {
    "address": st.integers(0, 2**64 - 1).map(hex),
    "uuid": st.uuids().map(str),
    "hash": st.integers(0, 2**160 - 1).map("{:040x}".format).filter(lambda text: any(c.isdigit() for c in text)),
    "integer": st.integers().map(str),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "temporary path": st.from_regex(r"/tmp/[a-z0-9_-]{1,20}/[a-z]{1,9}\.txt", fullmatch=True),
    "home": st.from_regex(r"/home/[a-z0-9_-]{1,20}/notes\.txt", fullmatch=True),
    "time": st.datetimes().map(lambda when: when.replace(microsecond=0).isoformat()),
}
TEMPLATES = [
    "ValueError: bad {} here",
    "ValueError: <Cart at {}> has no 'total'",
    "ValueError: ({}, 'k')",
    "assert {} == f",
]


@pytest.mark.parametrize("kind", sorted(VALUES))
@pytest.mark.parametrize("template", short_form(TEMPLATES, 1))
@unhurried
@given(data=st.data())
def test_values_of_one_kind_make_no_difference(kind: str, template: str, data: st.DataObject) -> None:
    one, other = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    assert signed(template.format(one), LONG).key == signed(template.format(other), LONG).key


NAMES = st.from_regex(r"[a-z][a-z_]{2,12}", fullmatch=True)


@unhurried
@given(one=NAMES, other=NAMES)
def test_another_attribute_exception_or_function_is_another_bug(one: str, other: str) -> None:
    assume(one != other)
    message = "AttributeError: 'Cart' object has no attribute '{}'"
    assert signed(message.format(one), LONG).key != signed(message.format(other), LONG).key
    kind = "{}Error: bad"
    assert signed(kind.format(one.title()), LONG).key != signed(kind.format(other.title() + "X"), LONG).key
    frame = "src/a.py:3: in {}\nE   ValueError: bad"
    assert signed("ValueError: bad", frame.format(one)).key != signed("ValueError: bad", frame.format(other)).key


def test_the_same_kind_of_failure_elsewhere_is_family_but_not_the_same_bug() -> None:
    here = signed("assert 0.1 == 0.2", "", "tests/test_a.py::test_x")
    there = signed("assert 1e-09 == -3.25", "", "tests/test_b.py::test_y")
    assert here.family == there.family
    assert here.key != there.key


@unhurried
@given(message=st.text(max_size=300), detail=st.text(max_size=600))
def test_any_text_has_a_signature_and_always_the_same(message: str, detail: str) -> None:
    first = signed(message, detail)
    assert first == signed(message, detail)
    assert len(first.message) <= MESSAGE_LIMIT


@pytest.mark.slow
def test_a_hostile_line_takes_no_time_worth_speaking_of() -> None:
    for line in (
        "'" * 200_000,
        "(" * 200_000,
        "[(" * 100_000 + ")]" * 100_000,
        "a." * 100_000,
        f"{uuid.UUID(int=0)}" * 9000,
    ):
        assert len(signed("AssertionError: " + line).message) <= MESSAGE_LIMIT
        assert len(signed(line, line).message) <= MESSAGE_LIMIT
