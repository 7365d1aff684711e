"""A task is laid out, graded and verified with real git and a real sandbox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.evals.grading import Grader
from redstart.evals.task import Base, Task, TaskChange
from redstart.evals.task_repo import TaskFolder, get_initial_snapshot, lay_out, open_site
from redstart.evals.verify import TaskCheck, verify

pytestmark = pytest.mark.slow

SECRET = "only_the_fix_says_this"
GREEN = "def test_x(): 1\n"


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a repo with the bug in commit 1, the fix in commit 2, and a file that git ignores."""
    repo_path = tmp_path / "source"
    repo_path.mkdir()
    git("init", "-q", cwd=repo_path)
    (repo_path / ".gitignore").write_text("*.log\n")
    (repo_path / "kept.log").write_text("tracked all the same\n")
    (repo_path / "tool.sh").write_text("#!/bin/sh\n")
    (repo_path / "tool.sh").chmod(0o755)
    (repo_path / "calc.py").write_text("def double(n):\n    return n\n")
    (repo_path / "test_calc.py").write_text("from calc import double\n\n\ndef test_it():\n    assert double(2) == 4\n")
    git("add", "-f", ".", cwd=repo_path)
    git("commit", "-qm", "bug", cwd=repo_path)
    (repo_path / "calc.py").write_text(f"def double(n):\n    {SECRET} = 2\n    return n * {SECRET}\n")
    git("commit", "-qam", SECRET, cwd=repo_path)
    (repo_path / "own.log").write_text("mine\n")
    return repo_path


def test_task_directory_has_one_commit_and_no_history(house: AppContext, repo: Path, tmp_path: Path) -> None:
    first_commit = git("rev-list", "--max-parents=0", "HEAD", cwd=repo)
    task = Task(id="t", base=Base(repo=str(repo), commit=first_commit, change=TaskChange(files={"more.py": "1\n"})))
    folder = tmp_path / "laid" / "t"
    lay_out(house.trees, task, folder)
    assert sorted(git("ls-files", cwd=folder).split()) == [
        *(".gitignore", "calc.py", "kept.log", "more.py", "test_calc.py", "tool.sh")
    ]
    assert git("status", "--porcelain", cwd=folder) == ""
    assert git("log", "--all", "--format=%s", cwd=folder) == "The task as it is given"
    assert git("reflog", "--all", cwd=folder) == ""
    assert git("remote", cwd=folder) == ""
    object_listing = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=folder, check=True, capture_output=True
    ).stdout
    assert SECRET.encode() not in object_listing
    assert b"def double" in object_listing
    assert (folder / "tool.sh").stat().st_mode & 0o100
    assert list(folder.parent.iterdir()) == [folder]
    assert git("rev-parse", "HEAD", cwd=repo) != first_commit
    assert git("status", "--porcelain", cwd=repo) == ""


def test_same_task_gives_the_same_commit(house: AppContext, task: Task, tmp_path: Path) -> None:
    for name in "ab":
        lay_out(house.trees, task, tmp_path / name / "t")
    assert len({git("rev-parse", "HEAD", cwd=tmp_path / name / "t") for name in "ab"}) == 1


def test_interrupted_layout_is_redone(house: AppContext, task: Task, tmp_path: Path) -> None:
    partial_folder = tmp_path / "t"
    partial_folder.mkdir()
    (partial_folder / "calc.py").write_text("half of it")
    site = open_site(house, task, partial_folder)
    assert house.trees.list_files(site.spec.base) == ["calc.py", "test_calc.py"]
    assert "double" in (partial_folder / "calc.py").read_text()
    (partial_folder / "calc.py").write_text("mine\n")
    assert house.trees.read(open_site(house, task, partial_folder).spec.base, "calc.py") == b"mine\n"


