"""Generated answers with hostile paths, modes and hunks, in every form: their effects stay in the workspace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from redstart.core.change import EditKind, Snapshot
from redstart.toolkit.patching.ladder import LadderResult, apply_to_snapshot
from redstart.toolkit.patching.policy import find_protection, find_violations
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.repo.handover import HandoverContext, apply_patch, list_changes
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs

FEW, MANY = 300, 10_000

CODE = (
    "def total(items):\n    found = sum(items)\n    return found + 1\n\n\ndef mean(items):\n    return total(items)\n"
)
FILES = {
    "shop/prices.py": CODE,
    "shop/notes.txt": "one\ntwo\nthree\n",
    "tests/test_prices.py": "def test_total():\n    assert True\n",
    "conftest.py": "x = 1\n",
    "README.md": "# Shop\n",
}
LINKS = {"out": "../outside", "shop/hooks": "../.git/hooks", "late.txt": "../escaped.txt"}


class Ground(NamedTuple):
    top: Path
    workspace: Path
    trees: GitTrees
    base: Snapshot
    before: dict[str, tuple[int, bytes]]
    """Every file before each case, and after it."""

    def scan_files(self) -> dict[str, tuple[int, bytes]]:
        return scan_tree(self.top)


def scan_tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of everything below the top except our own store. Links are not followed."""
    entries: dict[str, tuple[int, bytes]] = {}
    for place, folders, files in os.walk(top):
        if Path(place) == top:
            folders.remove("home")
        for name in (*folders, *files):
            path = Path(place) / name
            content = os.fsencode(path.readlink()) if path.is_symlink() else b""
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else content
            entries[str(path.relative_to(top))] = (path.lstat().st_mode, content)
    return entries


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    top = tmp_path_factory.mktemp("hostile")
    workspace = top / "ws"
    for path, text in FILES.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    for path, target in LINKS.items():
        (workspace / path).symlink_to(target)
    (top / "outside").mkdir()
    (top / "outside" / "keep.py").write_text("kept = True\n")
    subprocess.run(["git", "init", "-q", "--template="], cwd=workspace, check=True)
    (workspace / ".git" / "hooks").mkdir()
    trees = GitTrees(top / "home", MemoryBlobs())
    yield Ground(top, workspace, trees, trees.take(workspace), scan_tree(top))
    trees.close()


# -- answers -------------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    (
        *("..", ".", "", "~", "shop", "tests", "Tests", "TESTS", "out", "hooks", "outside", "late.txt", "README.md"),
        *(
            ".git",
            ".GIT",
            ".git.",
            ".git ",
            ".g\u200cit",
            "git~1",
            ".git::$DATA",
            "\uff0e\uff0e",
            "..\\..",
            "C:",
            "C:\\x",
        ),
        *("conftest.py", "CONFTEST.PY", "test_a.py", "a_test.py", "pytest.ini", ".github", ".gitmodules", "x.pth"),
        *(
            "prices.py",
            "notes.txt",
            "new.py",
            "new.txt",
            "a b.txt",
            "\u202ex.py",
            "n\u00fcr.py",
            "nu\u0308r.py",
            "x" * 300,
        ),
        *("$HOME", "%2e%2e", "&#46;&#46;", "\\056\\056", "new.py.", "new.py ", "-rf", "aux.py", "\x07.txt", "a\0b.txt"),
    )
)
BELOW = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
STARTS = st.sampled_from(("/", "//", "./", "a/", "b/", "a/../", "shop/", "shop/", "/proc/self/cwd/", '"'))
PATHS = st.one_of(
    st.sampled_from(("shop/prices.py", "shop/notes.txt", "README.md", "shop/new.py", *LINKS, *FILES)),
    BELOW,
    st.tuples(STARTS, BELOW).map("".join),
    st.text(min_size=1, max_size=12),
)
LINES = st.sampled_from(
    (
        *CODE.splitlines(),
        "one",
        "two",
        "three",
        "# Shop",
        "    return found",
        "x = 1",
        "",
        "\u202e",
        "+++ b/../x",
        "```",
    )
)
TEXTS = st.lists(LINES, min_size=0, max_size=5).map(lambda lines: "".join(f"{line}\n" for line in lines))
MODES = st.sampled_from(("100644", "100755", "120000", "160000", "040000", "104755", "100000", "0"))


