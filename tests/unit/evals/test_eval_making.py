"""Tasks made from a repo: by mutation of its code, and from its history."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.evals.grading import Grader
from redstart.evals.mine import MinedTask, candidates, listed_candidates, mine, task_of
from redstart.evals.mutate import MutationTask, head_of, mutate
from redstart.evals.sealed import open_site
from redstart.evals.verify import verify
from support.sample import short_form

CODE = (
    "def clamp(value, low, high):\n    if value < low:\n        return low\n    if value > high:\n        return high\n"
)
TEST = "from shop.clamp import clamp\n\n\ndef test_low():\n    assert clamp(1, 3, 5) == 3\n"
MORE = TEST + "\n\ndef test_between():\n    assert clamp(4, 3, 5) == 4\n"


def git(*words: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(
        ["git", *identity, *words], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(repo: Path, message: str, **files: str) -> str:
    for name, text in files.items():
        path = repo / name.replace("__", "/").replace("_py", ".py").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", message, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a repo: commit 3 is a fix with a test, commit 4 changes both without effect, the last only docs."""
    made = tmp_path / "shop"
    made.mkdir()
    git("init", "-q", cwd=made)
    commit(made, "first", shop__clamp_py=CODE, tests__test_clamp_py=TEST, pytest_ini="")
    (made / "pytest_ini").rename(made / "pytest.ini")
    (made / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    commit(made, "tests run")
    commit(made, "give back what lies between", shop__clamp_py=CODE + "    return value\n", tests__test_clamp_py=MORE)
    commit(
        made,
        "words",
        shop__clamp_py='"""Bounds."""\n' + CODE + "    return value\n",
        tests__test_clamp_py=MORE + "# on\n",
    )
    commit(made, "docs", README_md="words\n")
    return made


@pytest.mark.slow
def test_candidates_change_source_and_tests(repo: Path) -> None:
    found = list(candidates(repo))
    subjects = [git("log", "-1", "--format=%s", item.fix, cwd=repo) for item in found]
    assert subjects == ["words", "give back what lies between"]
    assert (found[1].source, found[1].tests) == (("shop/clamp.py",), ("tests/test_clamp.py",))
    assert found[1].base == git("rev-parse", f"{found[1].fix}~1", cwd=repo)
    assert len(list(candidates(repo, scanned=2))) == 1


@pytest.mark.slow
def test_a_list_of_candidates_is_read_by_project(repo: Path, tmp_path: Path) -> None:
    row = {"repo": "a/b", "base": "1", "fix": "2", "src": ["x.py"], "tests": ["t.py"], "churn": 3}
    (tmp_path / "list.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "repo": "c/d"}) + "\n")
    (found,) = listed_candidates(tmp_path / "list.jsonl", "a/b")
    assert (found.base, found.fix, found.source, found.tests) == ("1", "2", ("x.py",), ("t.py",))
    # A commit that is not in this clone is skipped.
    assert task_of(repo, found) is None


@pytest.mark.slow
def test_a_folder_without_a_history_cannot_be_mined(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no git history"):
        list(candidates(tmp_path))


@pytest.mark.slow
def test_a_text_that_is_none_is_passed_over(repo: Path) -> None:
    (repo / "shop" / "clamp.py").write_bytes(b"# \xff\n")
    (repo / "tests" / "test_clamp.py").write_text(TEST)
    git("commit", "-qam", "latin", cwd=repo)
    (first, *_) = candidates(repo)
    assert task_of(repo, first) is None


@pytest.mark.slow
@pytest.mark.parametrize("hide", short_form([True, False], 1))
def test_only_commits_whose_tests_tell_before_from_after_are_kept(house: AppContext, repo: Path, hide: bool) -> None:
    async def all_of_them() -> list[MinedTask]:
        return [item async for item in mine(house, repo, candidates(repo), hide=hide, repeats=2)]

    words, fix = asyncio.run(all_of_them())
    assert not words.verified.ok
    assert fix.verified.ok, fix.verified.why
    task = fix.task
    assert task.red == ("tests/test_clamp.py::test_between",)
    assert task.shows_red is not hide
    assert (task.goal == "give back what lies between") is hide
    assert bool(task.hidden) is hide
    assert "test_between" not in (task.base.change.files.get("tests/test_clamp.py") or "") or not hide
    assert git("status", "--porcelain", cwd=repo) == ""


def mutated(house: AppContext, repo: Path, seed: int = 0, count: int = 3) -> list[MutationTask]:
    async def all_of_them() -> list[MutationTask]:
        return [item async for item in mutate(house, repo, count=count, seed=seed)]

    return asyncio.run(all_of_them())


@pytest.mark.soak
def test_changes_that_a_test_notices_are_tasks(house: AppContext, repo: Path, tmp_path: Path) -> None:
    tried = mutated(house, repo)
    tasks = [item.task for item in tried if item.task is not None]
    assert len(tasks) == 3
    assert len({task.id for task in tasks}) == 3
    whole = (repo / "shop" / "clamp.py").read_text()
    for task in tasks:
        assert task.fix.files == {"shop/clamp.py": whole}
        assert task.base.change.files["shop/clamp.py"] != whole
        assert task.base.commit == git("rev-parse", "HEAD", cwd=repo)
        assert task.red
    site = open_site(house, tasks[0], tmp_path / "site")
    assert asyncio.run(verify(Grader(house), site, 1)).ok
    assert git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.soak
def test_the_same_seed_makes_the_same_tasks(house: AppContext, repo: Path) -> None:
    one, same, other = (mutated(house, repo, seed, count=1)[-1].mutant for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.slow
def test_a_repo_that_cannot_be_found_again_is_refused(house: AppContext, repo: Path) -> None:
    (repo / "shop" / "clamp.py").write_text("changed\n")
    with pytest.raises(ConfigError, match="uncommitted"):
        mutated(house, repo)
    git("checkout", "-q", ".", cwd=repo)
    (repo / "tests" / "test_clamp.py").write_text("def test_it():\n    assert 0\n")
    git("commit", "-qam", "red", cwd=repo)
    with pytest.raises(ConfigError, match=r"no test of .* passes"):
        mutated(house, repo)


@pytest.mark.slow
def test_a_folder_in_a_repo_has_no_commit_of_its_own(repo: Path, tmp_path: Path) -> None:
    assert head_of(repo) == git("rev-parse", "HEAD", cwd=repo)
    assert head_of(repo / "shop") == ""
    (tmp_path / "plain").mkdir()
    assert head_of(tmp_path / "plain") == ""
