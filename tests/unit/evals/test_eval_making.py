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
from redstart.evals.mine import MinedTask, find_candidates, make_task, mine, read_candidates
from redstart.evals.mutate import MutationTask, get_head_commit, mutate
from redstart.evals.task_repo import open_site
from redstart.evals.verify import verify
from support.sample import sample_parameters

CODE = (
    "def clamp(value, low, high):\n    if value < low:\n        return low\n    if value > high:\n        return high\n"
)
TEST = "from shop.clamp import clamp\n\n\ndef test_low():\n    assert clamp(1, 3, 5) == 3\n"
MORE = TEST + "\n\ndef test_between():\n    assert clamp(4, 3, 5) == 4\n"


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True
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
    repo_path = tmp_path / "shop"
    repo_path.mkdir()
    git("init", "-q", cwd=repo_path)
    commit(repo_path, "first", shop__clamp_py=CODE, tests__test_clamp_py=TEST, pytest_ini="")
    (repo_path / "pytest_ini").rename(repo_path / "pytest.ini")
    (repo_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    commit(repo_path, "tests run")
    commit(
        repo_path, "give back what lies between", shop__clamp_py=CODE + "    return value\n", tests__test_clamp_py=MORE
    )
    commit(
        repo_path,
        "words",
        shop__clamp_py='"""Bounds."""\n' + CODE + "    return value\n",
        tests__test_clamp_py=MORE + "# on\n",
    )
    commit(repo_path, "docs", README_md="words\n")
    return repo_path


@pytest.mark.slow
def test_candidates_change_source_and_tests(repo: Path) -> None:
    candidate_list = list(find_candidates(repo))
    subjects = [git("log", "-1", "--format=%s", item.fix, cwd=repo) for item in candidate_list]
    assert subjects == ["words", "give back what lies between"]
    assert (candidate_list[1].source, candidate_list[1].tests) == (("shop/clamp.py",), ("tests/test_clamp.py",))
    assert candidate_list[1].base == git("rev-parse", f"{candidate_list[1].fix}~1", cwd=repo)
    assert len(list(find_candidates(repo, scanned=2))) == 1


@pytest.mark.slow
def test_candidate_list_is_filtered_by_project(repo: Path, tmp_path: Path) -> None:
    row = {"repo": "a/b", "base": "1", "fix": "2", "src": ["x.py"], "tests": ["t.py"], "churn": 3}
    (tmp_path / "list.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "repo": "c/d"}) + "\n")
    (candidate,) = read_candidates(tmp_path / "list.jsonl", "a/b")
    assert (candidate.base, candidate.fix, candidate.source, candidate.tests) == ("1", "2", ("x.py",), ("t.py",))
    # A commit that is not in this clone is skipped.
    assert make_task(repo, candidate) is None


@pytest.mark.slow
def test_directory_without_history_cannot_be_mined(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no git history"):
        list(find_candidates(tmp_path))


@pytest.mark.slow
def test_undecodable_file_is_skipped(repo: Path) -> None:
    (repo / "shop" / "clamp.py").write_bytes(b"# \xff\n")
    (repo / "tests" / "test_clamp.py").write_text(TEST)
    git("commit", "-qam", "latin", cwd=repo)
    (first_candidate, *_) = find_candidates(repo)
    assert make_task(repo, first_candidate) is None


@pytest.mark.slow
@pytest.mark.parametrize("hide", sample_parameters([True, False], 1))
async def test_only_commits_whose_tests_fail_before_and_pass_after_are_kept(
    house: AppContext, repo: Path, hide: bool
) -> None:
    async def mine_all() -> list[MinedTask]:
        return [item async for item in mine(house, repo, find_candidates(repo), hide_tests=hide, repeats=2)]

    wording_task, fix = await mine_all()
    assert not wording_task.verified.ok
    assert fix.verified.ok, fix.verified.why
    task = fix.task
    assert task.red == ("tests/test_clamp.py::test_between",)
    assert task.shows_red is not hide
    assert (task.goal == "give back what lies between") is hide
    assert bool(task.hidden) is hide
    assert "test_between" not in (task.base.change.files.get("tests/test_clamp.py") or "") or not hide
    assert git("status", "--porcelain", cwd=repo) == ""


def run_mutation(house: AppContext, repo: Path, seed: int = 0, count: int = 3) -> list[MutationTask]:
    async def mutate_all() -> list[MutationTask]:
        return [item async for item in mutate(house, repo, count=count, seed=seed)]

    return asyncio.run(mutate_all())


@pytest.mark.soak
def test_mutants_that_fail_a_test_become_tasks(house: AppContext, repo: Path, tmp_path: Path) -> None:
    mutations = run_mutation(house, repo)
    tasks = [item.task for item in mutations if item.task is not None]
    assert len(tasks) == 3
    assert len({task.id for task in tasks}) == 3
    full_text = (repo / "shop" / "clamp.py").read_text()
    for task in tasks:
        assert task.fix.files == {"shop/clamp.py": full_text}
        assert task.base.change.files["shop/clamp.py"] != full_text
        assert task.base.commit == git("rev-parse", "HEAD", cwd=repo)
        assert task.red
    site = open_site(house, tasks[0], tmp_path / "site")
    assert asyncio.run(verify(Grader(house), site, 1)).ok
    assert git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.soak
def test_same_seed_makes_the_same_tasks(house: AppContext, repo: Path) -> None:
    first_mutant, same_mutant, other_mutant = (
        run_mutation(house, repo, seed, count=1)[-1].mutant for seed in (1, 1, 2)
    )
    assert first_mutant == same_mutant
    assert first_mutant != other_mutant


@pytest.mark.slow
def test_repo_with_uncommitted_changes_or_no_passing_test_is_rejected(house: AppContext, repo: Path) -> None:
    (repo / "shop" / "clamp.py").write_text("changed\n")
    with pytest.raises(ConfigError, match="uncommitted"):
        run_mutation(house, repo)
    git("checkout", "-q", ".", cwd=repo)
    (repo / "tests" / "test_clamp.py").write_text("def test_it():\n    assert 0\n")
    git("commit", "-qam", "red", cwd=repo)
    with pytest.raises(ConfigError, match=r"no test of .* passes"):
        run_mutation(house, repo)


@pytest.mark.slow
def test_subdirectory_of_a_repo_has_no_head_commit(repo: Path, tmp_path: Path) -> None:
    assert get_head_commit(repo) == git("rev-parse", "HEAD", cwd=repo)
    assert get_head_commit(repo / "shop") == ""
    (tmp_path / "plain").mkdir()
    assert get_head_commit(tmp_path / "plain") == ""
