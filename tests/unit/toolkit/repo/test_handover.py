"""Apply and undo in every state that a working tree can be in: nobody's bytes are lost in any of them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from handover_states import NEW, OLD, STATES, TEXT, Repo, other

from redstart.core.errors import StoreError
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverEvent,
    HandoverOutcome,
    apply_patch,
    changes_between,
    undo_patch,
)
from redstart.toolkit.repo.worktree import FileChange, Version

pytestmark = pytest.mark.slow


def expected(repo: Repo, name: str, before: Mapping[str, tuple[int, bytes]]) -> dict[str, bytes | None]:
    """Return the patched files as they must be, computed without a merge: only the lines of the patch differ."""
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
    if outcome.happened is not HandoverEvent.done:
        assert after == before
        assert outcome.files
        assert repo.undo() == HandoverOutcome(HandoverEvent.unknown)
        assert (repo.all(), sorted(tmp_path.joinpath("projects").rglob("*"))) == (before, outside)
        return
    made_folders = {path for path in after if path not in before and (repo.folder / path).is_dir()}
    assert other({path: item for path, item in after.items() if path not in made_folders}, repo) == other(before, repo)
    assert {path: after[path][1] if path in after else None for path in wanted} == wanted
    assert all(after[path][0] == before[path][0] for path in wanted if path in before and path in after)

    again = repo.apply()
    assert (again.happened, repo.all()) == (HandoverEvent.already, after)

    assert repo.undo().happened is HandoverEvent.done
    assert repo.all() == before
    assert repo.undo().happened is HandoverEvent.unknown
    assert repo.apply().happened is HandoverEvent.done
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
    assert apply_patch(desk, repo.changes).happened is HandoverEvent.done
    assert (side / "calc.py").read_bytes() == TEXT.replace(OLD, NEW)
    assert (repo.all(), (repo.folder / ".git/worktrees/side/index").read_bytes()) == (main, index)
    assert undo_patch(desk).happened is HandoverEvent.done
    assert (side / "calc.py").read_bytes() == TEXT


def test_edits_and_commits_after_applying_survive_undo(made):
    repo = made("clean")
    repo.apply()
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    repo.commit()
    repo.edit("pkg/util.py", b"line 28\n", b"mine 28\n")
    outcome = repo.undo()
    assert [(file.path, file.what) for file in outcome.files] == [("calc.py", "merged"), ("pkg/util.py", "merged")]
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
    assert (outcome.happened, len(outcome.files), repo.all()) == (HandoverEvent.refused, 1, before)


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
    assert [file.what for file in repo.apply().files] == ["already", "written"]
    repo.undo()
    assert other(repo.all(), repo)["other.py"] == before["other.py"]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (before["calc.py"][1], TEXT)


def test_undo_of_what_the_user_took_back_has_nothing_to_do(made):
    repo = made("clean")
    repo.apply()
    repo.git("checkout", "-q", ".")
    assert (repo.undo().happened, repo.undo().happened) == (HandoverEvent.already, HandoverEvent.unknown)


def test_the_executable_bit_that_a_patch_sets_is_set_and_taken_back(made):
    repo = made("clean")
    diff = b"diff --git a/calc.py b/calc.py\nold mode 100644\nnew mode 100755\n"
    turned = repo.trees.apply(repo.base, diff)
    repo.changes = changes_between(repo.trees, repo.base, turned)
    (repo.folder / "calc.py").chmod(0o640)
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.all()
    assert repo.apply().happened is HandoverEvent.done
    assert (repo.folder / "calc.py").stat().st_mode & 0o777 == 0o750
    assert repo.undo().happened is HandoverEvent.done
    assert repo.all() == before


def test_a_patch_that_deletes_a_symlink_is_refused(made):
    repo = made("clean")
    (repo.folder / "link.py").symlink_to("calc.py")
    base = repo.trees.take(repo.folder)
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, {"link.py": None, "calc.py": b"x\n"}))
    before = repo.all()
    assert (repo.apply().happened, repo.all()) == (HandoverEvent.refused, before)


def test_git_own_folder_is_never_written(made):
    repo = made("clean")
    (change, _) = repo.changes
    for path in (".git/config", "pkg/.GIT/hooks/post-checkout", "../out.py", "/etc/x", "pkg/../../out.py"):
        outcome = apply_patch(repo.desk, [change._replace(path=path, before=None)])
        assert outcome.happened is HandoverEvent.refused, path


def test_a_damaged_record_is_an_error_and_nothing_is_written(made):
    repo = made("clean")
    repo.apply()
    repo.desk.record.write_text("{")
    before = repo.all()
    with pytest.raises(StoreError, match="cannot be read"):
        repo.undo()
    assert repo.all() == before


def edited(lines: list[bytes], who: bytes, rng: random.Random) -> tuple[list[bytes], set[bytes], set[bytes]]:
    """Change, drop and add a few lines. Return the result, the added lines and the removed lines."""
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
    """Apply 150 random patches to randomly edited files and undo them after more edits. Every line is unique."""
    blobs, told = DirectoryBlobs(tmp_path / "blobs"), []
    lines = [b"line %d\n" % number for number in range(12)]
    file = tmp_path / "repo" / "a.py"
    file.parent.mkdir()
    for seed in range(150):
        rng = random.Random(seed)
        patched, patch_came, patch_gone = edited(lines, b"patch", rng)
        mine, my_came, my_gone = edited(lines, b"mine", rng)
        desk = HandoverContext(file.parent, blobs, tmp_path / f"{seed}.json", "run")
        file.write_bytes(b"".join(mine))
        change = FileChange("a.py", Version(b"".join(lines), False), Version(b"".join(patched), False))
        happened = apply_patch(desk, [change]).happened
        told.append(happened)
        result = file.read_bytes().splitlines(keepends=True)
        if happened is HandoverEvent.refused:
            assert result == mine
            continue
        assert my_came | patch_came <= set(result), seed
        assert not (my_gone | patch_gone) & set(result), seed
        later, later_came, later_gone = edited(result, b"later", rng)
        file.write_bytes(b"".join(later))
        again = undo_patch(desk).happened
        left = file.read_bytes().splitlines(keepends=True)
        if again is HandoverEvent.refused:
            assert left == later
            file.write_bytes(b"".join(result))
            assert undo_patch(desk).happened is not HandoverEvent.refused
            assert file.read_bytes() == b"".join(mine)
        elif again is HandoverEvent.done:
            assert (later_came | my_came) - later_gone <= set(left), seed
            assert not (later_gone | patch_came) & set(left), seed
    assert min(told.count(HandoverEvent.done), told.count(HandoverEvent.refused)) > 15, told