@st.composite
def creations(draw: st.DrawFn) -> str:
    """Draw a new file, in one of the forms, with nothing wrong except perhaps its path."""
    path, lines = draw(PATHS), ("x = 1", *draw(st.sampled_from(((), ("y = 2",)))))
    text = "".join(f"{line}\n" for line in lines)
    plus = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    forms = (
        f"{path}\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n",
        f"{path}\n```\n{text}```\n",
        f"{head}@@ -0,0 +1,{len(lines)} @@\n{plus}",
        f"*** Begin Patch\n*** Add File: {path}\n{plus}*** End Patch\n",
    )
    return draw(st.sampled_from(forms))


@st.composite
def blocks(draw: st.DrawFn) -> str:
    return f"{draw(PATHS)}\n<<<<<<< SEARCH\n{draw(TEXTS)}=======\n{draw(TEXTS)}>>>>>>> REPLACE\n"


@st.composite
def wholes(draw: st.DrawFn) -> str:
    path, text = draw(PATHS), draw(TEXTS)
    return draw(
        st.sampled_from(
            (f"{path}\n```\n{text}```\n", f"```python path={path}\n{text}```\n", f"`{path}`:\n```\n{text}```\n")
        )
    )


@st.composite
def diffs(draw: st.DrawFn) -> str:
    old, new = draw(PATHS), draw(PATHS)
    new = draw(st.sampled_from((old, old, old, new)))
    start, kind = draw(st.integers(0, 9)), draw(st.sampled_from(("change", "add", "delete", "rename", "mode")))
    body = "".join(f"{draw(st.sampled_from(' +-'))}{line}\n" for line in draw(st.lists(LINES, max_size=5)))
    head = f"diff --git a/{old} b/{new}\n"
    match kind:
        case "add":
            added_text = "".join(f"+{line}\n" for line in draw(TEXTS).splitlines())
            header = f"new file mode {draw(MODES)}\n--- /dev/null\n+++ b/{new}\n"
            return f"{head}{header}@@ -0,0 +1,{added_text.count('+')} @@\n{added_text}"
        case "delete":
            removed_text = "".join(f"-{line}\n" for line in FILES.get(old, "x\n").splitlines())
            return (
                f"{head}deleted file mode {draw(MODES)}\n--- a/{old}\n+++ /dev/null\n"
                f"@@ -1,{start} +0,0 @@\n{removed_text}"
            )
        case "rename":
            return f"{head}similarity index 100%\nrename from {old}\nrename to {new}\n"
        case "mode":
            return f"{head}old mode 100644\nnew mode {draw(MODES)}\n"
        case _:
            return f"--- a/{old}\n+++ b/{new}\n@@ -{start},3 +{start},3 @@\n{body}"


@st.composite
def true_diffs(draw: st.DrawFn) -> str:
    """Draw a well-formed change of a line, as git writes it."""
    path = draw(st.sampled_from(tuple(FILES)))
    lines = FILES[path].splitlines()
    index, new = draw(st.integers(0, len(lines) - 1)), draw(LINES)
    low, high = max(index - 3, 0), min(index + 4, len(lines))
    body = [f"-{line}\n+{new}\n" if low + n == index else f" {line}\n" for n, line in enumerate(lines[low:high])]
    count = high - low
    return f"--- a/{path}\n+++ b/{path}\n@@ -{low + 1},{count} +{low + 1},{count} @@\n{''.join(body)}"


@st.composite
def envelopes(draw: st.DrawFn) -> str:
    lines = ["*** Begin Patch"]
    for _ in range(draw(st.integers(1, 3))):
        verb = draw(st.sampled_from(("Add", "Update", "Delete")))
        lines.append(f"*** {verb} File: {draw(PATHS)}")
        if verb == "Update" and draw(st.booleans()):
            lines.append(f"*** Move to: {draw(PATHS)}")
        marks = {"Add": "+", "Update": " +-", "Delete": ""}[verb]
        lines += ["@@"] if verb == "Update" else []
        lines += (
            [f"{draw(st.sampled_from(marks))}{line}" for line in draw(st.lists(LINES, max_size=4))] if marks else []
        )
    return "\n".join((*lines, "*** End Patch", ""))


