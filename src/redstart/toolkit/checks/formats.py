"""Findings in formats that other tools read: SARIF 2.1.0, GitHub's workflow commands, JSON."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from redstart.core.finding import Finding, FindingList, Risk

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Risk.high: "error", Risk.medium: "warning", Risk.low: "note"}
_COMMANDS = {Risk.high: "error", Risk.medium: "warning", Risk.low: "notice"}
_SCORES = {Risk.high: "8.0", Risk.medium: "5.0", Risk.low: "2.0"}


def as_json(report: FindingList) -> str:
    """Return the report unchanged."""
    return report.model_dump_json(indent=2)


def as_sarif(report: FindingList, version: str) -> str:
    """Return a SARIF log of one run. What the audit could not do becomes a notification."""
    found = report.findings
    rules = sorted({_rule_id(item): item for item in found}.items())
    places = {name: place for place, (name, _) in enumerate(rules)}
    driver = {"name": "redstart", "version": version, "rules": [_rule(name, rule) for name, rule in rules]}
    results = [_result(item, places[_rule_id(item)]) for item in found]
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if report.warnings:
        notifications = [{"level": "warning", "message": {"text": text}} for text in report.warnings]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notifications}]
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule_id(one: Finding) -> str:
    return f"{one.tool}/{one.rule}"


def _rule(name: str, one: Finding) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": one.rule.replace("-", " ")},
        "defaultConfiguration": {"level": _LEVELS[one.risk]},
        "properties": {"tags": [one.kind.value], "security-severity": _SCORES[one.risk]},
    }


def _result(one: Finding, place: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": _rule_id(one),
        "ruleIndex": place,
        "level": _LEVELS[one.risk],
        "message": {"text": one.message},
        "locations": [_location(one.path, one.line)],
        "partialFingerprints": {"redstart/v1": one.fingerprint},
        "properties": {"kind": one.kind.value, "risk": one.risk.value, "also": list(one.also)},
    }
    if one.reaches:
        related = _location(one.path, one.reaches)
        result["relatedLocations"] = [{**related, "id": 1, "message": {"text": "it is used here"}}]
    return result


def _location(path: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(path)}, "region": {"startLine": max(line, 1)}}
    return {"physicalLocation": place}


def as_github(report: FindingList) -> str:
    """Return a workflow command for each finding, which GitHub shows beside the line, and for each warning."""
    lines = [
        f"::{_COMMANDS[finding.risk]} file={_property(finding.path)},line={max(finding.line, 1)},"
        f"title={_property(_rule_id(finding))}::{_data(finding.message)}"
        for finding in report.findings
    ]
    return "\n".join([*lines, *(f"::warning::{_data(text)}" for text in report.warnings)])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
