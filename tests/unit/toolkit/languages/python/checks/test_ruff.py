from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PolicyViolation
from redstart.core.finding import Finding, Severity
from redstart.toolkit.checks.narrow import new_findings, syntax_errors
from redstart.toolkit.languages.python.checks import ruff
from redstart.toolkit.languages.python.checks.ruff import check
from support.sample import short_form

pytestmark = pytest.mark.slow


def rules(findings: list[Finding]) -> list[tuple[str, str, int]]:
    return [(finding.path, finding.rule, finding.line) for finding in findings]


def test_clean_files_and_no_files_have_no_findings() -> None:
    assert check({}) == []
    assert check({"a.py": b"x = 1\n", "README.md": b"def f(:\n"}) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("x = y\n", "F821"),
        ("def f(a=[]):\n    return a\n", "B006"),
        ("exec('1')\n", "S102"),
        ("eval(input())\n", "S307"),
        ("import subprocess\nsubprocess.run('ls', shell=True)\n", "S602"),
        ("import os\nos.system(input())\n", "S605"),
        ("class A:\n    def __init__(self):\n        return 1\n", "PLE0101"),
    ],
)
def test_each_rule_is_found_as_an_error(text: str, rule: str) -> None:
    (finding,) = check({"a.py": text.encode()})
    assert (finding.rule, finding.severity, finding.tool) == (rule, Severity.error, "ruff")


def test_what_is_merely_unused_is_a_warning() -> None:
    found = check({"a.py": b"import os\ndef f():\n    x = 1\n"})
    assert [(item.rule, item.severity) for item in found] == [("F401", Severity.warning), ("F841", Severity.warning)]


def test_a_syntax_error_is_told_apart() -> None:
    found = check({"bad.py": b"def f(:\n    pass\n", "good.py": b"x = y\n"})
    assert {item.path for item in syntax_errors(found)} == {"bad.py"}
    assert all(item.rule == "syntax" and item.severity is Severity.error for item in syntax_errors(found))
    assert ("good.py", "F821", 1) in rules(found)


@pytest.mark.parametrize("text", short_form([b"x = '\xff'\n", b"x = 1\0\n", b"x = " + b"-" * 300_000 + b"1\n"], 1))
def test_what_cannot_be_parsed_is_a_syntax_error_and_hides_nothing_else(text: bytes) -> None:
    found = check({"odd.py": text, "other.py": b"x = y\n"})
    assert {error.path for error in syntax_errors(found)} == {"odd.py"}
    assert ("other.py", "F821", 1) in rules(found)


def test_another_encoding_and_new_syntax_are_no_errors() -> None:
    assert check({"a.py": b"# coding: latin-1\nx = '\xe9'\n", "b.py": b"def f[T](a: T) -> T:\n    return a\n"}) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = y  # noqa\n",
        "x = y  # noqa: F821\n",
        "# ruff: noqa\nx = y\n",
        "# flake8: noqa\nx = y\n",
        "x = y  # ruff: ignore[F821]\n",
        "# ruff: disable[F821]\nx = y\n# ruff: enable[F821]\n",
    ],
)
def test_no_comment_hides_a_finding(text: str) -> None:
    assert [item.rule for item in check({"a.py": text.encode()})] == ["F821"]


def test_neither_the_surroundings_nor_the_environment_have_an_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "ruff.toml").write_text('exclude = ["*"]\n')
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(tmp_path / "said.json"))
    assert [item.rule for item in check({"a.py": b"x = y\n"})] == ["F821"]


def test_no_configuration_among_the_files_has_an_effect() -> None:
    quiet = b'exclude = ["*.py"]\n[lint]\nselect = []\nignore = ["F821"]\n'
    files = {
        "ruff.toml": quiet,
        ".ruff.toml": quiet,
        "pyproject.toml": b'[tool.ruff]\nexclude = ["*.py"]\n',
        ".gitignore": b"*\n",
        "a.py": b"x = y\n",
        "build/a.py": b"x = y\n",
        ".venv/a.py": b"x = y\n",
    }
    assert {item.path for item in check(files)} == {"a.py", "build/a.py", ".venv/a.py"}


@pytest.mark.parametrize("path", ["/etc/a.py", "../a.py", "a/../../b.py"])
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    with pytest.raises(PolicyViolation):
        check({path: b"x = 1\n"})


def test_a_finding_that_moved_is_not_new_and_a_second_one_is() -> None:
    before = check({"a.py": b"x = y\n"})
    moved = check({"a.py": b"\n\nx = y\n"})
    doubled = check({"a.py": b"x = y\nx = y\n"})
    assert new_findings(before, moved) == []
    assert rules(new_findings(before, doubled)) == [("a.py", "F821", 2)]
    assert rules(new_findings(doubled, before)) == []


def test_a_form_feed_does_not_shift_the_line_of_a_finding() -> None:
    (plain,) = check({"a.py": b"x = 1\nz = y\n"})
    (fed,) = check({"a.py": b"x = 1\x0c\nz = y\n"})
    assert fed.fingerprint == plain.fingerprint


def test_a_missing_ruff_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError("no ruff")

    monkeypatch.setattr("ruff.find_ruff_bin", none)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ConfigError) as raised:
        check({"a.py": b"x = 1\n"})
    assert "pip install ruff" in raised.value.remedy


def test_a_ruff_that_does_not_work_is_not_a_clean_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruff, "RULES", ("NO_SUCH_RULE",))
    with pytest.raises(ConfigError):
        check({"a.py": b"x = 1\n"})
