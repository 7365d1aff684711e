"""Applying and undoing over the states that a working tree can be in: no byte of anybody's is lost in any of them."""

from __future__ import annotations

import copy
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.errors import ConfigError, StoreError
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.handover import (
    Desk,
    Happened,
    Outcome,
    apply_patch,
    changes_between,
    commit_on_branch,
    undo_patch,
)
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.repo.worktree import FileChange, Version

TEXT = b"".join(b"line %d\n" % number for number in range(1, 31))
CRLF = TEXT.replace(b"\n", b"\r\n")
OLD, NEW = b"line 15", b"fixed 15"
FILES = {"calc.py": TEXT, "pkg/util.py": TEXT, "other.py": b"other\n", ".gitignore": b"*.log\nbuild/\n"}
WEIRD = os.fsdecode(b"na\xefve \xff.py")


class State(NamedTuple):
    """What a folder holds, which files a patch of it changes, and what happens to the folder before it is applied."""

    arrange: Callable[[Repo], None]
    happened: Happened
    base: Mapping[str, bytes]
    patch: Mapping[str, bytes | None] | None
    """None: `OLD` becomes `NEW` in calc.py and pkg/util.py, which is what the result is compared with, too."""
    is_git: bool


STATES: dict[str, State] = {}
"""Filled by the functions below: each arranges what its name says."""


def state(happened: str, *, base: Mapping[str, bytes] | None = None, patch=None, is_git: bool = True):
    def keep(arrange: Callable[[Repo], None]) -> None:
        STATES[arrange.__name__] = State(arrange, Happened(happened), {**FILES, **(base or {})}, patch, is_git)

    return keep


