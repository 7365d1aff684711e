"""States of a folder in which there is nothing to do, and in which nothing may be written."""

from __future__ import annotations

import os

from handover_repo import CRLF, NEW, OLD, TEXT, register_state

# -- states in which there is nothing to do ------------------------------------------------------------------------


@register_state("already")
def patched_by_hand(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("pkg/util.py", OLD, NEW)


@register_state("already")
def patched_by_hand_with_edits(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("calc.py", b"line 3\n", b"mine\n")
    repo.edit("pkg/util.py", OLD, NEW)
    repo.commit()


@register_state("already", patch={"new.py": b"new\n"})
def a_new_file_that_is_there(repo):
    repo.write("new.py", b"new\n")


# -- states in which nothing may be written ------------------------------------------------------------------------


@register_state("refused")
def dirty_at_the_hunk(repo):
    repo.edit("pkg/util.py", OLD, b"mine 15")


@register_state("refused")
def dirty_beside_the_hunk(repo):
    repo.edit("calc.py", b"line 16\n", b"mine 16\n")


@register_state("refused")
def committed_at_the_hunk(repo):
    repo.edit("calc.py", OLD, b"committed 15")
    repo.commit()


@register_state("refused")
def half_patched_with_another_fix(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.edit("pkg/util.py", OLD, b"my own fix of 15")


@register_state("refused")
def file_deleted(repo):
    (repo.folder / "pkg" / "util.py").unlink()


@register_state("refused")
def file_renamed(repo):
    repo.git("mv", "pkg/util.py", "pkg/tools.py")


@register_state("refused")
def folder_deleted(repo):
    (repo.folder / "pkg" / "util.py").unlink()
    (repo.folder / "pkg").rmdir()


@register_state("refused")
def unmerged_at_the_hunk(repo):
    for branch, text in (("side", b"side 15"), ("main", b"main 15")):
        repo.git("checkout", "-q", *(("-b",) if branch == "side" else ()), branch)
        repo.edit("calc.py", OLD, text)
        repo.commit()
    repo.git("merge", "-q", "side")
    assert b"<<<<<<<" in repo.read("calc.py")


@register_state("refused")
def replaced_by_a_symlink(repo):
    (repo.folder / "calc.py").rename(repo.folder / "real.py")
    (repo.folder / "calc.py").symlink_to("real.py")


@register_state("refused")
def replaced_by_a_symlink_out_of_the_folder(repo):
    (repo.folder.parent / "victim.py").write_bytes(TEXT)
    (repo.folder / "calc.py").unlink()
    (repo.folder / "calc.py").symlink_to(repo.folder.parent / "victim.py")


@register_state("refused")
def parent_replaced_by_a_symlink(repo):
    (repo.folder / "pkg").rename(repo.folder.parent / "pkg")
    (repo.folder / "pkg").symlink_to(repo.folder.parent / "pkg")


@register_state("refused", patch={"fresh/new.py": b"new\n"})
def new_file_behind_a_symlink(repo):
    (repo.folder.parent / "outside").mkdir()
    (repo.folder / "fresh").symlink_to(repo.folder.parent / "outside")


@register_state("refused", patch={"fresh/new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_file_where_a_folder_is_needed(repo):
    repo.write("fresh", b"a file\n")


@register_state("refused")
def replaced_by_a_directory(repo):
    (repo.folder / "calc.py").unlink()
    repo.write("calc.py/__init__.py", b"now a folder\n")


@register_state("refused")
def replaced_by_a_fifo(repo):
    (repo.folder / "calc.py").unlink()
    os.mkfifo(repo.folder / "calc.py")


@register_state("refused")
def folder_became_a_repo(repo):
    repo.git("init", "-q", cwd=repo.folder / "pkg")


@register_state("refused", patch={"new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_where_another_is(repo):
    repo.write("new.py", b"mine\n")


@register_state("refused", patch={"new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_where_an_ignored_one_is(repo):
    repo.write(".gitignore", b"new.py\n")
    repo.write("new.py", b"mine\n")


@register_state("refused", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file_that_was_changed(repo):
    repo.edit("pkg/util.py", b"line 1\n", b"mine\n")


@register_state(
    "refused", base={"logo.png": b"\x89PNG\0\1"}, patch={"logo.png": b"\x89PNG\0\2", "calc.py": TEXT.replace(OLD, NEW)}
)
def binary_changed(repo):
    repo.write("logo.png", b"\x89PNG\0\3")


@register_state("refused", base={"calc.py": CRLF}, patch={"calc.py": CRLF.replace(OLD, NEW)})
def line_ends_converted(repo):
    repo.write("calc.py", TEXT)
