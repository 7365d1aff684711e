"""A test that uses a package as its installed version does not allow is told from a bug of the project."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.languages.python.foreign_calls import find_foreign_call
from redstart.toolkit.suites.problems.project import create_project_view

TEST = """import click
from click.testing import CliRunner
from shop import prices


def test_total():
    runner = CliRunner(mix_stderr=False)
    prices.total(mode=1)
    click.gone()
    click.echo(prices.name)
    CliRunner(**prices.options)
    runner.invoke(prices.cli, mix_stderr=False)
"""
FILES = {"shop/__init__.py": "", "shop/prices.py": "def total(): ...\n", "tests/test_shop.py": TEST}
KEYWORD = "TypeError: CliRunner.__init__() got an unexpected keyword argument 'mix_stderr'"
GONE = "AttributeError: module 'click' has no attribute 'gone'"
PACKAGE = "/repo/.venv/lib/python3.11/site-packages/click/testing.py"


def fail(message: str, *frames: tuple[str, int], text: str = TEST) -> Case:
    """Make a failing case with these frames, outermost first."""
    lines: list[str] = []
    for path, number in frames:
        code = text.splitlines()[number - 1].strip() if path.startswith("tests/") else "call()"
        lines += [f">       {code}", f"E       {message}", "", f"{path}:{number}: {message.partition(':')[0]}"]
        lines += ["_ _ _ _ _ _ _ _ _"]
    return Case(
        id="tests/test_shop.py::test_total", outcome=Outcome.failed, message=message, detail="\n".join(lines[:-1])
    )


def find(case: Case, **changed: str) -> str:
    files = {**FILES, **changed}
    project = create_project_view(files, lambda path: files[path].encode() if path in files else None, "/repo")
    problem = find_foreign_call(case, project)
    return problem.what if problem else ""


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (KEYWORD, 7),
        (GONE, 9),
        ("TypeError: CliRunner.__init__() missing 1 required positional argument: 'x'", 7),
        (
            "ImportError: cannot import name 'CliRunner' from 'click.testing' "
            "(/repo/.venv/lib/python3.11/site-packages/click/testing.py)",
            2,
        ),
    ],
)
def test_wrong_use_on_the_line_of_the_test_names_the_package(message, number):
    assert find(fail(message, ("tests/test_shop.py", number))).startswith("the tests need another version of click: ")


def test_package_may_raise_deeper_if_the_test_wrote_the_argument():
    assert "click" in find(fail(KEYWORD, ("tests/test_shop.py", 7), (PACKAGE, 3)))


@pytest.mark.parametrize(
    "case",
    [
        fail("TypeError: total() got an unexpected keyword argument 'mode'", ("tests/test_shop.py", 8)),
        fail(KEYWORD, ("tests/test_shop.py", 11)),
        fail("TypeError: CliRunner.__init__() missing 1 required argument: 'x'", ("tests/test_shop.py", 11)),
        fail(KEYWORD, ("tests/test_shop.py", 12)),
        fail(KEYWORD, ("tests/test_shop.py", 7), ("shop/prices.py", 1)),
        fail(KEYWORD, ("shop/prices.py", 1), ("tests/test_shop.py", 7)),
        fail("AttributeError: module 'shop.prices' has no attribute 'name'", ("tests/test_shop.py", 10)),
        fail("AttributeError: 'NoneType' object has no attribute 'gone'", ("tests/test_shop.py", 9)),
        fail("TypeError: unsupported operand type(s) for +: 'int' and 'str'", ("tests/test_shop.py", 7)),
        fail("AssertionError: assert 1 == 2", ("tests/test_shop.py", 7)),
        fail(
            "ImportError: cannot import name 'prices' from 'shop' (/repo/shop/__init__.py)", ("tests/test_shop.py", 3)
        ),
    ],
    ids=range(11),
)
def test_failure_that_may_be_a_bug_stays_a_target(case):
    assert find(case) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"shop/run.py": "class CliRunner:\n    pass\n"},
        {"click/__init__.py": "", "click/testing.py": ""},
        {"tests/test_shop.py": TEST.replace("import CliRunner", "import CliRunner\nCliRunner = make()  #", 1)},
    ],
    ids=["own class of that name", "own package", "bound again"],
)
def test_name_that_may_be_the_projects_own_stays_a_target(changed):
    text = changed.get("tests/test_shop.py", TEST)
    number = next(number for number, line in enumerate(text.splitlines(), 1) if "mix_stderr" in line)
    assert find(fail(KEYWORD, ("tests/test_shop.py", number), text=text), **changed) == ""


def test_call_in_a_block_that_expects_an_exception_stays_a_target():
    text = TEST.replace("    runner = Cli", "    with pytest.raises(ValueError):\n        runner = Cli")
    case = fail(KEYWORD, ("tests/test_shop.py", 8), text=text)
    detail = f"    with pytest.raises(ValueError):\n>           {text.splitlines()[7].strip()}\n"
    case = case.model_copy(update={"detail": detail + case.detail.partition("\n")[2]})
    assert find(case, **{"tests/test_shop.py": text}) == ""
