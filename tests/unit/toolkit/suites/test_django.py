"""How Django projects are recognized, and which command runs their tests."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.core.shell import IN, Completed, Environment, ExitCause, Variation
from redstart.toolkit.languages.python.detect import detect_runner
from redstart.toolkit.languages.python.django import ManageCommand, list_labels, parse_command
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detection.suite_locations import SuitePlace, list_suites

MANAGE = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')\n"
CASES = "from django.test import TestCase\n\nclass CartTests(TestCase):\n    def test_a(self):\n        pass\n"
MIXIN = "class TestDataMixin:\n    pass\n"
ENVIRONMENT = Environment(mount="/repo", python="/repo/.venv/bin/python")


def detect(files: dict[str, str]) -> str | None:
    return detect_runner(files, lambda path: files[path].encode() if path in files else None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"manage.py": MANAGE, "cart/tests.py": CASES}, "django"),
        ({"manage.py": MANAGE, "cart/tests/test_cart.py": CASES + MIXIN}, "django"),
        ({"manage.py": MANAGE, "cart/tests.py": CASES, "tests/__init__.py": ""}, "django"),
        ({"manage.py": "import flask\n", "cart/tests.py": CASES}, "pytest"),
        ({"manage.py": MANAGE, "cart/tests.py": CASES, "pytest.ini": "[pytest]"}, "pytest"),
        ({"manage.py": MANAGE, "cart/tests.py": CASES, "conftest.py": ""}, "pytest"),
        ({"manage.py": MANAGE, "cart/tests.py": CASES, "cart/test_b.py": "import pytest\n"}, "pytest"),
        ({"manage.py": MANAGE, "cart/test_b.py": "def test_b():\n    pass\n"}, "pytest"),
        ({"manage.py": MANAGE, "cart/models.py": ""}, None),
    ],
)
def test_django_project_is_recognized_by_its_files(files: dict[str, str], expected: str | None) -> None:
    assert detect(files) == expected


def test_django_project_may_be_in_a_subdirectory() -> None:
    files = {"README.md": "", "backend/manage.py": MANAGE, "backend/cart/tests.py": CASES}
    places = list_suites(sorted(files), lambda path: files[path].encode() if path in files else None)
    assert places == (SuitePlace("backend", "django"),)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python manage.py test", ManageCommand({}, (), "manage.py", ())),
        ("./manage.py test cart", ManageCommand({}, (), "./manage.py", ("cart",))),
        (".venv/bin/python3 -Wa manage.py test -v 2", ManageCommand({}, ("-Wa",), "manage.py", ("-v", "2"))),
        ("python -W error manage.py test", ManageCommand({}, ("-W", "error"), "manage.py", ())),
        ("uv run python backend/manage.py test", ManageCommand({}, (), "backend/manage.py", ())),
        ("env DEBUG=1 python manage.py test", ManageCommand({"DEBUG": "1"}, (), "manage.py", ())),
        ("python manage.py migrate", None),
        ("python -m unittest", None),
        ("make test", None),
        ("python", None),
    ],
)
def test_django_test_command_is_recognized(command: str, expected: ManageCommand | None) -> None:
    assert parse_command(command.split()) == expected


def test_labels_are_distinguished_from_option_values() -> None:
    arguments = ("--settings", "shop.test", "cart", "-v", "2", "--keepdb", "shop.tests.A", "--tag=slow")
    assert list_labels(arguments) == ("cart", "shop.tests.A")


def test_manage_py_runs_with_the_project_interpreter() -> None:
    suite = Suite(runner="django", command=("python3", "-Wa", "manage.py", "test", "cart"))
    request = runner.request(suite, ENVIRONMENT, ["cart.tests.A.test_a"], variation=Variation(order="reversed"))
    assert request.argv[:3] == ("/repo/.venv/bin/python", "-Wa", f"{IN}/redstart_django.py")
    assert request.argv[-4:] == ("--", "manage.py", "test", "cart")
    assert request.files_in["ids.txt"] == "cart.tests.A.test_a\n"
    assert {"redstart_django.py", "unittest_junit.py"} < set(request.files_in)
    assert runner.can_select_tests(suite)


def test_other_command_in_a_django_project_reports_missing_results() -> None:
    suite = Suite(runner="django", command=("make", "test"))
    assert runner.request(suite, ENVIRONMENT).argv == ("make", "test")
    assert not runner.can_select_tests(suite)
    completed = Completed(exit_code=0, cause=ExitCause.ok, output="OK", wall=1.0, files={})
    assert "need the command `python manage.py test ...`, or --junit PATH" in runner.read(suite, completed).fault
