from __future__ import annotations

import pytest

from redstart.ports.store.port.trees import TreeChange
from redstart.toolkit.patching.policy import (
    Protection,
    Violation,
    find_path_problem,
    find_protection,
    find_text_problem,
    find_violations,
)


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
    (violation,) = find_violations(change, b"x" * 200_001)
    assert violation == Violation("diff", "it is larger than 200 KB")
    assert not find_violations(change, b"x" * 200_000)


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


@pytest.mark.parametrize(
    ("path", "protection"),
    [
        ("pkg/own.py", Protection.settings),
        ("PKG/Own.py", Protection.settings),
        ("tests/test_a.py", Protection.test),
        ("run.py", Protection.starts_tests),
        ("Run.py", Protection.starts_tests),
        (".gitmodules", Protection.git),
        (".gitattributes/x", Protection.git),
        ("conftest.py", Protection.configuration),
        (".gitlab-ci.yml", Protection.configuration),
        (".husky/pre-commit", Protection.hook),
        (".envrc", Protection.hook),
        ("AGENTS.md", Protection.instructions),
        ("lib/site-packages/a.py", Protection.installed),
        ("sitecustomize.py", Protection.startup),
        ("pytest.py", Protection.runner),
        ("pkg/other.py", None),
    ],
)
def test_protection_names_its_reason(path, protection):
    globs, tests = ["pkg/OWN*"], ["RUN.py"]
    assert find_protection(path, globs, tests) is protection
    expected = () if protection is None else (Violation(path, protection.words, protection),)
    assert find_violations([TreeChange(path, "100644", "100644")], b"", globs, (), tests) == expected


@pytest.mark.parametrize(
    ("accepted", "refused"),
    [
        ("n" * 120, "n" * 121),
        ("/".join(["d" * 99] * 4) + "x", "/".join(["d" * 99] * 4) + "xx"),
        ("/".join("d" * 20), "/".join("d" * 21)),
    ],
)
def test_length_of_a_new_path_is_limited(accepted, refused):
    assert find_path_problem(accepted) == ""
    assert find_path_problem(refused) == "its path is too long"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a/\u200bx.py", "its path holds characters that cannot be seen"),
        ("a/\x07.py", "its path holds characters that cannot be seen"),
        ("a\\b", "its path means something else on another system"),
        ("a/trailing.", "its path means something else on another system"),
        ("-rf", "its path means something else to a shell or on another system"),
        ("a/ b", "its path means something else to a shell or on another system"),
        ("a/NUL.txt", "its path means something else to a shell or on another system"),
        ("a/p\u0430y.py", "its name mixes letters that look alike"),
        (".é", "its name mixes letters that look alike"),
        ("a/-rf", ""),
        ("a/~x", ""),
        ("p\u0430/pay.py", "its name mixes letters that look alike"),
        ("\u0440\u0430/pay.py", ""),
        ("a/console.py", ""),
    ],
)
def test_refused_path_names_its_reason(path, reason):
    assert find_path_problem(path) == reason
    violations = find_violations([TreeChange(path, "000000", "100644")], b"")
    assert violations == ((Violation(path, reason),) if reason else ())


def test_file_that_is_not_regular_is_no_matter_what_it_becomes():
    change = TreeChange("pkg/link", "120000", "100644")
    assert find_violations([change], b"") == (Violation("pkg/link", "it is no regular file (mode 120000)"),)
    assert not find_violations([TreeChange("pkg/run", "100644", "100755")], b"")


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [("pkg/a.py", True), ("pkg/deep/a.py", True), ("docs/a.md", True), ("pkgs/a.py", False), ("Pkg/a.py", False)],
)
def test_scope_limits_what_may_change(path, is_allowed):
    violations = find_violations([TreeChange(path, "100644", "100644")], b"", scope=["pkg/", "docs/*.md"])
    reason = "only pkg/, docs/*.md is to be changed in this run"
    assert violations == (() if is_allowed else (Violation(path, reason),))


def test_mask_of_a_secret_is_never_written():
    diff = "-key = '«secret:key»'\n+key = '«secret:key»'\n".encode()
    change = [TreeChange("pkg/a.py", "100644", "100644")]
    assert find_violations(change, diff) == (Violation("diff", "it would write a mask in the place of a secret"),)
    assert not find_violations(change, diff.splitlines()[0])


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        ("Binary files /dev/null and b/x.bin differ", "it adds a file that is no text"),
        ("+ \u202e", "it adds characters that change the direction of writing: the code would not run as it reads"),
        ("+\u202e", "it adds characters that change the direction of writing: the code would not run as it reads"),
        ("- \u202e", ""),
        ("  \u202e", ""),
        ("+ plain", ""),
    ],
)
def test_refused_text_names_its_reason(diff, reason):
    assert find_text_problem(diff.encode()) == reason
    violations = find_violations([TreeChange("pkg/a.py", "100644", "100644")], diff.encode())
    assert violations == ((Violation("diff", reason),) if reason else ())


def test_every_violation_is_listed():
    changes = [TreeChange(path, "100644", "100644") for path in ("tests/test_a.py", "pkg/a.py", "conftest.py")]
    violations = find_violations(changes, b"Binary files a/x and b/x differ")
    assert [violation.path for violation in violations] == ["tests/test_a.py", "conftest.py", "diff"]
