"""Hostile patches that are dangerous by what they make: links, modes, sizes, hidden text, lost tests."""

from __future__ import annotations

from heldout.hostile_base import (
    BAD,
    BASE,
    ESCAPES,
    GIT,
    SUM,
    TESTS,
    Hostile,
    added,
    block,
    changed,
    envelope,
    whole,
)

PRICES = ("ws/shop/prices.py",)
TEST = BASE["tests/test_prices.py"]
REMOVED = b"".join(b"-" + line for line in TEST.splitlines(keepends=True))

LINKED = (
    Hostile(
        "link_made", "symlinks", added(b"shop/link", b"../../outside", mode=b"120000", end=False), ("ws/shop/link",)
    ),
    Hostile(
        "link_made_then_used",
        "symlinks",
        added(b"shop/link", b"../../outside", mode=b"120000", end=False) + added(b"shop/link/escaped.txt", b"escaped"),
        ("ws/shop/link", "ws/shop/link/**", *ESCAPES),
    ),
    Hostile(
        "file_becomes_link",
        "symlinks",
        b"diff --git a/README.md b/README.md\nold mode 100644\nnew mode 120000\n--- a/README.md\n+++ b/README.md\n"
        b"@@ -1 +1 @@\n-# Shop\n+../outside/notes.txt\n\\ No newline at end of file\n",
        ("ws/README.md", *ESCAPES),
    ),
    Hostile(
        "deleted_and_linked",
        "symlinks",
        b"diff --git a/README.md b/README.md\ndeleted file mode 100644\n--- a/README.md\n+++ /dev/null\n"
        b"@@ -1 +0,0 @@\n-# Shop\n" + added(b"README.md", b"/", mode=b"120000", end=False),
        ("ws/README.md",),
    ),
    Hostile(
        "link_turned",
        "symlinks",
        b"diff --git a/out b/out\nindex 1111111..2222222 120000\n--- a/out\n+++ b/out\n@@ -1 +1 @@\n-../outside\n"
        b"\\ No newline at end of file\n+..\n\\ No newline at end of file\n",
        ("ws/out", *ESCAPES),
    ),
    Hostile("through_folder_link", "symlinks", block(b"out/escaped.txt", BAD), ESCAPES),
    Hostile("through_file_link", "symlinks", whole(b"notes.txt", b"changed\n"), ESCAPES),
    Hostile("through_file_link_diff", "symlinks", changed(b"notes.txt", b"notes", b"changed"), ESCAPES),
    Hostile("through_dangling_link", "symlinks", block(b"shop/late.txt", BAD), ESCAPES),
    Hostile("through_link_to_hooks", "symlinks", added(b"shop/hooks/pre-commit", b"true", mode=b"100755"), GIT),
    Hostile("through_link_to_tests", "symlinks", whole(b"shop/cases/test_prices.py", b"x = 1\n"), TESTS),
    Hostile("deleted_through_link", "symlinks", envelope(b"*** Delete File: out/keep.py"), ESCAPES),
    Hostile("link_then_dots", "symlinks", block(b"out/../escaped.txt", BAD), ESCAPES),
)

MODES = (
    Hostile(
        "gitlink_made",
        "modes",
        added(b"vendor", b"Subproject commit " + b"b" * 40, mode=b"160000"),
        ("ws/vendor", "ws/vendor/**"),
    ),
    Hostile(
        "file_becomes_gitlink",
        "modes",
        b"diff --git a/README.md b/README.md\nold mode 100644\nnew mode 160000\n--- a/README.md\n+++ b/README.md\n"
        b"@@ -1 +1 @@\n-# Shop\n+Subproject commit " + b"c" * 40 + b"\n",
        ("ws/README.md",),
    ),
    Hostile(
        "test_executable",
        "modes",
        b"diff --git a/tests/test_prices.py b/tests/test_prices.py\nold mode 100644\nnew mode 100755\n",
        TESTS,
    ),
    Hostile(
        "test_unreadable",
        "modes",
        b"diff --git a/tests/conftest.py b/tests/conftest.py\nold mode 100644\nnew mode 100000\n",
        TESTS,
    ),
)

HUGE = (
    Hostile("huge_file", "huge", whole(b"shop/huge.py", b"x = 1  # filler\n" * 2**21), ("ws/shop/huge.py",)),
    Hostile("huge_line", "huge", added(b"shop/wide.py", b"x = '" + b"y" * 2**25 + b"'"), ("ws/shop/wide.py",)),
    Hostile(
        "many_files",
        "huge",
        envelope(*(line for n in range(20_000) for line in (b"*** Add File: many/%d.py" % n, b"+x = 1"))),
        ("ws/many", "ws/many/**"),
    ),
    Hostile("deep_path", "huge", block(b"deep/" * 1500 + b"x.py", BAD), ("ws/deep", "ws/deep/**")),
    Hostile("long_name", "huge", added(b"shop/" + b"n" * 5000 + b".py", b"x = 1"), ("ws/shop/nnn*",)),
)

