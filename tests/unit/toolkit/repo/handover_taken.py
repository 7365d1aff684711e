"""States of a folder in which the patch can be applied."""

from __future__ import annotations

from handover_repo import CRLF, NEW, OLD, TEXT, WEIRD, register_state


@register_state("done")
def clean(repo):
    """As the run saw it."""


@register_state("done")
def dirty_elsewhere(repo):
    repo.write("other.py", b"uncommitted\n")
    repo.write("untracked.py", b"untracked\n")


@register_state("done")
def dirty_in_the_same_file(repo):
    repo.edit("calc.py", b"line 3\n", b"mine 3\nmore\n")


@register_state("done")
def dirty_at_both_ends(repo):
    repo.edit("calc.py", b"line 1\n", b"first\n")
    repo.edit("calc.py", b"line 30\n", b"last\n")


@register_state("done")
def staged_in_the_same_file(repo):
    repo.edit("calc.py", b"line 3\n", b"staged\n")
    repo.git("add", "calc.py")


@register_state("done")
def staged_elsewhere(repo):
    repo.write("new.py", b"staged\n")
    repo.git("add", "new.py")


@register_state("done")
def staged_and_changed_again(repo):
    repo.edit("calc.py", b"line 3\n", b"staged\n")
    repo.git("add", "calc.py")
    repo.edit("calc.py", b"line 28\n", b"not staged\n")


@register_state("done")
def staged_at_the_hunk_but_not_in_the_tree(repo):
    repo.edit("calc.py", OLD, b"staged 15")
    repo.git("add", "calc.py")
    repo.write("calc.py", TEXT)


@register_state("done")
def removed_from_the_index(repo):
    repo.git("rm", "-q", "--cached", "calc.py")


@register_state("done")
def moved_on_by_commits(repo):
    repo.edit("calc.py", b"line 3\n", b"committed\n")
    repo.commit()
    repo.edit("pkg/util.py", b"line 25\n", b"committed\n")
    repo.commit()


@register_state("done")
def rebased(repo):
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.edit("calc.py", b"line 3\n", b"other history\n")
    repo.commit()


@register_state("done")
def one_file_patched_by_hand(repo):
    repo.edit("calc.py", OLD, NEW)


@register_state("done")
def one_file_patched_and_committed(repo):
    repo.edit("calc.py", OLD, NEW)
    repo.commit()
    repo.edit("pkg/util.py", b"line 2\n", b"mine\n")


@register_state("done", base={"calc.py": CRLF}, patch={"calc.py": CRLF.replace(OLD, NEW)})
def crlf(repo):
    repo.edit("calc.py", b"line 3\r\n", b"mine 3\r\n")


@register_state("done", base={"calc.py": TEXT[:100] + CRLF}, patch={"calc.py": (TEXT[:100] + CRLF).replace(OLD, NEW)})
def mixed_line_ends(repo):
    repo.edit("calc.py", b"line 29\r\n", b"mine 29\n")


@register_state("done", base={"calc.py": TEXT[:-1]}, patch={"calc.py": TEXT[:-1].replace(OLD, NEW)})
def no_final_newline(repo):
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")


@register_state("done")
def final_newline_lost_since(repo):
    repo.write("calc.py", TEXT[:-1])


@register_state("done")
def executable(repo):
    (repo.folder / "calc.py").chmod(0o755)
    (repo.folder / "pkg" / "util.py").chmod(0o700)


@register_state("done")
def read_only(repo):
    (repo.folder / "calc.py").chmod(0o444)
    (repo.folder / "pkg" / "util.py").chmod(0o600)


@register_state("done")
def submodule_present(repo):
    inner = repo.folder.parent / "inner"
    inner.mkdir()
    (inner / "calc.py").write_bytes(TEXT)
    repo.git("init", "-q", cwd=inner)
    repo.git("add", "-A", cwd=inner)
    repo.git("commit", "-qm", "inner", cwd=inner)
    repo.git("submodule", "--quiet", "add", str(inner), "vendored")
    (repo.folder / "vendored" / "calc.py").write_bytes(b"changed in the submodule\n")


