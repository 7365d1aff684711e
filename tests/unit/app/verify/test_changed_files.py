"""The role of a changed file follows from its name and, for a manifest, from what changed in it."""

from __future__ import annotations

import pytest

from redstart.app.verify.changed_files import find_role
from redstart.core.verification import FileRole

MANIFEST = b'[project]\nname = "shop"\ndependencies = ["attrs"]\n'


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("shop/cart.py", FileRole.source),
        ("shop/data.json", FileRole.source),
        ("tests/test_cart.py", FileRole.tests),
        ("tests/data/cart.json", FileRole.tests),
        ("shop/test_cart.py", FileRole.tests),
        ("src/cart.test.ts", FileRole.tests),
        ("tests/conftest.py", FileRole.configuration),
        ("conftest.py", FileRole.configuration),
        ("pytest.ini", FileRole.configuration),
        ("uv.lock", FileRole.dependencies),
        ("requirements/dev.txt", FileRole.dependencies),
        ("package-lock.json", FileRole.dependencies),
        ("shop/cart_pb2.py", FileRole.generated),
        ("docs/index.md", FileRole.docs),
        ("CHANGELOG.md", FileRole.docs),
        (".github/workflows/test.yml", FileRole.other),
    ],
)
def test_role_follows_from_the_name(path: str, role: FileRole):
    assert find_role(path, b"old", b"new") is role


def test_manifest_is_about_dependencies_unless_it_configures_the_tests():
    newer = MANIFEST.replace(b"attrs", b"attrs>=25")
    assert find_role("pyproject.toml", MANIFEST, newer) is FileRole.dependencies
    options = newer + b'[tool.pytest.ini_options]\naddopts = "-x"\n'
    assert find_role("pyproject.toml", MANIFEST, options) is FileRole.configuration


def test_named_globs_add_test_files():
    assert find_role("checks/cart.sh", b"old", b"new", ("checks/*",)) is FileRole.tests
