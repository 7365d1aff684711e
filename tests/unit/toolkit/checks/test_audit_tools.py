"""All tools together: how their findings are merged, and the formats that other programs read."""

from __future__ import annotations

import json

import pytest

from redstart.core.finding import Finding, FindingKind, FindingList, Risk, Severity
from redstart.toolkit.checks.audit import find_security_problems, merge_findings, run_tools, without_suppressed
from redstart.toolkit.checks.formats import as_github, as_json, as_sarif
from redstart.toolkit.checks.review import ReviewClaim, verify_claims
from redstart.toolkit.checks.selection import (
    exclude_known_findings,
    on_changed_lines,
    select_increases,
    sort_by_severity,
    without_noise,
)
from redstart.toolkit.checks.source import Source
from redstart.toolkit.checks.tool_output import parse_tool_output
from redstart.toolkit.languages.registry import is_test_path

BAD = b"import pickle\n\n\ndef f(cur, name, data):\n    cur.execute(f\"SELECT * FROM t WHERE n = '{name}'\")\n    return pickle.loads(data)\n"  # noqa: E501


def create_finding(rule: str = "r", line: int = 1, path: str = "a.py", **overrides: object) -> Finding:
    defaults = {
        "tool": "rules",
        "rule": rule,
        "path": path,
        "line": line,
        "severity": Severity.error,
        "message": "m",
        "fingerprint": f"{rule}{line}",
        "kind": FindingKind.dangerous_call,
        "risk": Risk.high,
    }
    return Finding.model_validate({**defaults, **overrides})


@pytest.mark.slow
def test_defect_is_reported_once_with_every_tool_that_found_it() -> None:
    query, load = run_tools({"shop/a.py": BAD})
    assert (query.kind, query.line, query.also) == (FindingKind.sql_injection, 5, ("ruff S608",))
    assert (load.kind, load.line, load.also) == (FindingKind.dangerous_call, 6, ("ruff S301",))


@pytest.mark.slow
def test_unconfirmed_guess_is_not_reported() -> None:
    text = b'import random\nT = "t"\nx = random.choice([1])\n\n\ndef f(cur):\n    cur.execute(f"SELECT a FROM {T}")\n'
    assert run_tools({"a.py": text}) == []


@pytest.mark.slow
def test_bandit_reports_what_only_it_can_detect() -> None:
    text = "import mako.template\n\n\ndef f(x):\n    return mako.template.Template(x)\n# \u202e\n".encode()
    findings = run_tools({"a.py": text}, left_out=("ruff",))
    assert {(item.tool, item.rule) for item in findings} == {("bandit", "B613"), ("bandit", "B702")}


def test_tool_can_be_excluded() -> None:
    assert run_tools({"a.py": BAD}, left_out=("ruff", "bandit", "secrets", "rules")) == []


def test_only_security_findings_of_enough_risk_block_a_patch() -> None:
    assert [item.rule for item in find_security_problems({"a.py": BAD + b"x = undefined\nimport os\n"})] == [
        "sql-built-from-strings",
        "unsafe-deserialisation",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["# nosec", "# noqa", "# noqa: S301", "# NOQA: E501, S301"])
def test_suppression_comment_accepts_a_finding(mark: str) -> None:
    text = f"import pickle\npickle.loads(x)  {mark}\n".encode()
    findings = [tool for tool in run_tools({"a.py": text}) if tool.kind is not FindingKind.code]
    assert len(findings) == 1
    assert without_suppressed(findings, {"a.py": text}) == []


@pytest.mark.slow
def test_unrelated_comment_accepts_nothing() -> None:
    text = b"import pickle\npickle.loads(x)  # noqa: E501 and more\n"
    findings = [tool for tool in run_tools({"a.py": text}) if tool.kind is not FindingKind.code]
    assert without_suppressed(findings, {"a.py": text}) == findings


def test_findings_of_other_kinds_or_lines_are_not_merged() -> None:
    findings = [
        create_finding("one", 1),
        create_finding("two", 1, tool="bandit"),
        create_finding("three", 2),
        create_finding("s", 1, kind=FindingKind.secret),
    ]
    assert [(item.rule, item.also) for item in merge_findings(findings)] == [
        ("one", ("bandit two",)),
        ("s", ()),
        ("three", ()),
    ]


def test_moved_or_edited_finding_is_not_new() -> None:
    before = [create_finding("one", 1), create_finding("two", 5)]
    assert select_increases(before, [create_finding("one", 9)]) == []
    assert [item.line for item in select_increases(before, [create_finding("one", 1), create_finding("one", 9)])] == [9]
    assert [item.rule for item in select_increases(before, [create_finding("three", 3)])] == ["three"]


def test_known_findings_are_counted() -> None:
    findings = [create_finding("one", 1), create_finding("one", 1)]
    assert exclude_known_findings(findings, {"one1": 2}) == []
    assert len(exclude_known_findings(findings, {"one1": 1})) == 1


def test_findings_count_only_on_changed_lines_or_their_uses() -> None:
    findings = [create_finding("one", 1), create_finding("two", 2, reaches=7), create_finding("three", 3, path="b.py")]
    assert [line.rule for line in on_changed_lines(findings, {"a.py": (1, 7)})] == ["one", "two"]


def test_most_serious_findings_come_first() -> None:
    findings = [
        create_finding("a", 1, risk=Risk.low),
        create_finding("b", 2, kind=FindingKind.code),
        create_finding("c", 3),
    ]
    assert [item.rule for item in sort_by_severity(findings)] == ["c", "b", "a"]


# -- the user's own tools -----------------------------------------------------------------------------------------


