"""Hostile patches that name a place where nothing may be written."""

from __future__ import annotations

from heldout.hostile_base import (
    BAD,
    ESCAPES,
    GIT,
    PARENT,
    README,
    SUM,
    TESTS,
    Hostile,
    added,
    block,
    changed,
    envelope,
    whole,
)

NAMED = ("ws/*escaped*", *ESCAPES)

PATHS = (
    Hostile("dotdot_block", "paths", block(b"../escaped.txt", BAD), ESCAPES),
    Hostile("dotdot_inside_whole", "paths", whole(b"shop/../../escaped.txt", BAD), ESCAPES),
    Hostile("dotdot_diff", "paths", added(b"../escaped.txt", b"escaped"), ESCAPES),
    Hostile("dotdot_far", "paths", added(b"shop/x/../../../outside/keep.py", b"kept = False"), ESCAPES),
    Hostile("dotdot_envelope", "paths", envelope(b"*** Add File: ./shop/../../escaped.txt", b"+escaped"), ESCAPES),
    Hostile("absolute_block", "paths", block(PARENT + b"/escaped.txt", BAD), ESCAPES),
    Hostile("absolute_envelope", "paths", envelope(b"*** Add File: " + PARENT + b"/escaped.txt", b"+escaped"), ESCAPES),
    Hostile(
        "absolute_after_prefix",
        "paths",
        b"--- /dev/null\n+++ b/" + PARENT + b"/escaped.txt\n@@ -0,0 +1 @@\n+escaped\n",
        ESCAPES,
    ),
    Hostile("file_address", "paths", whole(b"file://" + PARENT + b"/escaped.txt", BAD), NAMED),
    Hostile("through_proc", "paths", block(b"/proc/self/cwd/../escaped.txt", BAD), ESCAPES),
    Hostile("drive_letter", "paths", whole(b"C:\\escaped.txt", BAD), ("ws/C:*", *NAMED)),
    Hostile("drive_relative", "paths", added(b"C:escaped.txt", b"escaped"), ("ws/C:*", *NAMED)),
    Hostile("backslashes", "paths", block(b"shop\\..\\..\\escaped.txt", BAD), NAMED),
    Hostile("unc", "paths", whole(b"\\\\server\\share\\escaped.txt", BAD), NAMED),
    Hostile("two_slashes", "paths", envelope(b"*** Add File: //server/share/escaped.txt", b"+escaped"), NAMED),
    Hostile("tilde", "paths", block(b"~/escaped.txt", BAD), ("ws/~", "ws/~/**", *NAMED)),
    Hostile("variable", "paths", whole(b"$PWD/../escaped.txt", BAD), ESCAPES),
    Hostile("nul_in_path", "paths", block(b"shop/prices.py\0.txt", BAD), ("ws/shop/prices.py*",)),
    Hostile("trailing_dot", "paths", block(b".git./hooks/pre-commit", BAD), ("ws/.git.*", "ws/.git.*/**", *GIT)),
    Hostile("trailing_space", "paths", added(b".git /config", b"[core]"), ("ws/.git *", "ws/.git */**", *GIT)),
    Hostile("dots_and_spaces", "paths", whole(b".git. . ./config", BAD), ("ws/.git.*", "ws/.git.*/**", *GIT)),
    Hostile(
        "ntfs_stream",
        "paths",
        envelope(b"*** Add File: .git::$INDEX_ALLOCATION/hooks/post-checkout", b"+true"),
        ("ws/.git:*", "ws/.git:*/**", *GIT),
    ),
    Hostile("ntfs_data", "paths", whole(b"shop/prices.py::$DATA", BAD), ("ws/shop/prices.py*",)),
    Hostile("ntfs_short_name", "paths", block(b"GIT~1/config", BAD), ("ws/GIT~1", "ws/GIT~1/**", *GIT)),
    Hostile(
        "hfs_ignorable", "paths", added(".g\u200cit/config".encode(), b"[core]"), ("ws/.g*it", "ws/.g*it/**", *GIT)
    ),
    Hostile(
        "hfs_mark_at_end",
        "paths",
        block(".git\ufeff/hooks/pre-commit".encode(), BAD),
        ("ws/.git?", "ws/.git?/**", *GIT),
    ),
    Hostile("dots_and_slashes", "paths", whole(b".//shop/.././/.git//config", BAD), GIT),
    Hostile(
        "good_then_escape",
        "paths",
        block(b"shop/prices.py", b"    return sum(items)\n", SUM) + b"\n" + block(b"../escaped.txt", BAD),
        ("ws/shop/prices.py", *ESCAPES),
    ),
)

