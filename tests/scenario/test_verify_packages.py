"""`redstart verify` on changes of lock files: the code of each side runs with the packages that its side declares."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.git_repo import Files, make_repo, write
from support.user import User

TESTS = "from greeting import greet\n\n\ndef test_greet():\n    assert greet() == '{}'\n"
UV_LOCK = '[[package]]\nname = "greeting"\nversion = "{}"\nsource = {{ registry = "index" }}\n'


def build_wheel(folder: Path, version: str, text: str) -> Path:
    """Build the wheel of a package whose function returns that text."""
    path = folder / f"greeting-{version}-py3-none-any.whl"
    info = f"greeting-{version}.dist-info"
    files = {
        "greeting.py": f"def greet():\n    return {text!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: greeting\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Return a directory with two versions of a package, which greet differently."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    build_wheel(folder, "1.0", "hello")
    build_wheel(folder, "2.0", "good day")
    return folder


@pytest.fixture
def customer(user: User, project: Path, wheels: Path, tmp_path: Path) -> User:
    """Return a user whose environment contains version 1.0, and whose index contains both."""
    environment = tmp_path / "environment"
    shutil.copytree(project, environment, symlinks=True)
    user.environ |= {"VIRTUAL_ENV": str(environment), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    install(user, wheels, "1.0")
    return user


def install(user: User, wheels: Path, version: str) -> None:
    (packages,) = Path(user.environ["VIRTUAL_ENV"]).glob("lib/python*/site-packages")
    for installed in packages.glob("greeting*"):
        shutil.rmtree(installed) if installed.is_dir() else installed.unlink()
    zipfile.ZipFile(wheels / f"greeting-{version}-py3-none-any.whl").extractall(packages)


def verify(user: User, repo: Path, *arguments: str | Path) -> dict[str, Any]:
    ran = user.redstart("verify", repo, "--json", *arguments)
    assert ran.out, ran.err
    return json.loads(ran.out)


def list_outcomes(result: dict[str, Any]) -> dict[tuple[str, str], str]:
    """List how the one test ends, by the sides of the tests and of the code."""
    sides = {False: "old", True: "new"}
    return {
        (sides[run["new_tests"]], sides[run["new_code"]]): (
            "not run" if run["not_run"] else "fails" if run["counts"]["failed"] else "passes"
        )
        for run in result["matrix"]
    }


@pytest.mark.parametrize(
    ("file", "form", "installed"), [("requirements.txt", "greeting=={}\n", "1.0"), ("uv.lock", UV_LOCK, "2.0")]
)
def test_each_side_runs_with_its_own_packages(
    file: str, form: str, installed: str, customer: User, wheels: Path, tmp_path: Path
):
    install(customer, wheels, installed)
    files = {"shop.py": "", "tests/test_shop.py": TESTS.format("hello"), file: form.format("1.0")}
    repo = make_repo(tmp_path / "shop", files)
    write(repo, {"tests/test_shop.py": TESTS.format("good day"), file: form.format("2.0")})
    result = verify(customer, repo, "--accept", "tests")
    assert list_outcomes(result) == {
        ("old", "old"): "passes",
        ("old", "new"): "fails",
        ("new", "old"): "fails",
        ("new", "new"): "passes",
    }
    assert (result["end"], [claim["kind"] for claim in result["claims"]]) == ("verified", ["weakened"])
    side, version = ("new", "2.0") if installed == "1.0" else ("old", "1.0")
    assert f"the {side} code ran with greeting=={version}, installed apart for it" in result["notes"]


BUMP: Files = {"requirements.txt": "greeting==2.0\n"}


def make_shop(tmp_path: Path, greeting: str) -> Path:
    files = {"shop.py": "", "tests/test_shop.py": TESTS.format(greeting), "requirements.txt": "greeting==1.0\n"}
    return make_repo(tmp_path / "shop", files)


@pytest.mark.parametrize(
    ("greeting", "end", "kinds"), [("hello", "worse", ["broken"]), ("good day", "verified", ["fixed"])]
)
def test_packages_alone_can_break_or_fix_a_test(
    greeting: str, end: str, kinds: list[str], customer: User, tmp_path: Path
):
    repo = make_shop(tmp_path, greeting)
    write(repo, BUMP)
    result = verify(customer, repo)
    assert (result["end"], [claim["kind"] for claim in result["claims"]]) == (end, kinds)


def test_old_code_without_its_packages_does_not_run_and_the_change_is_never_worse(
    customer: User, wheels: Path, tmp_path: Path
):
    (wheels / "greeting-1.0-py3-none-any.whl").rename(tmp_path / "gone.whl")
    install(customer, wheels, "2.0")
    repo = make_shop(tmp_path, "good day")
    write(repo, {**BUMP, "shop.py": "SIZE = 1\n"})
    comment = tmp_path / "comment.md"
    ran = customer.redstart("verify", repo, "--markdown", comment)
    text = " ".join(ran.out.split())
    assert (ran.code, "UNPROVEN: the tests pass with the change, and the old code cannot run" in text) == (0, True), (
        text
    )
    assert "greeting==1.0: greeting has no wheel that fits here" in text
    assert "not run" in ran.out
    assert "| old | old | not run |" in comment.read_text()
    write(repo, {"tests/test_shop.py": TESTS.format("hello")})
    result = verify(customer, repo)
    assert (result["end"], result["exit_code"]) == ("environment", 3)
    assert list_outcomes(result) == {
        ("old", "old"): "not run",
        ("new", "old"): "not run",
        ("old", "new"): "passes",
        ("new", "new"): "fails",
    }


def test_new_code_without_its_packages_is_an_environment_problem(customer: User, wheels: Path, tmp_path: Path):
    (wheels / "greeting-2.0-py3-none-any.whl").unlink()
    repo = make_shop(tmp_path, "hello")
    write(repo, BUMP)
    result = verify(customer, repo)
    assert (result["end"], result["exit_code"], result["matrix"]) == ("environment", 3, [])
    assert result["reason"].startswith("the code with the change cannot run: it needs greeting==2.0")
    assert result["remedy"] == "install the packages that the change names, then verify again"
