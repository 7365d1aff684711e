"""All tools together: how their findings are merged, and the formats that other programs read."""

from __future__ import annotations

import json

import pytest

from redstart.core.finding import Finding, FindingKind, FindingList, Risk, Severity
from redstart.toolkit.checks.audit import merged, run_tools, security, without_suppressed
from redstart.toolkit.checks.formats import as_github, as_json, as_sarif
from redstart.toolkit.checks.narrow import more_than, most_telling, new_since, on_changed_lines, without_noise
from redstart.toolkit.checks.outside import outside_findings
from redstart.toolkit.checks.review import ReviewClaim, verified
from redstart.toolkit.checks.source import Source
from redstart.toolkit.languages.registry import is_test_path

BAD = b"import pickle\n\n\ndef f(cur, name, data):\n    cur.execute(f\"SELECT * FROM t WHERE n = '{name}'\")\n    return pickle.loads(data)\n"  # noqa: E501


def finding(rule: str = "r", line: int = 1, path: str = "a.py", **over: object) -> Finding:
    plain = {
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
    return Finding.model_validate({**plain, **over})


@pytest.mark.slow
def test_a_defect_is_told_once_with_everybody_who_saw_it() -> None:
    query, load = run_tools({"shop/a.py": BAD})
    assert (query.kind, query.line, query.also) == (FindingKind.sql_injection, 5, ("ruff S608",))
    assert (load.kind, load.line, load.also) == (FindingKind.dangerous_call, 6, ("ruff S301",))


@pytest.mark.slow
def test_a_guess_that_nobody_shares_is_not_told() -> None:
    text = b'import random\nT = "t"\nx = random.choice([1])\n\n\ndef f(cur):\n    cur.execute(f"SELECT a FROM {T}")\n'
    assert run_tools({"a.py": text}) == []


@pytest.mark.slow
def test_bandit_is_asked_where_it_alone_can_tell() -> None:
    text = "import mako.template\n\n\ndef f(x):\n    return mako.template.Template(x)\n# \u202e\n".encode()
    found = run_tools({"a.py": text}, left_out=("ruff",))
    assert {(item.tool, item.rule) for item in found} == {("bandit", "B613"), ("bandit", "B702")}


def test_a_tool_can_be_left_out() -> None:
    assert run_tools({"a.py": BAD}, left_out=("ruff", "bandit", "secrets", "rules")) == []


def test_only_security_of_some_risk_keeps_a_patch_back() -> None:
    assert [item.rule for item in security({"a.py": BAD + b"x = undefined\nimport os\n"})] == [
        "sql-built-from-strings",
        "unsafe-deserialisation",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["# nosec", "# noqa", "# noqa: S301", "# NOQA: E501, S301"])
def test_a_comment_of_a_person_accepts_a_finding(mark: str) -> None:
    text = f"import pickle\npickle.loads(x)  {mark}\n".encode()
    found = [tool for tool in run_tools({"a.py": text}) if tool.kind is not FindingKind.code]
    assert len(found) == 1
    assert without_suppressed(found, {"a.py": text}) == []


@pytest.mark.slow
def test_another_comment_accepts_nothing() -> None:
    text = b"import pickle\npickle.loads(x)  # noqa: E501 and more\n"
    found = [tool for tool in run_tools({"a.py": text}) if tool.kind is not FindingKind.code]
    assert without_suppressed(found, {"a.py": text}) == found


def test_findings_of_other_kinds_and_lines_stay_apart() -> None:
    found = [
        finding("one", 1),
        finding("two", 1, tool="bandit"),
        finding("three", 2),
        finding("s", 1, kind=FindingKind.secret),
    ]
    assert [(item.rule, item.also) for item in merged(found)] == [("one", ("bandit two",)), ("s", ()), ("three", ())]


def test_what_moved_or_was_changed_otherwise_is_not_new() -> None:
    before = [finding("one", 1), finding("two", 5)]
    assert more_than(before, [finding("one", 9)]) == []
    assert [item.line for item in more_than(before, [finding("one", 1), finding("one", 9)])] == [9]
    assert [item.rule for item in more_than(before, [finding("three", 3)])] == ["three"]


def test_known_findings_are_counted() -> None:
    twice = [finding("one", 1), finding("one", 1)]
    assert new_since(twice, {"one1": 2}) == []
    assert len(new_since(twice, {"one1": 1})) == 1


def test_only_changed_lines_count_and_lines_where_it_is_used() -> None:
    found = [finding("one", 1), finding("two", 2, reaches=7), finding("three", 3, path="b.py")]
    assert [line.rule for line in on_changed_lines(found, {"a.py": (1, 7)})] == ["one", "two"]


def test_the_gravest_come_first() -> None:
    found = [finding("a", 1, risk=Risk.low), finding("b", 2, kind=FindingKind.code), finding("c", 3)]
    assert [item.rule for item in most_telling(found)] == ["c", "b", "a"]


# -- the user's own tools -----------------------------------------------------------------------------------------


def test_lines_of_other_tools_are_read() -> None:
    said = (
        "a.py:2: error: Incompatible types  [assignment]\n./a.py:1:5: F401 `os` unused\na.py:2: note: see\nz.py:1: no\n"
    )
    found = outside_findings("mypy", said, {"a.py": b"one\ntwo\n"})
    assert [(item.line, item.rule, item.risk) for item in found] == [(2, "said", Risk.medium), (1, "F401", Risk.medium)]
    assert found[0].fingerprint == Finding.mark("mypy", "said", "a.py", "two")


def test_sarif_of_other_tools_is_read() -> None:
    said = as_sarif(FindingList(findings=(finding("one", 2),)), "1")
    (found,) = outside_findings("lint", said, {"a.py": b"one\ntwo\n"})
    assert (found.tool, found.rule, found.line, found.path) == ("lint", "rules/one", 2, "a.py")


# -- a model's claims ------------------------------------------------------------------------------------------

FILES = {"a.py": b"import os\n\n\ndef f(x):\n    return os.system(x)\n"}


def claim(**over: object) -> ReviewClaim:
    plain = {"path": "a.py", "line": 5, "quote": "return os.system(x)", "kind": "dangerous_call", "risk": "high"}
    return ReviewClaim(**{**plain, "message": "a shell", **over})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("over", "line"),
    [({}, 5), ({"line": 3}, 5), ({"path": "./a.py"}, 5), ({"quote": "os.system(x)"}, None), ({"line": 1}, None),
     ({"quote": ""}, None), ({"path": "b.py"}, None), ({"line": 50}, None), ({"quote": "os.popen(x)"}, None),
     ({"message": " "}, None), ({"line": 0}, None)],
)  # fmt: skip
def test_a_claim_must_hold_on_its_line(over: dict[str, object], line: int | None) -> None:
    found, dropped = verified([claim(**over)], FILES)
    assert ([item.line for item in found], dropped) == (([line], 0) if line else ([], 1))