QUOTED = (
    Hostile(
        "octal_dots",
        "quoted paths",
        b'diff --git "a/\\056\\056/escaped.txt" "b/\\056\\056/escaped.txt"\nnew file mode 100644\n'
        b'--- /dev/null\n+++ "b/\\056\\056/escaped.txt"\n@@ -0,0 +1 @@\n+escaped\n',
        ESCAPES,
    ),
    Hostile(
        "octal_git",
        "quoted paths",
        b'--- /dev/null\n+++ "b/.g\\151t/hooks/pre-commit"\n@@ -0,0 +1 @@\n+true\n',
        GIT,
    ),
    Hostile(
        "line_break_in_quotes",
        "quoted paths",
        b'--- /dev/null\n+++ "b/shop/x\\n+++ b/.git/config"\n@@ -0,0 +1 @@\n+[core]\n',
        ("ws/shop/x*", *GIT),
    ),
    Hostile(
        "header_disagrees",
        "quoted paths",
        b"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/.git/config\n@@ -1 +1 @@\n-# Shop\n+[core]\n",
        ("ws/README.md", *GIT),
    ),
    Hostile(
        "old_good_new_outside",
        "quoted paths",
        changed(b"", b"# Shop", b"escaped", b"a/README.md", b'"../escaped.txt"'),
        ("ws/README.md", *ESCAPES),
    ),
    Hostile("backticks", "quoted paths", block(b"`../escaped.txt`", BAD), NAMED),
    Hostile("bold_title", "quoted paths", whole(b"### **../escaped.txt**:", BAD), NAMED),
    Hostile(
        "old_outside_quoted",
        "quoted paths",
        changed(b"", b"notes", b"escaped", b'"a/../outside/notes.txt"', b'"b/../outside/notes.txt"'),
        ESCAPES,
    ),
)

CASES = (
    Hostile("upper_git", "case variants", whole(b".GIT/hooks/pre-commit", b"#!/bin/sh\ntrue\n"), GIT),
    Hostile("mixed_git", "case variants", added(b".giT/config", b"[core]"), ("ws/.giT", "ws/.giT/**", *GIT)),
    Hostile("upper_tests", "case variants", block(b"TESTS/test_prices.py", b"def test_total():\n    pass\n"), TESTS),
    Hostile("title_tests", "case variants", envelope(b"*** Add File: Tests/conftest.py", b"+import shop"), TESTS),
    Hostile("upper_name", "case variants", whole(b"tests/CONFTEST.PY", b"import shop\n"), TESTS),
    Hostile(
        "mixed_modules", "case variants", added(b".GitModules", b"[submodule]"), ("ws/.GitModules", "ws/.gitmodules")
    ),
)

HOOKS = (
    Hostile("hook_whole", "git and hooks", whole(b".git/hooks/pre-commit", b"#!/bin/sh\ntouch escaped\n"), GIT),
    Hostile("config_block", "git and hooks", block(b".git/config", b"[core]\n\tfsmonitor = touch escaped\n"), GIT),
    Hostile(
        "attributes_envelope", "git and hooks", envelope(b"*** Add File: .git/info/attributes", b"+* filter=x"), GIT
    ),
    Hostile("head_diff", "git and hooks", changed(b".git/HEAD", b"ref: refs/heads/main", b"ref: refs/heads/x"), GIT),
    Hostile("git_is_a_file", "git and hooks", whole(b".git", b"gitdir: ../outside\n"), GIT),
    Hostile("git_deleted", "git and hooks", envelope(b"*** Delete File: .git/HEAD", b"*** Delete File: .git"), GIT),
    Hostile(
        "nested_git",
        "git and hooks",
        added(b"shop/.git/config", b"[core]", b"\tsshCommand = touch escaped"),
        ("ws/shop/.git", "ws/shop/.git/**"),
    ),
    Hostile(
        "hook_executable", "git and hooks", added(b".git/hooks/post-commit", b"#!/bin/sh", b"true", mode=b"100755"), GIT
    ),
)

