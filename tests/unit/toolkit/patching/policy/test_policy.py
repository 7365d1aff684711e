from __future__ import annotations

import pytest

from redstart.ports.store.port.trees import TreeChange
from redstart.toolkit.patching.policy import MAX_DIFF_BYTES, protected, violations


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "tests/data/expected.json",
        "pkg/test_b.py",
        "pkg/b_test.py",
        "Tests/Test_A.py",
        "pkg/tests.py",
        "conftest.py",
        "deep/conftest.py",
        "pytest.ini",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        ".github/workflows/ci.yml",
        "sitecustomize.py",
        "src/usercustomize.py",
        "x.pth",
        "pytest.py",
        "pytest/__init__.py",
        "_pytest/assertion.py",
        "src/unittest/__init__.py",
        "redstart.toml",
        "packages/a/redstart.toml",
        "AGENTS.md",
        "docs/Claude.md",
        ".cursorrules",
        ".claude/settings.json",
        ".github/copilot-instructions.md",
    ],
)
def test_what_a_patch_may_not_touch(path):
    assert protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "pkg/a.py",
        "contest.py",
        "pkg/latest.py",
        "attest/x.py",
        "README.md",
        "pkg/testing.py",
        "pkg/pytest_x.py",
        "pkg/agents.py",
    ],
)
def test_what_it_may(path):
    assert protected(path) is None


@pytest.mark.parametrize("mode", ["120000", "160000", "040000"])
def test_only_regular_files(mode):
    (reject,) = violations([TreeChange("pkg/a.py", "100644", mode)], b"")
    assert mode in reject.reason


def test_a_deleted_test_is_a_violation_and_a_deleted_source_file_is_not():
    assert violations([TreeChange("tests/test_a.py", "100644", "000000")], b"")
    assert not violations([TreeChange("pkg/a.py", "100644", "000000")], b"")


def test_size():
    change = [TreeChange("pkg/a.py", "100644", "100644")]
    assert violations(change, b"x" * (MAX_DIFF_BYTES + 1))
    assert not violations(change, b"x" * MAX_DIFF_BYTES)


@pytest.mark.parametrize(
    "path",
    [
        "C:evil.txt",
        "a/b:stream",
        "~/x",
        "-rf",
        "a/con.py",
        "a/trailing.",
        "a/trailing ",
        "a\\b",
        "a/\u202eyp.x",
        "a/\u200bx.py",
        "a/\x07.py",
        ".g\u0456t/hooks",
        "/".join("d" * 30),
        "n" * 200,
        "what?.py",
    ],
)
def test_a_new_path_that_deceives(path):
    assert violations([TreeChange(path, "000000", "100644")], b"")
    assert not violations([TreeChange(path, "100644", "100644")], b""), "an existing path may be changed"


@pytest.mark.parametrize("path", ["pkg/a.py", "src/grüße.py", "a-b/c d.txt", "日本語/数.py"])
def test_an_ordinary_new_path(path):
    assert not violations([TreeChange(path, "000000", "100644")], b"")


@pytest.mark.parametrize(
    "diff", ["+if access \u2066 == 'user'", "+# \u202e reversed", "Binary files a/x.py and b/x.py differ"]
)
def test_text_that_does_not_run_as_it_reads(diff):
    assert violations([TreeChange("pkg/a.py", "100644", "100644")], diff.encode())
    assert not violations([TreeChange("pkg/a.py", "100644", "100644")], diff.replace("+", "-", 1)[:5].encode())
