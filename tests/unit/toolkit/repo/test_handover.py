"""Apply and undo in every state that a working tree can be in: nobody's bytes are lost in any of them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from handover_states import NEW, OLD, STATES, TEXT, Repo, exclude_patched

from redstart.core.errors import StoreError
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverEvent,
    HandoverOutcome,
    apply_patch,
    list_changes,
    undo_patch,
)
from redstart.toolkit.repo.worktree import FileChange, Version

pytestmark = pytest.mark.slow


def build_expected_files(repo: Repo, name: str, before: Mapping[str, tuple[int, bytes]]) -> dict[str, bytes | None]:
    """Return the patched files as they must be, computed without a merge: only the lines of the patch differ."""
    patched_files = STATES[name].patch or dict.fromkeys(("calc.py", "pkg/util.py"), b"")
    expected_files: dict[str, bytes | None] = {}
    for path, data in patched_files.items():
        entry = before.get(path)
        text = entry is not None and data is not None and b"\0" not in entry[1]
        expected_files[path] = entry[1].replace(OLD, NEW) if entry and text else data
    return expected_files


def test_corpus_has_at_least_thirty_states():
    assert len(STATES) >= 30


@pytest.mark.parametrize("name", STATES)
def test_patch_is_applied_and_undone_in_every_state(tmp_path, made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    outside = sorted(tmp_path.joinpath("projects").rglob("*"))
    before, expected_files = repo.list_entries(), build_expected_files(repo, name, repo.list_entries())

    outcome = repo.apply()

    after = repo.list_entries()
    assert outcome.happened is STATES[name].happened, outcome
    if outcome.happened is not HandoverEvent.done:
        assert after == before
        assert outcome.files
        assert repo.undo() == HandoverOutcome(HandoverEvent.unknown)
        assert (repo.list_entries(), sorted(tmp_path.joinpath("projects").rglob("*"))) == (before, outside)
        return
    created_folders = {path for path in after if path not in before and (repo.folder / path).is_dir()}
    assert exclude_patched(
        {path: item for path, item in after.items() if path not in created_folders}, repo
    ) == exclude_patched(before, repo)
    assert {path: after[path][1] if path in after else None for path in expected_files} == expected_files
    assert all(after[path][0] == before[path][0] for path in expected_files if path in before and path in after)

    second_outcome = repo.apply()
    assert (second_outcome.happened, repo.list_entries()) == (HandoverEvent.already, after)

    assert repo.undo().happened is HandoverEvent.done
    assert repo.list_entries() == before
    assert repo.undo().happened is HandoverEvent.unknown
    assert repo.apply().happened is HandoverEvent.done
    assert repo.list_entries() == after


def test_refusal_names_every_conflict_and_no_other_file(made):
    repo = made("half_patched_with_another_fix")
    repo.edit("pkg/util.py", OLD, b"my own fix of 15")
    (file,) = repo.apply().files
    assert (file.path, file.what, file.reason) == ("pkg/util.py", "refused", "it was changed in the same place")


def test_patch_works_in_a_worktree_and_a_symlinked_directory(tmp_path, made):
    repo = made("clean")
    worktree = tmp_path / "side"
    repo.git("worktree", "add", "-q", str(worktree))
    link = tmp_path / "link"
    link.symlink_to(worktree)
    main, index = repo.list_entries(), (repo.folder / ".git/worktrees/side/index").read_bytes()
    handover = repo.desk._replace(root=link.resolve())
    assert apply_patch(handover, repo.changes).happened is HandoverEvent.done
    assert (worktree / "calc.py").read_bytes() == TEXT.replace(OLD, NEW)
    assert (repo.list_entries(), (repo.folder / ".git/worktrees/side/index").read_bytes()) == (main, index)
    assert undo_patch(handover).happened is HandoverEvent.done
    assert (worktree / "calc.py").read_bytes() == TEXT


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
def test_undo_that_would_lose_an_edit_is_refused_without_writing(made, patch, spoil):
    repo = made(patch)
    repo.apply()
    spoil(repo)
    before = repo.list_entries()
    outcome = repo.undo()
    assert (outcome.happened, len(outcome.files), repo.list_entries()) == (HandoverEvent.refused, 1, before)


def test_undo_reverts_only_what_apply_wrote(made):
    repo = made("clean")
    repo.edit("calc.py", OLD, NEW)
    repo.apply()
    repo.undo()
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (TEXT.replace(OLD, NEW), TEXT)


def test_reverted_patch_can_be_applied_again_and_fully_undone(made):
    repo = made("clean")
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.list_entries()
    repo.apply()
    repo.git("checkout", "-q", "pkg/util.py")
    assert [file.what for file in repo.apply().files] == ["already", "written"]
    repo.undo()
    assert exclude_patched(repo.list_entries(), repo)["other.py"] == before["other.py"]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (before["calc.py"][1], TEXT)


def test_undo_after_the_user_reverted_everything_does_nothing(made):
    repo = made("clean")
    repo.apply()
    repo.git("checkout", "-q", ".")
    assert (repo.undo().happened, repo.undo().happened) == (HandoverEvent.already, HandoverEvent.unknown)


def test_executable_bit_of_a_patch_is_set_and_reverted(made):
    repo = made("clean")
    diff = b"diff --git a/calc.py b/calc.py\nold mode 100644\nnew mode 100755\n"
    executable_tree = repo.trees.apply(repo.base, diff)
    repo.changes = list_changes(repo.trees, repo.base, executable_tree)
    (repo.folder / "calc.py").chmod(0o640)
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.list_entries()
    assert repo.apply().happened is HandoverEvent.done
    assert (repo.folder / "calc.py").stat().st_mode & 0o777 == 0o750
    assert repo.undo().happened is HandoverEvent.done
    assert repo.list_entries() == before


def test_patch_that_deletes_a_symlink_is_refused(made):
    repo = made("clean")
    (repo.folder / "link.py").symlink_to("calc.py")
    base = repo.trees.take(repo.folder)
    repo.changes = list_changes(repo.trees, base, repo.trees.write(base, {"link.py": None, "calc.py": b"x\n"}))
    before = repo.list_entries()
    assert (repo.apply().happened, repo.list_entries()) == (HandoverEvent.refused, before)


def test_git_directory_is_never_written(made):
    repo = made("clean")
    (change, _) = repo.changes
    for path in (".git/config", "pkg/.GIT/hooks/post-checkout", "../out.py", "/etc/x", "pkg/../../out.py"):
        outcome = apply_patch(repo.desk, [change._replace(path=path, before=None)])
        assert outcome.happened is HandoverEvent.refused, path


def test_damaged_record_is_an_error_and_nothing_is_written(made):
    repo = made("clean")
    repo.apply()
    repo.desk.record.write_text("{")
    before = repo.list_entries()
    with pytest.raises(StoreError, match="cannot be read"):
        repo.undo()
    assert repo.list_entries() == before


def edit_randomly(lines: list[bytes], prefix: bytes, rng: random.Random) -> tuple[list[bytes], set[bytes], set[bytes]]:
    """Change, drop and add a few lines. Return the result, the added lines and the removed lines."""
    result, added, removed = list(lines), set(), set()
    for number in range(rng.randint(1, 3)):
        index = rng.randrange(len(result))
        new = [b"%s %d\n" % (prefix, number)] if rng.random() < 0.7 else []
        drop = rng.random() < 0.6
        removed |= {result[index]} & set(lines) if drop else set()
        added = (added - ({result[index]} if drop else set())) | set(new)
        result[index : index + drop] = new
    return result, added, removed


def test_random_edits_never_lose_or_restore_a_line(tmp_path):
    """Apply 150 random patches to randomly edited files and undo them after more edits. Every line is unique."""
    blobs, events = DirectoryBlobs(tmp_path / "blobs"), []
    lines = [b"line %d\n" % number for number in range(12)]
    file = tmp_path / "repo" / "a.py"
    file.parent.mkdir()
    for seed in range(150):
        rng = random.Random(seed)
        patched, patch_came, patch_removed = edit_randomly(lines, b"patch", rng)
        my_lines, my_came, my_removed = edit_randomly(lines, b"mine", rng)
        handover = HandoverContext(file.parent, blobs, tmp_path / f"{seed}.json", "run")
        file.write_bytes(b"".join(my_lines))
        change = FileChange("a.py", Version(b"".join(lines), False), Version(b"".join(patched), False))
        event = apply_patch(handover, [change]).happened
        events.append(event)
        result = file.read_bytes().splitlines(keepends=True)
        if event is HandoverEvent.refused:
            assert result == my_lines
            continue
        assert my_came | patch_came <= set(result), seed
        assert not (my_removed | patch_removed) & set(result), seed
        later_lines, later_came, later_removed = edit_randomly(result, b"later", rng)
        file.write_bytes(b"".join(later_lines))
        undo_event = undo_patch(handover).happened
        remaining = file.read_bytes().splitlines(keepends=True)
        if undo_event is HandoverEvent.refused:
            assert remaining == later_lines
            file.write_bytes(b"".join(result))
            assert undo_patch(handover).happened is not HandoverEvent.refused
            assert file.read_bytes() == b"".join(my_lines)
        elif undo_event is HandoverEvent.done:
            assert (later_came | my_came) - later_removed <= set(remaining), seed
            assert not (later_removed | patch_came) & set(remaining), seed
    assert min(events.count(HandoverEvent.done), events.count(HandoverEvent.refused)) > 15, events
