"""A task is laid out, graded and verified with real git and a real sandbox."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.evals.grading import Grader
from redstart.evals.sealed import TaskFolder, given_snapshot, lay_out, open_site
from redstart.evals.task import Base, Task, TaskChange
from redstart.evals.verify import TaskCheck, verify

pytestmark = pytest.mark.slow

SECRET = "only_the_fix_says_this"
GREEN = "def test_x(): 1\n"


def git(*words: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(
        ["git", *identity, *words], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a repo with the bug in commit 1, the fix in commit 2, and a file that git ignores."""
    made = tmp_path / "source"
    made.mkdir()
    git("init", "-q", cwd=made)
    (made / ".gitignore").write_text("*.log\n")
    (made / "kept.log").write_text("tracked all the same\n")
    (made / "tool.sh").write_text("#!/bin/sh\n")
    (made / "tool.sh").chmod(0o755)
    (made / "calc.py").write_text("def double(n):\n    return n\n")
    (made / "test_calc.py").write_text("from calc import double\n\n\ndef test_it():\n    assert double(2) == 4\n")
    git("add", "-f", ".", cwd=made)
    git("commit", "-qm", "bug", cwd=made)
    (made / "calc.py").write_text(f"def double(n):\n    {SECRET} = 2\n    return n * {SECRET}\n")
    git("commit", "-qam", SECRET, cwd=made)
    (made / "own.log").write_text("mine\n")
    return made


def test_what_is_laid_out_has_one_commit_and_nothing_of_the_history(
    house: AppContext, repo: Path, tmp_path: Path
) -> None:
    first = git("rev-list", "--max-parents=0", "HEAD", cwd=repo)
    task = Task(id="t", base=Base(repo=str(repo), commit=first, change=TaskChange(files={"more.py": "1\n"})))
    folder = tmp_path / "laid" / "t"
    lay_out(house.trees, task, folder)
    assert sorted(git("ls-files", cwd=folder).split()) == [
        *(".gitignore", "calc.py", "kept.log", "more.py", "test_calc.py", "tool.sh")
    ]
    assert git("status", "--porcelain", cwd=folder) == ""
    assert git("log", "--all", "--format=%s", cwd=folder) == "The task as it is given"
    assert git("reflog", "--all", cwd=folder) == ""
    assert git("remote", cwd=folder) == ""
    everything = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=folder, check=True, capture_output=True
    ).stdout
    assert SECRET.encode() not in everything
    assert b"def double" in everything
    assert (folder / "tool.sh").stat().st_mode & 0o100
    assert list(folder.parent.iterdir()) == [folder]
    assert git("rev-parse", "HEAD", cwd=repo) != first
    assert git("status", "--porcelain", cwd=repo) == ""


def test_the_same_task_is_the_same_commit(house: AppContext, task: Task, tmp_path: Path) -> None:
    for name in "ab":
        lay_out(house.trees, task, tmp_path / name / "t")
    assert len({git("rev-parse", "HEAD", cwd=tmp_path / name / "t") for name in "ab"}) == 1


def test_a_layout_that_was_interrupted_is_done_anew(house: AppContext, task: Task, tmp_path: Path) -> None:
    half = tmp_path / "t"
    half.mkdir()
    (half / "calc.py").write_text("half of it")
    site = open_site(house, task, half)
    assert house.trees.files(site.spec.base) == ["calc.py", "test_calc.py"]
    assert "double" in (half / "calc.py").read_text()
    (half / "calc.py").write_text("mine\n")
    assert house.trees.read(open_site(house, task, half).spec.base, "calc.py") == b"mine\n"