def test_uncommitted_files_can_be_a_base(house: AppContext, repo: Path) -> None:
    (repo / "calc.py").write_text("changed\n")
    found_snapshot = get_initial_snapshot(house.trees, Task(id="t", base=Base(repo=str(repo))))
    assert house.trees.read(found_snapshot, "calc.py") == b"changed\n"
    assert "own.log" not in house.trees.list_files(found_snapshot)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (Base(repo="/no/such/folder"), "does not exist"),
        (Base(change=TaskChange(diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")), "does not apply"),
    ],
)
def test_unusable_base_is_rejected(house: AppContext, base: Base, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        get_initial_snapshot(house.trees, Task(id="t", base=base))


def test_missing_commit_is_an_error(house: AppContext, repo: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        get_initial_snapshot(house.trees, Task(id="t", base=Base(repo=str(repo), commit="f" * 40)))


@pytest.fixture
def site(house: AppContext, task: Task, tmp_path: Path) -> TaskFolder:
    return open_site(house, task, tmp_path / "sites" / task.slug)


async def test_only_a_fix_that_passes_the_hidden_tests_counts_as_solved(house: AppContext, site: TaskFolder) -> None:
    grader, trees, base = Grader(house), house.trees, site.spec.base

    async def grade_files(files: dict[str, bytes | None]) -> tuple[bool, tuple[str, ...]]:
        grade = await grader.grade(site, trees.write(base, files))
        return grade.solved, grade.restored

    async def grade_all() -> list[tuple[bool, tuple[str, ...]]]:
        cheat = b"def double(number):\n    return 4\n"
        weak_test = b"def test_two():\n    pass\n"
        fixed = b"def double(number):\n    return 2 * number\n"
        tampering_test = b"import sys\nsys.modules['calc'] = type('calc', (), {'double': lambda self, n: 2 * n})()\n"
        return [
            await grade_files({"calc.py": fixed}),
            await grade_files({"calc.py": cheat}),
            await grade_files({"test_calc.py": weak_test}),
            await grade_files({"calc.py": fixed, "test_calc.py": None}),
            await grade_files({"conftest.py": tampering_test}),
            await grade_files({"calc.py": b"("}),
        ]

    assert await grade_all() == [
        (True, ()),
        (False, ()),
        (False, ("test_calc.py",)),
        (True, ("test_calc.py",)),
        (False, ("conftest.py",)),
        (False, ()),
    ]


async def verify_task(house: AppContext, task: Task, folder: Path, repeats: int = 2) -> TaskCheck:
    return await verify(Grader(house), open_site(house, task, folder / task.slug), repeats)


@pytest.mark.soak
async def test_good_task_passes_the_check(house: AppContext, task: Task, tmp_path: Path) -> None:
    task_check = await verify_task(house, task, tmp_path)
    assert (task_check.ok, task_check.why, task_check.digest) == (True, "", task.digest)
    assert task_check.red == ("test_calc.py::test_two", "test_calc.py::test_three")


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ({"fix": TaskChange()}, "it has no reference fix"),
        (
            {"fix": TaskChange(files={"calc.py": "def double(number):\n    return 4\n"})},
            "does not pass with its reference fix",
        ),
        pytest.param({"hidden": TaskChange(),
                      "base": Base(change=TaskChange(files={"calc.py": "1\n", "test_x.py": GREEN}))},
                     "none of its tests fails", marks=pytest.mark.soak),
        ({"fix": TaskChange(diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")}, "does not apply"),
        pytest.param({"base": Base(change=TaskChange(files={"calc.py": "1\n"})), "hidden": TaskChange()},
                     "its tests do not run", marks=pytest.mark.soak),
    ],
)  # fmt: skip
async def test_invalid_task_is_excluded(
    house: AppContext, task: Task, tmp_path: Path, over: dict[str, object], why: str
) -> None:
    task_check = await verify_task(house, task.model_copy(update=over), tmp_path, repeats=1)
    assert not task_check.ok
    assert why in task_check.why


@pytest.mark.soak
async def test_flaky_task_is_excluded(house: AppContext, task: Task, tmp_path: Path) -> None:
    """In each pair of tests, one always fails and one passes or fails at random."""
    text = "import os\n\n\ndef test_a():\n    assert 0\n\n\ndef test_b():\n    assert os.urandom(1)[0] % 2\n"
    many_tests = "".join(text.replace("test_", f"test_{number}") for number in range(8))
    flaky = task.model_copy(
        update={
            "base": Base(change=TaskChange(files={"calc.py": "1\n", "test_calc.py": many_tests})),
            "hidden": TaskChange(),
        }
    )
    assert "flaky" in (await verify_task(house, flaky, tmp_path, repeats=4)).why
