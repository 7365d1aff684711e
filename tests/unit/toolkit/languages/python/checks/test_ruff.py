from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PolicyViolation
from redstart.core.finding import Finding, Severity
from redstart.toolkit.checks.selection import select_new_findings, select_syntax_errors
from redstart.toolkit.languages.python.checks import ruff
from redstart.toolkit.languages.python.checks.ruff import check
from support.sample import sample_parameters

pytestmark = pytest.mark.slow


def list_rules(findings: list[Finding]) -> list[tuple[str, str, int]]:
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
def test_each_rule_is_reported_as_an_error(text: str, rule: str) -> None:
    (finding,) = check({"a.py": text.encode()})
    assert (finding.rule, finding.severity, finding.tool) == (rule, Severity.error, "ruff")


def test_unused_code_is_only_a_warning() -> None:
    findings = check({"a.py": b"import os\ndef f():\n    x = 1\n"})
    assert [(item.rule, item.severity) for item in findings] == [("F401", Severity.warning), ("F841", Severity.warning)]


def test_syntax_errors_are_distinguished() -> None:
    findings = check({"bad.py": b"def f(:\n    pass\n", "good.py": b"x = y\n"})
    assert {item.path for item in select_syntax_errors(findings)} == {"bad.py"}
    assert all(item.rule == "syntax" and item.severity is Severity.error for item in select_syntax_errors(findings))
    assert ("good.py", "F821", 1) in list_rules(findings)


@pytest.mark.parametrize(
    "text", sample_parameters([b"x = '\xff'\n", b"x = 1\0\n", b"x = " + b"-" * 300_000 + b"1\n"], 1)
)
def test_unparsable_file_is_a_syntax_error_and_hides_no_other_finding(text: bytes) -> None:
    findings = check({"odd.py": text, "other.py": b"x = y\n"})
    assert {error.path for error in select_syntax_errors(findings)} == {"odd.py"}
    assert ("other.py", "F821", 1) in list_rules(findings)


def test_other_encodings_and_new_syntax_are_not_errors() -> None:
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
def test_comment_cannot_hide_a_finding(text: str) -> None:
    assert [item.rule for item in check({"a.py": text.encode()})] == ["F821"]


def test_surrounding_directory_and_environment_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "ruff.toml").write_text('exclude = ["*"]\n')
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(tmp_path / "said.json"))
    assert [item.rule for item in check({"a.py": b"x = y\n"})] == ["F821"]


def test_configuration_among_the_files_has_no_effect() -> None:
    config = b'exclude = ["*.py"]\n[lint]\nselect = []\nignore = ["F821"]\n'
    files = {
        "ruff.toml": config,
        ".ruff.toml": config,
        "pyproject.toml": b'[tool.ruff]\nexclude = ["*.py"]\n',
        ".gitignore": b"*\n",
        "a.py": b"x = y\n",
        "build/a.py": b"x = y\n",
        ".venv/a.py": b"x = y\n",
    }
    assert {item.path for item in check(files)} == {"a.py", "build/a.py", ".venv/a.py"}


@pytest.mark.parametrize("path", ["/etc/a.py", "../a.py", "a/../../b.py"])
def test_path_outside_the_directory_is_refused(path: str) -> None:
    with pytest.raises(PolicyViolation):
        check({path: b"x = 1\n"})


def test_moved_finding_is_not_new_but_a_second_occurrence_is() -> None:
    findings_before = check({"a.py": b"x = y\n"})
    moved_findings = check({"a.py": b"\n\nx = y\n"})
    doubled = check({"a.py": b"x = y\nx = y\n"})
    assert select_new_findings(findings_before, moved_findings) == []
    assert list_rules(select_new_findings(findings_before, doubled)) == [("a.py", "F821", 2)]
    assert list_rules(select_new_findings(doubled, findings_before)) == []


def test_form_feed_does_not_shift_the_line_of_a_finding() -> None:
    (plain_finding,) = check({"a.py": b"x = 1\nz = y\n"})
    (fed,) = check({"a.py": b"x = 1\x0c\nz = y\n"})
    assert fed.fingerprint == plain_finding.fingerprint


def test_missing_ruff_error_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_missing() -> str:
        raise FileNotFoundError("no ruff")

    monkeypatch.setattr("ruff.find_ruff_bin", raise_missing)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ConfigError) as caught:
        check({"a.py": b"x = 1\n"})
    assert "pip install ruff" in caught.value.remedy


def test_broken_ruff_is_not_a_clean_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruff, "RULES", ("NO_SUCH_RULE",))
    with pytest.raises(ConfigError):
        check({"a.py": b"x = 1\n"})