@register_state("done")
def nested_repo(repo):
    repo.write("nested/calc.py", TEXT)
    repo.git("init", "-q", cwd=repo.folder / "nested")


@register_state("done")
def detached_head(repo):
    repo.git("checkout", "-q", "--detach")
    repo.write("other.py", b"uncommitted\n")


@register_state("done")
def unborn_head(repo):
    repo.git("checkout", "-q", "--orphan", "nothing-yet")


@register_state("done")
def stash_present(repo):
    repo.edit("calc.py", OLD, b"stashed 15")
    repo.git("stash", "-q")


@register_state("done")
def ignored_files(repo):
    repo.write("noise.log", b"noise\n")
    repo.write("build/out", b"out\n")
    repo.write("pkg/calc.log", b"more\n")


@register_state("done")
def merge_in_progress(repo):
    repo.git("checkout", "-qb", "side")
    repo.write("other.py", b"theirs\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.write("other.py", b"ours\n")
    repo.commit()
    repo.git("merge", "-q", "side")
    assert (repo.folder / ".git" / "MERGE_HEAD").exists()


@register_state("done")
def ignored_since(repo):
    repo.write(".gitignore", b"calc.py\n")
    repo.git("rm", "-q", "--cached", "calc.py")


@register_state("done")
def index_locked(repo):
    (repo.folder / ".git" / "index.lock").touch()


@register_state("done", is_git=False)
def no_git(repo):
    repo.write("other.py", b"mine\n")


@register_state("done", is_git=False)
def became_a_repo(repo):
    repo.git("init", "-q")


@register_state("done")
def stopped_being_a_repo(repo):
    (repo.folder / ".git").rename(repo.folder / "was.git")


@register_state("done")
def case_variants(repo):
    repo.write("Calc.py", b"another file\n")
    repo.write("CALC.PY", b"a third\n")


@register_state(
    "done",
    base={"größe/日本 x.py": TEXT, WEIRD: TEXT},
    patch=dict.fromkeys(("größe/日本 x.py", WEIRD), TEXT.replace(OLD, NEW)),
)
def odd_names(repo):
    repo.edit(WEIRD, b"line 3\n", b"mine\n")


@register_state(
    "done", base={"calc.py": b"filler\n" * 2_000_000 + OLD}, patch={"calc.py": b"filler\n" * 2_000_000 + NEW}
)
def huge(repo):
    data = repo.read("calc.py")
    repo.write("calc.py", b"at the top\n" + data)


@register_state("done", base={"logo.png": b"\x89PNG\0\1"}, patch={"logo.png": b"\x89PNG\0\2"})
def binary(repo):
    """Equal to what the run saw."""


@register_state("done")
def symlinks_elsewhere(repo):
    (repo.folder / "link.py").symlink_to("calc.py")
    (repo.folder / "out").symlink_to("/")


@register_state("done", patch={"fresh/deep/new.py": b"new\n", "calc.py": TEXT.replace(OLD, NEW)})
def a_new_file_in_a_new_folder(repo):
    """The folders are made for it."""


@register_state("done", patch={"fresh/new.py": b"new\n"})
def a_new_file_in_a_folder_made_since(repo):
    repo.write("fresh/mine.py", b"mine\n")


@register_state("done", patch={"fresh/new.py": b"new\n"})
def a_new_file_in_an_empty_folder_of_the_users(repo):
    (repo.folder / "fresh").mkdir()


@register_state("done", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file(repo):
    (repo.folder / "pkg" / "util.py").chmod(0o640)


@register_state("done", patch={"pkg/util.py": None, "calc.py": TEXT.replace(OLD, NEW)})
def deletes_a_file_that_is_gone(repo):
    (repo.folder / "pkg" / "util.py").unlink()