def test_a_claim_twice_is_one_finding_and_odd_words_are_put_right() -> None:
    found, dropped = verified([claim(), claim(kind="Nonsense", risk="awful"), claim()], FILES)
    assert [(item.kind, item.risk, item.tool) for item in found] == [
        (FindingKind.dangerous_call, Risk.high, "model"),
        (FindingKind.code, Risk.medium, "model"),
    ]
    assert dropped == 0


# -- formats --------------------------------------------------------------------------------------------


def test_sarif_has_what_the_schema_asks_for() -> None:
    """Check by hand the parts of the 2.1.0 schema that we write: the names, the required ones, and their types."""
    found = [finding("one", 2, path="a b/c.py", reaches=9), finding("two", 0, risk=Risk.low), finding("one", 3)]
    log = json.loads(as_sarif(FindingList(findings=tuple(found)), "0.1.0"))
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


def test_commands_of_github_cannot_be_broken_out_of() -> None:
    strange = finding("one", 2, path="a,b:c.py", message="one\ntwo % three")
    report = FindingList(findings=(strange, finding(risk=Risk.low)), warnings=("3 of 3\n::error::answers",))
    lines = as_github(report).split("\n")
    assert lines == [
        "::error file=a%2Cb%3Ac.py,line=2,title=rules/one::one%0Atwo %25 three",
        "::notice file=a.py,line=1,title=rules/r::m",
        "::warning::3 of 3%0A::error::answers",
    ]


def test_json_can_be_read_back() -> None:
    report = FindingList(findings=(finding(),), warnings=("1 of 1 model answer could not be read",), accepted=2)
    assert FindingList.model_validate_json(as_json(report)) == report


def test_what_an_audit_could_not_do_is_a_notification_of_sarif() -> None:
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
    ("rule", "path", "kept"),
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
def test_re_exports_and_remarks_on_test_data_are_noise(rule: str, path: str, kept: bool) -> None:
    assert without_noise([finding(rule, path=path)], is_test_path) == ([finding(rule, path=path)] if kept else [])


def test_sources_are_decoded_as_they_say() -> None:
    assert Source("a.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1")).line(2) == "x = 'é'"
    assert Source("a.py", b"# coding: nonsense\nx = '\xff'\n").line(2).startswith("x = ")