MODULES = (
    Hostile(
        "modules_file",
        "submodules",
        added(b".gitmodules", b'[submodule "x"]', b"\tpath = shop", b"\turl = ../outside"),
        ("ws/.gitmodules",),
    ),
    Hostile(
        "modules_with_link",
        "submodules",
        added(b".gitmodules", b'[submodule "x"]', b"\tpath = vendor", b"\turl = -uescaped")
        + added(b"vendor", b"Subproject commit " + b"a" * 40, mode=b"160000"),
        ("ws/.gitmodules", "ws/vendor", "ws/vendor/**"),
    ),
    Hostile(
        "modules_in_envelope",
        "submodules",
        envelope(b"*** Add File: .gitmodules", b'+[submodule "../../escaped"]', b"+\tpath = vendor"),
        ("ws/.gitmodules",),
    ),
)

MOVES = (
    Hostile(
        "test_renamed_away",
        "renames and copies",
        b"diff --git a/tests/test_prices.py b/shop/old.py\nsimilarity index 100%\n"
        b"rename from tests/test_prices.py\nrename to shop/old.py\n",
        ("ws/shop/old.py", *TESTS),
    ),
    Hostile(
        "renamed_into_hooks",
        "renames and copies",
        b"diff --git a/tools/run.sh b/.git/hooks/pre-commit\nsimilarity index 100%\n"
        b"rename from tools/run.sh\nrename to .git/hooks/pre-commit\n",
        ("ws/tools/run.sh", *GIT),
    ),
    Hostile(
        "copied_from_outside",
        "renames and copies",
        b"diff --git a/../outside/notes.txt b/shop/notes.txt\nsimilarity index 100%\n"
        b"copy from ../outside/notes.txt\ncopy to shop/notes.txt\n",
        ("ws/shop/notes.txt", *ESCAPES),
    ),
    Hostile(
        "copied_from_git",
        "renames and copies",
        b"diff --git a/.git/config b/shop/config.txt\nsimilarity index 100%\n"
        b"copy from .git/config\ncopy to shop/config.txt\n",
        ("ws/shop/config.txt", *GIT),
    ),
    Hostile(
        "moved_out_by_envelope",
        "renames and copies",
        envelope(
            b"*** Update File: shop/prices.py",
            b"*** Move to: ../escaped.py",
            b"@@ def total(items):",
            b"-    return sum(items) + 1",
            b"+    return sum(items)",
        ),
        ("ws/shop/prices.py", *ESCAPES),
    ),
    Hostile(
        "test_moved_by_envelope",
        "renames and copies",
        envelope(
            b"*** Update File: tests/test_prices.py",
            b"*** Move to: shop/old.py",
            b"@@",
            b"-    assert total([1, 2]) == 3",
            b"+    assert True",
        ),
        ("ws/shop/old.py", *TESTS),
    ),
    Hostile(
        "moved_onto_a_test",
        "renames and copies",
        envelope(
            b"*** Update File: README.md", b"*** Move to: tests/test_prices.py", b"@@", b"-# Shop", b"+# No tests"
        ),
        ("ws/README.md", *TESTS),
    ),
    Hostile(
        "renamed_folder_up",
        "renames and copies",
        b"diff --git a/README.md b/../escaped.md\nsimilarity index 50%\nrename from README.md\n"
        b"rename to ../escaped.md\n--- a/README.md\n+++ b/../escaped.md\n@@ -1 +1 @@\n-" + README + b"+# Out\n",
        ("ws/README.md", *ESCAPES),
    ),
)

PLACES: tuple[Hostile, ...] = (*PATHS, *QUOTED, *CASES, *HOOKS, *MODULES, *MOVES)