def test_output_lines_of_other_tools_are_parsed() -> None:
    output = (
        "a.py:2: error: Incompatible types  [assignment]\n./a.py:1:5: F401 `os` unused\na.py:2: note: see\nz.py:1: no\n"
    )
    findings = parse_tool_output("mypy", output, {"a.py": b"one\ntwo\n"})
    assert [(item.line, item.rule, item.risk) for item in findings] == [
        (2, "said", Risk.medium),
        (1, "F401", Risk.medium),
    ]
    assert findings[0].fingerprint == Finding.mark("mypy", "said", "a.py", "two")


def test_sarif_of_other_tools_is_parsed() -> None:
    sarif = as_sarif(FindingList(findings=(create_finding("one", 2),)), "1")
    (outside_finding,) = parse_tool_output("lint", sarif, {"a.py": b"one\ntwo\n"})
    assert (outside_finding.tool, outside_finding.rule, outside_finding.line, outside_finding.path) == (
        "lint",
        "rules/one",
        2,
        "a.py",
    )


# -- a model's claims ------------------------------------------------------------------------------------------

FILES = {"a.py": b"import os\n\n\ndef f(x):\n    return os.system(x)\n"}


def claim(**overrides: object) -> ReviewClaim:
    defaults = {"path": "a.py", "line": 5, "quote": "return os.system(x)", "kind": "dangerous_call", "risk": "high"}
    return ReviewClaim(**{**defaults, "message": "a shell", **overrides})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("overrides", "line"),
    [({}, 5), ({"line": 3}, 5), ({"path": "./a.py"}, 5), ({"quote": "os.system(x)"}, None), ({"line": 1}, None),
     ({"quote": ""}, None), ({"path": "b.py"}, None), ({"line": 50}, None), ({"quote": "os.popen(x)"}, None),
     ({"message": " "}, None), ({"line": 0}, None)],
)  # fmt: skip
def test_claim_must_match_its_line(overrides: dict[str, object], line: int | None) -> None:
    findings, dropped_count = verify_claims([claim(**overrides)], FILES)
    assert ([item.line for item in findings], dropped_count) == (([line], 0) if line else ([], 1))


def test_repeated_claim_is_one_finding_and_unknown_values_are_corrected() -> None:
    findings, dropped_count = verify_claims([claim(), claim(kind="Nonsense", risk="awful"), claim()], FILES)
    assert [(item.kind, item.risk, item.tool) for item in findings] == [
        (FindingKind.dangerous_call, Risk.high, "model"),
        (FindingKind.code, Risk.medium, "model"),
    ]
    assert dropped_count == 0


# -- formats --------------------------------------------------------------------------------------------


def test_sarif_matches_its_schema() -> None:
    """Check by hand the parts of the 2.1.0 schema that we write: the names, the required ones, and their types."""
    findings = [
        create_finding("one", 2, path="a b/c.py", reaches=9),
        create_finding("two", 0, risk=Risk.low),
        create_finding("one", 3),
    ]
    log = json.loads(as_sarif(FindingList(findings=tuple(findings)), "0.1.0"))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert set(run) == {"tool", "columnKind", "results"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert set(driver) == {"name", "version", "rules"}
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == sorted(set(ids))
    for rule in driver["rules"]:
        assert set(rule) == {"id", "shortDescription", "defaultConfiguration", "properties"}
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        assert len(set(rule["properties"]["tags"])) == len(rule["properties"]["tags"])
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert isinstance(result["message"]["text"], str)
        for place in (*result["locations"], *result.get("relatedLocations", [])):
            assert set(place) <= {"physicalLocation", "id", "message"}
            assert place["physicalLocation"]["region"]["startLine"] >= 1
            assert " " not in place["physicalLocation"]["artifactLocation"]["uri"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    assert run["results"][0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 9


def test_github_commands_cannot_be_injected() -> None:
    hostile_finding = create_finding("one", 2, path="a,b:c.py", message="one\ntwo % three")
    report = FindingList(
        findings=(hostile_finding, create_finding(risk=Risk.low)), warnings=("3 of 3\n::error::answers",)
    )
    lines = as_github(report).split("\n")
    assert lines == [
        "::error file=a%2Cb%3Ac.py,line=2,title=rules/one::one%0Atwo %25 three",
        "::notice file=a.py,line=1,title=rules/r::m",
        "::warning::3 of 3%0A::error::answers",
    ]


def test_json_can_be_read_back() -> None:
    report = FindingList(findings=(create_finding(),), warnings=("1 of 1 model answer could not be read",), accepted=2)
    assert FindingList.model_validate_json(as_json(report)) == report


def test_incomplete_audit_becomes_a_sarif_notification() -> None:
    (run,) = json.loads(as_sarif(FindingList(warnings=("3 of 3 model answers could not be read",)), "1"))["runs"]
    (invocation,) = run["invocations"]
    assert invocation == {
        "executionSuccessful": True,
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": "3 of 3 model answers could not be read"}}
        ],
    }


# -- noise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path", "is_kept"),
    [
        ("F401", "shop/__init__.py", False),
        ("F401", "shop/store.py", True),
        ("F841", "shop/__init__.py", True),
        ("S113", "tests/test_store.py", False),
        ("S324", "tests/test_store.py", False),
        ("S113", "shop/store.py", True),
        ("unsafe-deserialisation", "tests/test_store.py", True),
    ],
)
def test_re_exports_and_findings_in_test_data_are_noise(rule: str, path: str, is_kept: bool) -> None:
    assert without_noise([create_finding(rule, path=path)], is_test_path) == (
        [create_finding(rule, path=path)] if is_kept else []
    )


def test_sources_are_decoded_by_their_declared_encoding() -> None:
    assert Source("a.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1")).get_line(2) == "x = 'é'"
    assert Source("a.py", b"# coding: nonsense\nx = '\xff'\n").get_line(2).startswith("x = ")
