from __future__ import annotations

import uuid

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import MESSAGE_LIMIT, sign
from support.signatures import LONG, ROOT, is_source, sign_failure

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


@pytest.mark.parametrize("detail", [LONG, NATIVE, LONG.replace("\n", "\r\n")])
def test_innermost_source_frame_is_found_in_both_traceback_formats(detail: str) -> None:
    assert sign_failure("KeyError: 'nope'", detail) == Signature(
        exception="KeyError", message="'nope'", frame="src/shop/cart.py:priced", kind="<name>"
    )


def test_moved_lines_and_a_moved_repo_change_nothing() -> None:
    moved_traceback = NATIVE.replace(ROOT, "/elsewhere/copy").replace("line 14", "line 99")
    case = Case(id="tests/test_shop.py::TestCart::test_total", outcome=Outcome.failed, detail=moved_traceback)
    assert sign(case, is_source=is_source, roots=["/elsewhere/copy"]).key == sign_failure("", NATIVE).key


def test_test_name_without_parameters_replaces_a_missing_source_frame() -> None:
    detail = "    def test_eq(v):\n>       assert v == 2\nE       assert 1 == 2\n\ntests/test_a.py:4: AssertionError"
    assert (
        sign_failure("assert 1 == 2", detail, "tests/test_a.py::test_eq[a::b[1]]").frame == "tests/test_a.py::test_eq"
    )


def test_last_exception_counts_or_its_cause_if_it_has_no_source_frame() -> None:
    cause = "    def load(x):\n>       int(x)\nE       ValueError: bad\n\nsrc/a.py:3: ValueError\n"
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    last_part = "    def save(x):\n>       raise RuntimeError\nE       RuntimeError\n\nsrc/b.py:3: RuntimeError\n"
    in_test = "    def test_x():\n>       raise RuntimeError\nE       RuntimeError\n\ntests/test_b.py:3: RuntimeError\n"
    assert sign_failure("RuntimeError", cause + between + last_part).frame == "src/b.py:save"
    assert sign_failure("", cause + between + in_test) == Signature(
        exception="RuntimeError", message="", frame="src/a.py:load"
    )


def test_packages_installed_in_the_repo_are_not_its_source() -> None:
    case = Case(id="tests/test_shop.py::test_x", outcome=Outcome.failed, detail=NATIVE)
    signature = sign(case, is_source=lambda path: not path.startswith("tests/"), roots=[ROOT])
    assert signature.frame == "src/shop/cart.py:priced"


def test_printed_output_is_not_taken_for_the_traceback() -> None:
    printed = f'{LONG}\n--------- Captured stdout call ---------\n  File "{ROOT}/src/other.py", line 3, in lie\n'
    assert sign_failure("KeyError: 'nope'", printed).frame == "src/shop/cart.py:priced"


@pytest.mark.parametrize("name", ["<lambda>", "<listcomp>", "outer.<locals>.<genexpr>"])
def test_frames_without_a_stable_name_are_skipped(name: str) -> None:
    detail = f"src/a.py:3: in outer\n    f()\nsrc/a.py:9: in {name}\n    g()\nE   ValueError: x"
    assert sign_failure("ValueError: x", detail).frame == "src/a.py:outer"
    assert sign_failure("ValueError: x", "src/a.py:3: in outer.<locals>.inner\nE   ValueError: x").frame == (
        "src/a.py:outer.inner"
    )


def test_unparsable_file_is_the_frame() -> None:
    detail = f'tests/test_a.py:1: in <module>\n    import a\nE     File "{ROOT}/src/a.py", line 1\nE       def f(:\n'
    signature = sign_failure("collection failure", detail + "E   SyntaxError: invalid syntax", "tests/test_a.py")
    assert signature == Signature(exception="SyntaxError", message="", frame="src/a.py:<module>")


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
def test_messages_are_normalized(message: str, detail: str, exception: str, normal: str) -> None:
    signature = sign_failure(message, detail)
    assert (signature.exception, signature.message) == (exception, normal)


def test_same_kind_of_failure_elsewhere_is_the_same_family_but_another_bug() -> None:
    first_signature = sign_failure("assert 0.1 == 0.2", "", "tests/test_a.py::test_x")
    other_signature = sign_failure("assert 1e-09 == -3.25", "", "tests/test_b.py::test_y")
    assert first_signature.family == other_signature.family
    assert first_signature.key != other_signature.key


@pytest.mark.slow
def test_hostile_line_is_processed_quickly() -> None:
    for line in (
        "'" * 200_000,
        "(" * 200_000,
        "[(" * 100_000 + ")]" * 100_000,
        "a." * 100_000,
        f"{uuid.UUID(int=0)}" * 9000,
    ):
        assert len(sign_failure("AssertionError: " + line).message) <= MESSAGE_LIMIT
        assert len(sign_failure(line, line).message) <= MESSAGE_LIMIT