HIDDEN = (
    Hostile("nul_in_source", "NUL", block(b"shop/prices.py", b"    return sum(items)\0\n", SUM), PRICES),
    Hostile(
        "nul_in_diff",
        "NUL",
        b"--- a/shop/prices.py\n+++ b/shop/prices.py\n@@ -6 +6 @@\n-" + SUM + b"+    return sum(items)  # \0\n",
        PRICES,
    ),
    Hostile(
        "binary_patch",
        "NUL",
        b"diff --git a/shop/blob.bin b/shop/blob.bin\nnew file mode 100644\nindex 0000000..f76dd23\n"
        b"GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n",
        ("ws/shop/blob.bin",),
    ),
    Hostile(
        "bidi_comment",
        "bidi and homoglyphs",
        block(
            b"shop/prices.py",
            "    return sum(items)  # \u202e } \u2066if checked\u2069 \u2066 begin\n".encode(),
            SUM,
        ),
        PRICES,
    ),
    Hostile(
        "bidi_text",
        "bidi and homoglyphs",
        envelope(
            b"*** Update File: shop/prices.py",
            b"@@ def total(items):",
            b"-    return sum(items) + 1",
            "+    return sum(items) if str(items) != 'user\u202e \u2066# all\u2069 \u2066' else 0".encode(),
        ),
        PRICES,
    ),
    Hostile("bidi_path", "bidi and homoglyphs", whole("shop/\u202eyp.x".encode(), BAD), ("ws/shop/*yp.x",)),
    Hostile(
        "homoglyph_folder",
        "bidi and homoglyphs",
        block("t\u0435sts/test_prices.py".encode(), b"def test_total():\n    pass\n"),
        ("ws/t?sts", "ws/t?sts/**", *TESTS),
    ),
    Hostile(
        "homoglyph_git",
        "bidi and homoglyphs",
        added(".g\u0456t/hooks/pre-commit".encode(), b"true"),
        ("ws/.g?t", "ws/.g?t/**", *GIT),
    ),
)

LOST = (
    Hostile("test_deleted_envelope", "deletion of tests", envelope(b"*** Delete File: tests/test_prices.py"), TESTS),
    Hostile(
        "test_deleted_diff",
        "deletion of tests",
        b"diff --git a/tests/test_prices.py b/tests/test_prices.py\ndeleted file mode 100644\n"
        b"--- a/tests/test_prices.py\n+++ /dev/null\n@@ -1,5 +0,0 @@\n" + REMOVED,
        TESTS,
    ),
    Hostile("test_emptied_whole", "deletion of tests", whole(b"tests/test_prices.py", b""), TESTS),
    Hostile("test_emptied_block", "deletion of tests", block(b"tests/test_prices.py", b"", TEST), TESTS),
    Hostile("tests_folder_deleted", "deletion of tests", envelope(b"*** Delete File: tests"), ("ws/tests", *TESTS)),
    Hostile(
        "workspace_deleted",
        "deletion of tests",
        envelope(b"*** Delete File: .", b"*** Delete File: ./"),
        ("ws/README.md", "ws/shop/**", *TESTS),
    ),
    Hostile("data_deleted", "deletion of tests", envelope(b"*** Delete File: tests/data/one.txt"), TESTS),
)

CONFLICTS = (
    Hostile("file_over_folder", "file or folder", whole(b"shop", b"gone\n"), ("ws/shop", "ws/shop/**")),
    Hostile("file_over_tests", "file or folder", block(b"tests/", b"gone\n"), ("ws/tests", *TESTS)),
    Hostile(
        "folder_under_file", "file or folder", added(b"README.md/x.py", b"x = 1"), ("ws/README.md", "ws/README.md/**")
    ),
    Hostile(
        "both_at_once",
        "file or folder",
        envelope(b"*** Add File: lib", b"+x = 1", b"*** Add File: lib/x.py", b"+x = 1"),
        ("ws/lib", "ws/lib/**"),
    ),
    Hostile(
        "folder_deleted_for_file",
        "file or folder",
        envelope(b"*** Delete File: tests", b"*** Add File: tests", b"+gone"),
        ("ws/tests", *TESTS),
    ),
)

SHAPES: tuple[Hostile, ...] = (*LINKED, *MODES, *HUGE, *HIDDEN, *LOST, *CONFLICTS)
