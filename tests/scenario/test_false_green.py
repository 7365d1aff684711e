"""Setups in which tests import code other than the edited code: a correct verdict or exit 3, never a false green."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.server import Reply, ScriptedServer, Wire

BUGGY, FIXED = "PRICE = 1\n", "PRICE = 2\n"
TESTS = (
    "import shop\n\n\ndef test_price():\n    assert shop.PRICE == 2\n\n\ndef test_name():\n    assert shop.__name__\n"
)
RIGHT = "WHY: the price is 2\n\nsrc/shop/__init__.py\n<<<<<<< SEARCH\nPRICE = 1\n=======\nPRICE = 2\n>>>>>>> REPLACE\n"
WRONG = RIGHT.replace("PRICE = 2\n>", "PRICE = 3\n>")
CONFIGURATION = (
    "[project]\nname = 'shop'\nversion = '1'\n[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"
)


def make(folder: Path, code: str = BUGGY) -> Path:
    for name, text in {
        "src/shop/__init__.py": code,
        "tests/test_shop.py": TESTS,
        "pyproject.toml": CONFIGURATION,
        ".gitignore": "__pycache__/\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "projects" / "shop")


@pytest.fixture
def site(tmp_path: Path, user) -> Path:
    """Return the site-packages folder of the active environment, which has only pytest."""
    venv = tmp_path / "venv"
    uv = shutil.which("uv")
    assert uv
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(venv)], check=True)
    pip_arguments = ["-q", "--python", str(venv / "bin" / "python"), f"pytest=={version('pytest')}"]
    subprocess.run([uv, "pip", "install", *pip_arguments], check=True)
    user.environ["VIRTUAL_ENV"] = str(venv)
    return next((venv / "lib").glob("python3*")) / "site-packages"


def fix(user, repo: Path, answer: str = RIGHT):
    with ScriptedServer(lambda request: Reply(answer)) as server:
        user.uses(server, Wire.openai)
        return user.redstart("fix", repo, "--max-iters", "1"), len(server.requests)


def is_passing(site: Path, repo: Path) -> bool:
    """Return whether the tests pass when a user runs them by hand."""
    python = site.parents[2] / "bin" / "python"
    command = [str(python), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=repo, capture_output=True, check=False).returncode == 0


def test_editable_install_of_this_checkout_uses_the_workspace(user, repo, site):
    (site / "shop.pth").write_text(f"{repo}/src\n")
    result, _ = fix(user, repo, WRONG)
    assert result.code == 1, "a wrong patch is red although the original is what the environment names"
    result, _ = fix(user, repo)
    assert result.code == 0, result.out + result.err
    assert not is_passing(site, repo)
    assert user.redstart("apply", cwd=repo).code == 0
    assert is_passing(site, repo)


@pytest.mark.parametrize("code", sample_parameters([FIXED, BUGGY], 1))
def test_editable_install_of_another_checkout_exits_with_3(user, repo, site, tmp_path, code):
    other_checkout = make(tmp_path / "elsewhere" / "shop", code)
    (site / "shop.pth").write_text(f"{other_checkout}/src\n")
    result, request_count = fix(user, repo)
    assert (result.code, request_count) == (3, 0), result.out + result.err
    assert "pip install -e ." in result.out


@pytest.mark.parametrize("code", sample_parameters([BUGGY, FIXED], 1))
def test_installed_copy_exits_with_3(user, repo, site, code):
    (site / "shop").mkdir()
    (site / "shop" / "__init__.py").write_text(code)
    result, request_count = fix(user, repo)
    assert (result.code, request_count) == (3, 0), result.out + result.err
    assert "A copy of the project is installed" in result.out


def test_stale_bytecode_does_not_affect_the_verdict(user, repo, site):
    (site / "shop.pth").write_text(f"{repo}/src\n")
    source = repo / "src" / "shop" / "__init__.py"
    source.write_text(FIXED)
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    source.write_text(BUGGY)
    assert is_passing(site, repo), "by hand the stale byte code hides the bug"
    result, _ = fix(user, repo, WRONG)
    assert result.code == 1, result.out + result.err
    result, _ = fix(user, repo)
    assert "1 failing test now passes" in result.out


@pytest.mark.soak
def test_pythonpath_of_the_shell_does_not_reach_the_tests(user, repo, site, tmp_path):
    (site / "shop.pth").write_text(f"{repo}/src\n")
    other_checkout = make(tmp_path / "elsewhere" / "shop", FIXED)
    user.environ["PYTHONPATH"] = os.pathsep.join(
        [str(other_checkout / "src"), *user.environ.get("PYTHONPATH", "").split()]
    )
    result, _ = fix(user, repo, WRONG)
    assert result.code == 1, result.out + result.err
    result, _ = fix(user, repo)
    assert (result.code, "1 failing test now passes" in result.out) == (0, True), result.out + result.err