class Repo:
    def __init__(self, folder: Path, home: Path, given: State) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for path, data in given.base.items():
            self.write(path, data)
        if given.is_git:
            self.git("init", "-q", "-b", "main")
            self.git("add", "-A")
            self.git("commit", "-qm", "one")
        self.blobs = DirectoryBlobs(home / "blobs")
        self.trees = GitTrees(home / "snapshots", self.blobs)
        self.base = self.trees.take(folder)
        changed = given.patch or {path: TEXT.replace(OLD, NEW) for path in ("calc.py", "pkg/util.py")}
        self.result = self.trees.write(self.base, changed)
        self.changes = changes_between(self.trees, self.base, self.result)
        self.desk = Desk(folder, self.blobs, home / "applied" / "run.json", "run")

    def apply(self) -> Outcome:
        return apply_patch(self.desk, self.changes)

    def undo(self) -> Outcome:
        return undo_patch(self.desk)

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        who = {f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ = {
            **kept,
            **who,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        command = ("git", "-c", "protocol.file.allow=always", *arguments)
        done = subprocess.run(command, cwd=cwd or self.folder, capture_output=True, env=environ, check=False)
        assert done.returncode == 0 or arguments[0] == "merge", done.stderr
        return done.stdout.decode(errors="surrogateescape")

    def write(self, path: str, data: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def edit(self, path: str, old: bytes, new: bytes) -> None:
        data = self.read(path)
        assert old in data
        self.write(path, data.replace(old, new))

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "more")

    def all(self) -> dict[str, tuple[int, bytes]]:
        """Every file, link and folder with its mode: all of the user's, git's own data too where it can be lost."""
        found: dict[str, tuple[int, bytes]] = {}
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                path = Path(folder, name)
                where = path.lstat().st_mode, str(path.relative_to(self.folder))
                if path.is_symlink():
                    found[where[1]] = (where[0], os.fsencode(path.readlink()))
                else:
                    found[where[1]] = (where[0], path.read_bytes() if path.is_file() else b"")
        return found


def other(everything: Mapping[str, tuple[int, bytes]], repo: Repo) -> dict[str, tuple[int, bytes]]:
    """All but what the patch is about."""
    return {path: one for path, one in everything.items() if path not in {change.path for change in repo.changes}}


# -- states of a folder in which the patch can be taken ------------------------------------------------------------


@state("done")
def clean(repo):
    """As the run saw it."""


@state("done")
def dirty_elsewhere(repo):
    repo.write("other.py", b"uncommitted\n")
    repo.write("untracked.py", b"untracked\n")


@state("done")
def dirty_in_the_same_file(repo):
    repo.edit("calc.py", b"line 3\n", b"mine 3\nmore\n")


@state("done")
def dirty_at_both_ends(repo):
    repo.edit("calc.py", b"line 1\n", b"first\n")
    repo.edit("calc.py", b"line 30\n", b"last\n")


@state("done")
def staged_in_the_same_file(repo):
    repo.edit("calc.py", b"line 3\n", b"staged\n")
    repo.git("add", "calc.py")


@state("done")
def staged_elsewhere(repo):
    repo.write("new.py", b"staged\n")
    repo.git("add", "new.py")


@state("done")
def staged_and_changed_again(repo):
    repo.edit("calc.py", b"line 3\n", b"staged\n")
    repo.git("add", "calc.py")
    repo.edit("calc.py", b"line 28\n", b"not staged\n")


@state("done")
def staged_at_the_hunk_but_not_in_the_tree(repo):
    repo.edit("calc.py", OLD, b"staged 15")
    repo.git("add", "calc.py")
    repo.write("calc.py", TEXT)


@state("done")
def removed_from_the_index(repo):
    repo.git("rm", "-q", "--cached", "calc.py")


@state("done")
def moved_on_by_commits(repo):
    repo.edit("calc.py", b"line 3\n", b"committed\n")
    repo.commit()
    repo.edit("pkg/util.py", b"line 25\n", b"committed\n")
    repo.commit()


@state("done")
def rebased(repo):
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.edit("calc.py", b"line 3\n", b"other history\n")
    repo.commit()


@state("done")
def one_file_patched_by_hand(repo):
    repo.edit("calc.py", OLD, NEW)


@state("done")
def one_file_patched_and_committed(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.commit()
    repo.edit("pkg/util.py", b"line 2\n", b"mine\n")


@state("done", base={"calc.py": CRLF}, patch={"calc.py": CRLF.replace(OLD, NEW)})
def crlf(repo):
    repo.edit("calc.py", b"line 3\r\n", b"mine 3\r\n")


@state("done", base={"calc.py": TEXT[:100] + CRLF}, patch={"calc.py": (TEXT[:100] + CRLF).replace(OLD, NEW)})
def mixed_line_ends(repo):
    repo.edit("calc.py", b"line 29\r\n", b"mine 29\n")


@state("done", base={"calc.py": TEXT[:-1]}, patch={"calc.py": TEXT[:-1].replace(OLD, NEW)})
def no_final_newline(repo):
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")


@state("done")
def final_newline_lost_since(repo):
    repo.write("calc.py", TEXT[:-1])


@state("done")
def executable(repo):
    (repo.folder / "calc.py").chmod(0o755)
    (repo.folder / "pkg" / "util.py").chmod(0o700)


@state("done")
def read_only(repo):
    (repo.folder / "calc.py").chmod(0o444)
    (repo.folder / "pkg" / "util.py").chmod(0o600)


@state("done")
def submodule_present(repo):
    inner = repo.folder.parent / "inner"
    inner.mkdir()
    (inner / "calc.py").write_bytes(TEXT)
    repo.git("init", "-q", cwd=inner)
    repo.git("add", "-A", cwd=inner)
    repo.git("commit", "-qm", "inner", cwd=inner)
    repo.git("submodule", "--quiet", "add", str(inner), "vendored")
    (repo.folder / "vendored" / "calc.py").write_bytes(b"changed in the submodule\n")


@state("done")
def nested_repo(repo):
    repo.write("nested/calc.py", TEXT)
    repo.git("init", "-q", cwd=repo.folder / "nested")


@state("done")
def detached_head(repo):
    repo.git("checkout", "-q", "--detach")
    repo.write("other.py", b"uncommitted\n")


@state("done")
def unborn_head(repo):
    repo.git("checkout", "-q", "--orphan", "nothing-yet")


@state("done")
def stash_present(repo):
    repo.edit("calc.py", OLD, b"stashed 15")
    repo.git("stash", "-q")


@state("done")
def ignored_files(repo):
    repo.write("noise.log", b"noise\n")
    repo.write("build/out", b"out\n")
    repo.write("pkg/calc.log", b"more\n")


@state("done")
def merge_in_progress(repo):
    repo.git("checkout", "-qb", "side")
    repo.write("other.py", b"theirs\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write("other.py", b"ours\n")
    repo.commit()
    repo.git("merge", "-q", "side")
    assert (repo.folder / ".git" / "MERGE_HEAD").exists()


@state("done")
def ignored_since(repo):
    repo.write(".gitignore", b"calc.py\n")
    repo.git("rm", "-q", "--cached", "calc.py")


@state("done")
def index_locked(repo):
    (repo.folder / ".git" / "index.lock").touch()


@state("done", is_git=False)
def no_git(repo):
    repo.write("other.py", b"mine\n")


@state("done", is_git=False)
def became_a_repo(repo):
    repo.git("init", "-q")


@state("done")
def stopped_being_a_repo(repo):
    (repo.folder / ".git").rename(repo.folder / "was.git")


@state("done")
def case_variants(repo):
    repo.write("Calc.py", b"another file\n")
    repo.write("CALC.PY", b"a third\n")


@state(
    "done",
    base={"größe/日本 x.py": TEXT, WEIRD: TEXT},
    patch=dict.fromkeys(("größe/日本 x.py", WEIRD), TEXT.replace(OLD, NEW)),
)
def odd_names(repo):
    repo.edit(WEIRD, b"line 3\n", b"mine\n")


@state("done", base={"calc.py": b"filler\n" * 2_000_000 + OLD}, patch={"calc.py": b"filler\n" * 2_000_000 + NEW})
def huge(repo):
    data = repo.read("calc.py")
    repo.write("calc.py", b"at the top\n" + data)


@state("done", base={"logo.png": b"\x89PNG\0\1"}, patch={"logo.png": b"\x89PNG\0\2"})
def binary(repo):
    """Equal to what the run saw."""


@state("done")
def symlinks_elsewhere(repo):
    (repo.folder / "link.py").symlink_to("calc.py")
    (repo.folder / "out").symlink_to("/")


@state("done", patch={"fresh/deep/new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_in_a_new_folder(repo):
    """The folders are made for it."""


@state("done", patch={"fresh/new.py": b"new\n"})
def a_new_file_in_a_folder_made_since(repo):
    repo.write("fresh/mine.py", b"mine\n")


@state("done", patch={"fresh/new.py": b"new\n"})
def a_new_file_in_an_empty_folder_of_the_users(repo):
    (repo.folder / "fresh").mkdir()


@state("done", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file(repo):
    (repo.folder / "pkg" / "util.py").chmod(0o640)


@state("done", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file_that_is_gone(repo):
    (repo.folder / "pkg" / "util.py").unlink()


# -- states in which there is nothing to do ------------------------------------------------------------------------


@state("already")
def patched_by_hand(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("pkg/util.py", OLD, NEW)


@state("already")
def patched_by_hand_with_edits(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("calc.py", b"line 3\n", b"mine\n")
    repo.edit("pkg/util.py", OLD, NEW)
    repo.commit()


@state("already", patch={"new.py": b"new\n"})
def a_new_file_that_is_there(repo):
    repo.write("new.py", b"new\n")


# -- states in which nothing may be written ------------------------------------------------------------------------


@state("refused")
def dirty_at_the_hunk(repo):
    repo.edit("pkg/util.py", OLD, b"mine 15")


@state("refused")
def dirty_beside_the_hunk(repo):
    repo.edit("calc.py", b"line 16\n", b"mine 16\n")


@state("refused")
def committed_at_the_hunk(repo):
    repo.edit("calc.py", OLD, b"committed 15")
    repo.commit()


@state("refused")
def half_patched_with_another_fix(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("pkg/util.py", OLD, b"my own fix of 15")


@state("refused")
def file_deleted(repo):
    (repo.folder / "pkg" / "util.py").unlink()


@state("refused")
def file_renamed(repo):
    repo.git("mv", "pkg/util.py", "pkg/tools.py")


@state("refused")
def folder_deleted(repo):
    (repo.folder / "pkg" / "util.py").unlink()
    (repo.folder / "pkg").rmdir()


@state("refused")
def unmerged_at_the_hunk(repo):
    for branch, text in (("side", b"side 15"), ("main", b"main 15")):
        repo.git("checkout", "-q", *(("-b",) if branch == "side" else ()), branch)
        repo.edit("calc.py", OLD, text)
        repo.commit()
    repo.git("merge", "-q", "side")
    assert b"<<<<<<<" in repo.read("calc.py")


@state("refused")
def replaced_by_a_symlink(repo):
    (repo.folder / "calc.py").rename(repo.folder / "real.py")
    (repo.folder / "calc.py").symlink_to("real.py")


@state("refused")
def replaced_by_a_symlink_out_of_the_folder(repo):
    (repo.folder.parent / "victim.py").write_bytes(TEXT)
    (repo.folder / "calc.py").unlink()
    (repo.folder / "calc.py").symlink_to(repo.folder.parent / "victim.py")


@state("refused")
def parent_replaced_by_a_symlink(repo):
    (repo.folder / "pkg").rename(repo.folder.parent / "pkg")
    (repo.folder / "pkg").symlink_to(repo.folder.parent / "pkg")


@state("refused", patch={"fresh/new.py": b"new\n"})
def new_file_behind_a_symlink(repo):
    (repo.folder.parent / "outside").mkdir()
    (repo.folder / "fresh").symlink_to(repo.folder.parent / "outside")


@state("refused", patch={"fresh/new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_file_where_a_folder_is_needed(repo):
    repo.write("fresh", b"a file\n")


@state("refused")
def replaced_by_a_directory(repo):
    (repo.folder / "calc.py").unlink()
    repo.write("calc.py/__init__.py", b"now a folder\n")


@state("refused")
def replaced_by_a_fifo(repo):
    (repo.folder / "calc.py").unlink()
    os.mkfifo(repo.folder / "calc.py")


@state("refused")
def folder_became_a_repo(repo):
    repo.git("init", "-q", cwd=repo.folder / "pkg")


@state("refused", patch={"new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_where_another_is(repo):
    repo.write("new.py", b"mine\n")


@state("refused", patch={"new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_where_an_ignored_one_is(repo):
    repo.write(".gitignore", b"new.py\n")
    repo.write("new.py", b"mine\n")


@state("refused", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file_that_was_changed(repo):
    repo.edit("pkg/util.py", b"line 1\n", b"mine\n")


@state(
    "refused", base={"logo.png": b"\x89PNG\0\1"}, patch={"logo.png": b"\x89PNG\0\2", "calc.py": TEXT.replace(OLD, NEW)}
)
def binary_changed(repo):
    repo.write("logo.png", b"\x89PNG\0\3")


@state("refused", base={"calc.py": CRLF}, patch={"calc.py": CRLF.replace(OLD, NEW)})
def line_ends_converted(repo):
    repo.write("calc.py", TEXT)


@pytest.fixture
def made(tmp_path):
    """Makes the folder of a state, not yet arranged."""
    repos: list[Repo] = []

    def make(name: str) -> Repo:
        repos.append(Repo(tmp_path / "projects" / "repo", tmp_path / "home", STATES[name]))
        return repos[-1]

    yield make
    for repo in repos:
        repo.trees.close()


def expected(repo: Repo, name: str, before: Mapping[str, tuple[int, bytes]]) -> dict[str, bytes | None]:
    """The patched files as they must be, worked out without a merge: only the lines of the patch differ."""
    wanted = STATES[name].patch or dict.fromkeys(("calc.py", "pkg/util.py"), b"")
    found: dict[str, bytes | None] = {}
    for path, data in wanted.items():
        there = before.get(path)
        text = there is not None and data is not None and b"\0" not in there[1]
        found[path] = there[1].replace(OLD, NEW) if there and text else data
    return found


def test_at_least_thirty_states():
    assert len(STATES) >= 30


@pytest.mark.parametrize("name", STATES)
def test_apply_and_undo(tmp_path, made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    outside = sorted(tmp_path.joinpath("projects").rglob("*"))
    before, wanted = repo.all(), expected(repo, name, repo.all())

    outcome = repo.apply()

    after = repo.all()
    assert outcome.happened is STATES[name].happened, outcome
    if outcome.happened is not Happened.done:
        assert after == before
        assert outcome.files
        assert repo.undo() == Outcome(Happened.unknown)
        assert (repo.all(), sorted(tmp_path.joinpath("projects").rglob("*"))) == (before, outside)
        return
    made_folders = {path for path in after if path not in before and (repo.folder / path).is_dir()}
    assert other({path: one for path, one in after.items() if path not in made_folders}, repo) == other(before, repo)
    assert {path: after[path][1] if path in after else None for path in wanted} == wanted
    assert all(after[path][0] == before[path][0] for path in wanted if path in before and path in after)

    again = repo.apply()
    assert (again.happened, repo.all()) == (Happened.already, after)

    assert repo.undo().happened is Happened.done
    assert repo.all() == before
    assert repo.undo().happened is Happened.unknown
    assert repo.apply().happened is Happened.done
    assert repo.all() == after


def test_refused_names_every_conflict_and_no_other_file(made):
    repo = made("half_patched_with_another_fix")
    repo.edit("pkg/util.py", OLD, b"my own fix of 15")
    (file,) = repo.apply().files
    assert (file.path, file.what, file.reason) == ("pkg/util.py", "refused", "it was changed in the same place")


def test_a_worktree_and_a_symlinked_folder(tmp_path, made):
    repo = made("clean")
    side = tmp_path / "side"
    repo.git("worktree", "add", "-q", str(side))
    link = tmp_path / "link"
    link.symlink_to(side)
    main, index = repo.all(), (repo.folder / ".git/worktrees/side/index").read_bytes()
    desk = repo.desk._replace(root=link.resolve())
    assert apply_patch(desk, repo.changes).happened is Happened.done
    assert (side / "calc.py").read_bytes() == TEXT.replace(OLD, NEW)
    assert (repo.all(), (repo.folder / ".git/worktrees/side/index").read_bytes()) == (main, index)
    assert undo_patch(desk).happened is Happened.done
    assert (side / "calc.py").read_bytes() == TEXT


def test_edits_and_commits_after_applying_survive_undo(made):
    repo = made("clean")
    repo.apply()
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    repo.commit()
    repo.edit("pkg/util.py", b"line 28\n", b"mine 28\n")
    outcome = repo.undo()
    assert [(one.path, one.what) for one in outcome.files] == [("calc.py", "merged"), ("pkg/util.py", "merged")]
    assert repo.read("calc.py") == TEXT.replace(b"line 3\n", b"mine 3\n")
    assert repo.read("pkg/util.py") == TEXT.replace(b"line 28\n", b"mine 28\n")


@pytest.mark.parametrize(
    ("patch", "spoil"),
    [
        ("clean", lambda repo: repo.edit("calc.py", NEW, b"fixed better")),
        ("clean", lambda repo: (repo.folder / "pkg" / "util.py").unlink()),
        ("a_new_file_in_a_new_folder", lambda repo: repo.write("fresh/deep/new.py", b"new\nmore\n")),
        ("deletes_a_file", lambda repo: repo.write("pkg/util.py", b"written anew\n")),
    ],
)
def test_undo_refuses_with_nothing_written_where_it_would_lose_an_edit(made, patch, spoil):
    repo = made(patch)
    repo.apply()
    spoil(repo)
    before = repo.all()
    outcome = repo.undo()
    assert (outcome.happened, len(outcome.files), repo.all()) == (Happened.refused, 1, before)


def test_undo_takes_back_only_what_apply_wrote(made):
    repo = made("clean")
    repo.edit("calc.py", OLD, NEW)
    repo.apply()
    repo.undo()
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (TEXT.replace(OLD, NEW), TEXT)


def test_what_the_user_took_back_can_be_applied_again_and_all_of_it_undone(made):
    repo = made("clean")
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.all()
    repo.apply()
    repo.git("checkout", "-q", "pkg/util.py")
    assert [one.what for one in repo.apply().files] == ["already", "written"]
    repo.undo()
    assert other(repo.all(), repo)["other.py"] == before["other.py"]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (before["calc.py"][1], TEXT)


def test_undo_of_what_the_user_took_back_has_nothing_to_do(made):
    repo = made("clean")
    repo.apply()
    repo.git("checkout", "-q", ".")
    assert (repo.undo().happened, repo.undo().happened) == (Happened.already, Happened.unknown)


def test_the_executable_bit_that_a_patch_sets_is_set_and_taken_back(made):
    repo = made("clean")
    diff = b"diff --git a/calc.py b/calc.py\nold mode 100644\nnew mode 100755\n"
    turned = repo.trees.apply(repo.base, diff)
    repo.changes = changes_between(repo.trees, repo.base, turned)
    (repo.folder / "calc.py").chmod(0o640)
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.all()
    assert repo.apply().happened is Happened.done
    assert (repo.folder / "calc.py").stat().st_mode & 0o777 == 0o750
    assert repo.undo().happened is Happened.done
    assert repo.all() == before


def test_a_patch_that_deletes_a_symlink_is_refused(made):
    repo = made("clean")
    (repo.folder / "link.py").symlink_to("calc.py")
    base = repo.trees.take(repo.folder)
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, {"link.py": None, "calc.py": b"x\n"}))
    before = repo.all()
    assert (repo.apply().happened, repo.all()) == (Happened.refused, before)


def test_git_own_folder_is_never_written(made):
    repo = made("clean")
    (change, _) = repo.changes
    for path in (".git/config", "pkg/.GIT/hooks/post-checkout", "../out.py", "/etc/x", "pkg/../../out.py"):
        outcome = apply_patch(repo.desk, [change._replace(path=path, before=None)])
        assert outcome.happened is Happened.refused, path


def test_a_damaged_record_is_an_error_and_nothing_is_written(made):
    repo = made("clean")
    repo.apply()
    repo.desk.record.write_text("{")
    before = repo.all()
    with pytest.raises(StoreError, match="cannot be read"):
        repo.undo()
    assert repo.all() == before


def edited(lines: list[bytes], who: bytes, rng: random.Random) -> tuple[list[bytes], set[bytes], set[bytes]]:
    """The lines with a few changed, dropped and added; and which ones came and went."""
    result, came, gone = list(lines), set(), set()
    for number in range(rng.randint(1, 3)):
        where = rng.randrange(len(result))
        new = [b"%s %d\n" % (who, number)] if rng.random() < 0.7 else []
        drop = rng.random() < 0.6
        gone |= {result[where]} & set(lines) if drop else set()
        came = (came - ({result[where]} if drop else set())) | set(new)
        result[where : where + drop] = new
    return result, came, gone


def test_whatever_was_edited_nobodys_line_is_lost_or_comes_back(tmp_path):
    """150 random patches on randomly edited files, undone after more edits. Every line is unlike every other."""
    blobs, told = DirectoryBlobs(tmp_path / "blobs"), []
    lines = [b"line %d\n" % number for number in range(12)]
    file = tmp_path / "repo" / "a.py"
    file.parent.mkdir()
    for seed in range(150):
        rng = random.Random(seed)
        patched, patch_came, patch_gone = edited(lines, b"patch", rng)
        mine, my_came, my_gone = edited(lines, b"mine", rng)
        desk = Desk(file.parent, blobs, tmp_path / f"{seed}.json", "run")
        file.write_bytes(b"".join(mine))
        change = FileChange("a.py", Version(b"".join(lines), False), Version(b"".join(patched), False))
        happened = apply_patch(desk, [change]).happened
        told.append(happened)
        result = file.read_bytes().splitlines(keepends=True)
        if happened is Happened.refused:
            assert result == mine
            continue
        assert my_came | patch_came <= set(result), seed
        assert not (my_gone | patch_gone) & set(result), seed
        later, later_came, later_gone = edited(result, b"later", rng)
        file.write_bytes(b"".join(later))
        again = undo_patch(desk).happened
        left = file.read_bytes().splitlines(keepends=True)
        if again is Happened.refused:
            assert left == later
            file.write_bytes(b"".join(result))
            assert undo_patch(desk).happened is not Happened.refused
            assert file.read_bytes() == b"".join(mine)
        elif again is Happened.done:
            assert (later_came | my_came) - later_gone <= set(left), seed
            assert not (later_gone | patch_came) & set(left), seed
    assert min(told.count(Happened.done), told.count(Happened.refused)) > 15, told


# -- killed in the middle ------------------------------------------------------------------------------------------

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo import handover

what, seed = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(seed.parent))
sys.dont_write_bytecode = True

def go(place, last):
    count = 0

    def watch(event, arguments):
        nonlocal count
        writes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod")
        if writes or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    from handed_changes import changes
    blobs = DirectoryBlobs(place / "home" / "blobs")
    desk = handover.Desk(place / "repo", blobs, place / "home" / "applied" / "run.json", "run")
    sys.addaudithook(watch)
    handover.apply_patch(desk, changes) if what == "apply" else handover.undo_patch(desk)

last = 0
while True:
    last += 1
    place = seed.parent / f"{what}-{last}"
    shutil.copytree(seed, place, symlinks=True)
    child = os.fork()
    if child == 0:
        go(place, last)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
        break
"""
"""Applies or undoes in copies of a folder, each time killed one write later, until one is not killed any more."""


def killed_everywhere(what: str, repo: Repo, seed: Path) -> list[Path]:
    """The copies that were killed, in the order of the writes."""
    lines = ["from redstart.toolkit.repo.worktree import FileChange, Version", f"changes = {repo.changes!r}"]
    (seed.parent / "handed_changes.py").write_text("\n".join(lines))
    command = [sys.executable, "-c", KILLED, what, str(seed)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return [seed.parent / f"{what}-{last}" for last in range(1, len(list(seed.parent.glob(f"{what}-*"))))]


def at(repo: Repo, place: Path) -> Repo:
    """The same in another place."""
    moved = copy.copy(repo)
    moved.folder = place / "repo"
    moved.blobs = DirectoryBlobs(place / "home" / "blobs")
    moved.desk = Desk(moved.folder, moved.blobs, place / "home" / "applied" / "run.json", "run")
    return moved


@pytest.mark.parametrize("what", ["apply", "undo"])
def test_killed_before_any_of_its_writes_it_is_finished_by_either_command(made, tmp_path, what):
    repo = made("clean")
    repo.write("gone.py", b"gone\n")
    (repo.folder / "gone.py").chmod(0o640)
    base = repo.trees.take(repo.folder)
    fixed = TEXT.replace(OLD, NEW)
    files = {"calc.py": fixed, "fresh/deep/new.py": b"new\n", "gone.py": None, "pkg/util.py": fixed}
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, files))
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.all()
    home = repo.desk.record.parents[1]
    if what == "undo":
        repo.apply()
    seed = tmp_path / "copies" / "seed"
    shutil.copytree(repo.folder, seed / "repo")
    shutil.copytree(home, seed / "home")
    repo.apply()
    after = repo.all()

    killed = killed_everywhere(what, repo, seed)

    between = [place for place in killed if at(repo, place).all() not in (before, after)]
    assert len(between) > 4, "none was killed between two writes"
    for place in killed:
        for then, wanted in (("apply", after), ("undo", before)):
            shutil.copytree(place, place / then, symlinks=True)
            again = at(repo, place / then)
            outcome = again.apply() if then == "apply" else again.undo()
            assert outcome.happened is not Happened.refused, (place.name, outcome)
            assert again.all() == wanted, (place.name, then)
            finished = again.undo() if then == "apply" else again.apply()
            assert finished.happened is Happened.done, (place.name, then, finished)
            assert again.all() == (before if then == "apply" else after), (place.name, then)


def test_a_file_that_changes_at_the_last_moment_is_not_overwritten(made, monkeypatch):
    repo = made("clean")
    real, seen = os.fsync, []

    def save_in_the_editor(handle: int) -> None:
        real(handle)
        seen.append(handle)
        repo.write("pkg/util.py", b"saved meanwhile\n")

    monkeypatch.setattr(os, "fsync", save_in_the_editor)
    outcome = repo.apply()
    monkeypatch.undo()
    assert seen
    assert [(one.path, one.what) for one in outcome.files] == [("pkg/util.py", "refused")]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (TEXT, b"saved meanwhile\n")
    assert not list(repo.folder.rglob(".redstart*"))
    assert repo.undo().happened is Happened.unknown


def test_a_disk_that_says_no_leaves_everything_as_it_was(made, monkeypatch):
    repo = made("a_new_file_in_a_new_folder")
    before, real, calls = repo.all(), os.fchown, []

    def full(handle: int, owner: int, group: int) -> None:
        calls.append(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchown", full)
    with pytest.raises(StoreError, match="nothing was changed"):
        repo.apply()
    monkeypatch.setattr(os, "fchown", real)
    assert calls
    assert repo.all() == before
    assert repo.apply().happened is Happened.done


# -- on a branch ---------------------------------------------------------------------------------------------------


def on_branch(repo: Repo, name: str = "fix/red") -> Outcome:
    for setting in ("user.name", "user.email"):
        repo.git("config", setting, "a@b")
    return commit_on_branch(repo.folder, repo.changes, name, "the fix")


def untouched(repo: Repo) -> dict[str, tuple[int, bytes]]:
    """Everything but git's objects, its configuration and the branch that is made."""
    skipped = (".git/objects", ".git/config", ".git/refs/heads/fix", ".git/logs/refs/heads/fix")
    return {path: one for path, one in repo.all().items() if not path.startswith(skipped)}


def tree(repo: Repo, commit: str) -> dict[str, bytes]:
    names = repo.git("ls-tree", "-rz", "--name-only", commit).split("\0")[:-1]
    return {name: repo.git("cat-file", "blob", f"{commit}:{name}").encode() for name in names}


@pytest.mark.parametrize(
    "name",
    [
        *("clean", "dirty_elsewhere", "dirty_at_the_hunk", "staged_and_changed_again", "moved_on_by_commits"),
        *("detached_head", "stash_present", "merge_in_progress", "file_deleted", "replaced_by_a_symlink"),
        "index_locked",
    ],
)
def test_a_branch_holds_only_the_patch_and_nothing_else_is_touched(made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    before, head = untouched(repo), tree(repo, "HEAD")
    outcome = on_branch(repo)
    assert outcome.happened is Happened.done
    assert untouched(repo) == before
    assert repo.git("rev-parse", "fix/red", "fix/red^") == f"{outcome.commit}\n{repo.git('rev-parse', 'HEAD')}"
    patched = {path: data.replace(OLD, NEW) for path, data in head.items() if path in ("calc.py", "pkg/util.py")}
    assert tree(repo, "fix/red") == {**head, **patched}
    with pytest.raises(ConfigError, match="exists already"):
        on_branch(repo)


def test_a_branch_with_new_deleted_and_executable_files_from_a_folder_inside_the_repo(made):
    repo = made("clean")
    (repo.folder / "pkg" / "run.py").write_bytes(TEXT)
    (repo.folder / "pkg" / "run.py").chmod(0o755)
    repo.commit()
    base = repo.trees.take(repo.folder / "pkg")
    files = {"util.py": None, "run.py": TEXT.replace(OLD, NEW), "deep/new.py": b"new\n"}
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, files))
    for setting in ("user.name", "user.email"):
        repo.git("config", setting, "a@b")
    assert commit_on_branch(repo.folder / "pkg", repo.changes, "fix", "the fix").happened is Happened.done
    told = repo.git("diff", "--raw", "--abbrev=4", "--no-renames", "HEAD", "fix")
    assert [line.split()[0:2] + line.split()[4:] for line in told.splitlines()] == [
        [":000000", "100644", "A", "pkg/deep/new.py"],
        [":100755", "100755", "M", "pkg/run.py"],
        [":100644", "000000", "D", "pkg/util.py"],
    ]


@pytest.mark.parametrize("name", ["committed_at_the_hunk", "folder_deleted", "replaced_by_a_symlink"])
def test_a_branch_that_would_conflict_is_not_made(made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "more", "--allow-empty")
    before = untouched(repo)
    assert on_branch(repo).happened is Happened.refused
    assert (untouched(repo), repo.git("branch", "--list", "fix/red")) == (before, "")


def test_a_branch_in_a_repo_that_keeps_plain_line_ends(made):
    repo = made("clean")
    repo.write("calc.py", CRLF)
    base = repo.trees.take(repo.folder)
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, {"calc.py": CRLF.replace(OLD, NEW)}))
    assert on_branch(repo).happened is Happened.done
    assert tree(repo, "fix/red")["calc.py"] == TEXT.replace(OLD, NEW)


def test_a_commit_that_holds_the_patch_already_gets_no_branch(made):
    repo = made("clean")
    STATES["patched_by_hand"].arrange(repo)
    repo.commit()
    assert (on_branch(repo).happened, repo.git("branch", "--list", "fix/red")) == (Happened.already, "")


def test_a_branch_by_nobody_is_not_made(made):
    repo = made("clean")
    repo.git("config", "user.name", "")
    with pytest.raises(ConfigError, match="who commits"):
        commit_on_branch(repo.folder, repo.changes, "fix", "the fix")
    assert repo.git("branch", "--list", "fix") == ""


@pytest.mark.parametrize(
    ("name", "branch", "words"),
    [
        ("no_git", "fix", "no git repo"),
        ("unborn_head", "fix", "no commit yet"),
        ("clean", "main", "exists already"),
        ("clean", "main/deeper", "cannot be made"),
        ("clean", "two words", "no name for a branch"),
        ("clean", "-d", "no name for a branch"),
        ("clean", "HEAD", "no name for a branch"),
        ("clean", "", "no name for a branch"),
    ],
)
def test_a_branch_that_cannot_be_made_is_a_matter_of_usage(made, name, branch, words):
    repo = made(name)
    STATES[name].arrange(repo)
    before = repo.all()
    if name == "clean":
        repo.git("config", "user.name", "a")
        repo.git("config", "user.email", "a@b")
        before = untouched(repo)
    with pytest.raises(ConfigError, match=words):
        commit_on_branch(repo.folder, repo.changes, branch, "the fix")
    assert (untouched(repo) if name == "clean" else repo.all()) == before