EDITS = st.one_of(blocks(), wholes(), diffs(), true_diffs(), envelopes())
SEVERAL = st.lists(st.one_of(EDITS, creations()), min_size=1, max_size=3).map("\n".join)
ANSWERS = st.one_of(creations(), creations(), true_diffs(), EDITS, SEVERAL)


# -- effects -------------------------------------------------------------------------------------------------------


def check(ground: Ground, answer: str) -> None:
    """Check everything that must hold for any answer."""
    before = ground.before
    parsed = parse(answer)
    ladder_result = apply_to_snapshot(ground.trees, ground.base, parsed.edits) if parsed.edits else LadderResult(None)
    if ladder_result.snapshot is None:
        event("no edits" if not parsed.edits else "refused" if ladder_result.refused else "rejected")
        assert ground.scan_files() == before
        return
    changes = ground.trees.list_changes(ground.base, ladder_result.snapshot)
    assert changes
    refused = find_violations(changes, ground.trees.diff(ground.base, ladder_result.snapshot))
    compare_with_git(ground, answer, parsed.edits[0].kind if len(parsed.edits) == 1 else None, ladder_result)
    if refused:
        event("against policy")
        assert ground.scan_files() == before
        return
    event("applied")
    check_handover(ground, ladder_result.snapshot)


def compare_with_git(ground: Ground, answer: str, kind: EditKind | None, ladder_result: LadderResult) -> None:
    """Check that git, if it accepts the diff for the same files, gives the same content. It keeps a new file's mode."""
    if kind is not EditKind.diff or ladder_result.snapshot is None:
        return
    git_snapshot = ground.trees.apply(ground.base, answer.encode(errors="surrogatepass"))
    own_snapshot = ladder_result.snapshot
    if isinstance(git_snapshot, Snapshot) and (paths := list_changed_paths(ground, git_snapshot)) == list_changed_paths(
        ground, own_snapshot
    ):
        event("as git does")
        assert all(ground.trees.read(git_snapshot, path) == ground.trees.read(own_snapshot, path) for path in paths)


def list_changed_paths(ground: Ground, snapshot: Snapshot) -> set[str]:
    return {change.path for change in ground.trees.list_changes(ground.base, snapshot)}


def check_handover(ground: Ground, snapshot: Snapshot) -> None:
    before = ground.before
    handover = HandoverContext(ground.workspace, MemoryBlobs(), ground.top / "home" / "applied.json", "run")
    handover.record.unlink(missing_ok=True)
    apply_patch(handover, list_changes(ground.trees, ground.base, snapshot))
    after = ground.scan_files()
    try:
        for path in {*before, *after}:
            if before.get(path) != after.get(path):
                top, _, inside = path.partition("/")
                assert top == "ws"
                assert inside
                assert ".git" not in inside.casefold().split("/")
                assert not find_protection(inside)
                assert not (ground.workspace / inside).is_symlink()
                assert (ground.top / path).resolve().is_relative_to(ground.workspace)
    finally:
        restore(ground, after)


def restore(ground: Ground, after: dict[str, tuple[int, bytes]]) -> None:
    before = ground.before
    for path in sorted({*after} - {*before}, reverse=True):
        place = ground.top / path
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    for path, (mode, content) in before.items():
        if after.get(path) != (mode, content):
            (ground.top / path).write_bytes(content)
            (ground.top / path).chmod(mode & 0o777)
    assert ground.scan_files() == before


unhurried = settings(
    max_examples=FEW,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@given(answer=ANSWERS)
@unhurried
def test_nothing_leaves_the_workspace(ground, answer):
    check(ground, answer)


@pytest.mark.soak
@given(answer=ANSWERS)
@settings(unhurried, max_examples=MANY)
def test_nothing_leaves_the_workspace_in_ten_thousand_examples(ground, answer):
    check(ground, answer)


@pytest.mark.slow
@given(answer=true_diffs())
@settings(unhurried, max_examples=FEW // 3)
def test_diff_that_git_accepts_is_applied_the_same_way(ground, answer):
    check(ground, answer)
