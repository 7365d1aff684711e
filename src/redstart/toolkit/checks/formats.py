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
    findings = report.findings
    rules = sorted({_build_rule_id(item): item for item in findings}.items())
    places = {name: place for place, (name, _) in enumerate(rules)}
    driver = {"name": "redstart", "version": version, "rules": [_build_rule(name, rule) for name, rule in rules]}
    results = [_build_result(item, places[_build_rule_id(item)]) for item in findings]
    run: dict[str, Any] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if report.warnings:
        notifications = [{"level": "warning", "message": {"text": text}} for text in report.warnings]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notifications}]
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _build_rule_id(finding: Finding) -> str:
    return f"{finding.tool}/{finding.rule}"


def _build_rule(name: str, finding: Finding) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": finding.rule.replace("-", " ")},
        "defaultConfiguration": {"level": _LEVELS[finding.risk]},
        "properties": {"tags": [finding.kind.value], "security-severity": _SCORES[finding.risk]},
    }


def _build_result(finding: Finding, place: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": _build_rule_id(finding),
        "ruleIndex": place,
        "level": _LEVELS[finding.risk],
        "message": {"text": finding.message},
        "locations": [_build_location(finding.path, finding.line)],
        "partialFingerprints": {"redstart/v1": finding.fingerprint},
        "properties": {"kind": finding.kind.value, "risk": finding.risk.value, "also": list(finding.also)},
    }
    if finding.reaches:
        related = _build_location(finding.path, finding.reaches)
        result["relatedLocations"] = [{**related, "id": 1, "message": {"text": "it is used here"}}]
    return result


def _build_location(path: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": quote(path)}, "region": {"startLine": max(line, 1)}}
    return {"physicalLocation": place}


def as_github(report: FindingList) -> str:
    """Return a workflow command for each finding, which GitHub shows beside the line, and for each warning."""
    lines = [
        f"::{_COMMANDS[finding.risk]} file={_escape_property(finding.path)},line={max(finding.line, 1)},"
        f"title={_escape_property(_build_rule_id(finding))}::{_escape_data(finding.message)}"
        for finding in report.findings
    ]
    return "\n".join([*lines, *(f"::warning::{_escape_data(text)}" for text in report.warnings)])


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