def test_files_as_they_lie_there_can_be_a_base(house: AppContext, repo: Path) -> None:
    (repo / "calc.py").write_text("changed\n")
    found = given_snapshot(house.trees, Task(id="t", base=Base(repo=str(repo))))
    assert house.trees.read(found, "calc.py") == b"changed\n"
    assert "own.log" not in house.trees.files(found)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (Base(repo="/no/such/folder"), "does not exist"),
        (Base(change=TaskChange(diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")), "does not apply"),
    ],
)
def test_a_base_that_cannot_be_had_is_an_error(house: AppContext, base: Base, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        given_snapshot(house.trees, Task(id="t", base=base))


def test_a_commit_that_is_not_there_is_an_error(house: AppContext, repo: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        given_snapshot(house.trees, Task(id="t", base=Base(repo=str(repo), commit="f" * 40)))


@pytest.fixture
def site(house: AppContext, task: Task, tmp_path: Path) -> TaskFolder:
    return open_site(house, task, tmp_path / "sites" / task.slug)


def test_only_what_also_passes_the_hidden_tests_is_solved(house: AppContext, site: TaskFolder) -> None:
    grader, trees, base = Grader(house), house.trees, site.spec.base

    async def graded(files: dict[str, bytes | None]) -> tuple[bool, tuple[str, ...]]:
        grade = await grader.grade(site, trees.write(base, files))
        return grade.solved, grade.restored

    async def all_of_them() -> list[tuple[bool, tuple[str, ...]]]:
        cheat = b"def double(number):\n    return 4\n"
        weak = b"def test_two():\n    pass\n"
        fixed = b"def double(number):\n    return 2 * number\n"
        bent = b"import sys\nsys.modules['calc'] = type('calc', (), {'double': lambda self, n: 2 * n})()\n"
        return [
            await graded({"calc.py": fixed}),
            await graded({"calc.py": cheat}),
            await graded({"test_calc.py": weak}),
            await graded({"calc.py": fixed, "test_calc.py": None}),
            await graded({"conftest.py": bent}),
            await graded({"calc.py": b"("}),
        ]

    assert asyncio.run(all_of_them()) == [
        (True, ()),
        (False, ()),
        (False, ("test_calc.py",)),
        (True, ("test_calc.py",)),
        (False, ("conftest.py",)),
        (False, ()),
    ]


def verified(house: AppContext, task: Task, folder: Path, repeats: int = 2) -> TaskCheck:
    return asyncio.run(verify(Grader(house), open_site(house, task, folder / task.slug), repeats))


@pytest.mark.soak
def test_a_good_task_is_verified(house: AppContext, task: Task, tmp_path: Path) -> None:
    found = verified(house, task, tmp_path)
    assert (found.ok, found.why, found.digest) == (True, "", task.digest)
    assert found.red == ("test_calc.py::test_two", "test_calc.py::test_three")


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ({"fix": TaskChange()}, "its true fix is not known"),
        (
            {"fix": TaskChange(files={"calc.py": "def double(number):\n    return 4\n"})},
            "does not pass with its true fix",
        ),
        pytest.param({"hidden": TaskChange(),
                      "base": Base(change=TaskChange(files={"calc.py": "1\n", "test_x.py": GREEN}))},
                     "none of its tests fails", marks=pytest.mark.soak),
        ({"fix": TaskChange(diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")}, "does not apply"),
        pytest.param({"base": Base(change=TaskChange(files={"calc.py": "1\n"})), "hidden": TaskChange()},
                     "its tests do not run", marks=pytest.mark.soak),
    ],
)  # fmt: skip
def test_what_is_no_task_is_left_out(
    house: AppContext, task: Task, tmp_path: Path, over: dict[str, object], why: str
) -> None:
    found = verified(house, task.model_copy(update=over), tmp_path, repeats=1)
    assert not found.ok
    assert why in found.why


@pytest.mark.soak
def test_a_flaky_task_is_left_out(house: AppContext, task: Task, tmp_path: Path) -> None:
    """In each pair of tests, one always fails and one passes or fails at random."""
    text = "import os\n\n\ndef test_a():\n    assert 0\n\n\ndef test_b():\n    assert os.urandom(1)[0] % 2\n"
    many = "".join(text.replace("test_", f"test_{number}") for number in range(8))
    flaky = task.model_copy(
        update={"base": Base(change=TaskChange(files={"calc.py": "1\n", "test_calc.py": many})), "hidden": TaskChange()}
    )
    assert "flaky" in verified(house, flaky, tmp_path, repeats=4).why
