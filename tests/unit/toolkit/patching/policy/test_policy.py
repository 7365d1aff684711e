from __future__ import annotations

import pytest

from redstart.ports.store.port.trees import TreeChange
from redstart.toolkit.patching.policy import MAX_DIFF_BYTES, find_protection, find_violations


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
def test_protected_path_may_not_change(path):
    assert find_protection(path)


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
def test_ordinary_path_may_change(path):
    assert find_protection(path) is None


@pytest.mark.parametrize("mode", ["120000", "160000", "040000"])
def test_patch_may_only_contain_regular_files(mode):
    (reject,) = find_violations([TreeChange("pkg/a.py", "100644", mode)], b"")
    assert mode in reject.reason


def test_deleting_a_test_is_a_violation_but_deleting_source_is_not():
    assert find_violations([TreeChange("tests/test_a.py", "100644", "000000")], b"")
    assert not find_violations([TreeChange("pkg/a.py", "100644", "000000")], b"")


def test_size_of_a_diff_is_limited():
    change = [TreeChange("pkg/a.py", "100644", "100644")]
    assert find_violations(change, b"x" * (MAX_DIFF_BYTES + 1))
    assert not find_violations(change, b"x" * MAX_DIFF_BYTES)


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
def test_deceptive_new_path_is_a_violation(path):
    assert find_violations([TreeChange(path, "000000", "100644")], b"")
    assert not find_violations([TreeChange(path, "100644", "100644")], b""), "an existing path may be changed"


@pytest.mark.parametrize("path", ["pkg/a.py", "src/grüße.py", "a-b/c d.txt", "日本語/数.py"])
def test_ordinary_new_path_is_allowed(path):
    assert not find_violations([TreeChange(path, "000000", "100644")], b"")


@pytest.mark.parametrize(
    "diff", ["+if access \u2066 == 'user'", "+# \u202e reversed", "Binary files a/x.py and b/x.py differ"]
)
def test_text_that_runs_differently_than_it_reads_is_a_violation(diff):
    assert find_violations([TreeChange("pkg/a.py", "100644", "100644")], diff.encode())
    assert not find_violations([TreeChange("pkg/a.py", "100644", "100644")], diff.replace("+", "-", 1)[:5].encode())
