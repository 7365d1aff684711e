"""Parse the findings that a user's tool prints: SARIF, or a line for each as `path:line: message`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.core.frozen import clip
from redstart.toolkit.checks.source import Source

_LINE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*?):(?P<line>\d+)(?::\d+)?:?\s+(?:(?P<level>error|warning|note|info)\s*:\s*)?"
    r"(?:\[?(?P<rule>[A-Z]{1,6}\d{2,5})\]?:?\s+)?(?P<message>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_RISKS = {"error": Risk.medium, "warning": Risk.low, "info": Risk.low}
_MAX_FINDINGS = 2000


def parse_tool_output(tool: str, output: str, files: Mapping[str, bytes]) -> list[Finding]:
    """Return the tool's findings in these files; findings in other files are ignored."""
    sources: dict[str, Source] = {}
    findings: list[Finding] = []
    for path, line, rule, level, message in _parse_output(output):
        if level == "note" or path not in files or len(findings) >= _MAX_FINDINGS:
            continue
        source = sources.setdefault(path, Source(path, files[path]))
        risk = _RISKS.get(level, Risk.medium)
        findings.append(source.build_finding(tool, rule, line, clip(message, 400), FindingKind.code, risk))
    return findings


def _parse_output(output: str) -> Iterator[tuple[str, int, str, str, str]]:
    if output.lstrip().startswith("{"):
        try:
            yield from _from_sarif(json.loads(output))
            return
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            pass  # not SARIF after all, so its lines are read
    for match in _LINE.finditer(output):
        path = match["path"].strip().removeprefix("./")
        yield (
            path,
            int(match["line"]),
            match["rule"] or "said",
            (match["level"] or "error").lower(),
            match["message"].strip(),
        )


def _from_sarif(document: dict[str, Any]) -> Iterator[tuple[str, int, str, str, str]]:
    for run in document["runs"]:
        for result in cast("list[dict[str, Any]]", run.get("results", [])):
            place = result["locations"][0]["physicalLocation"]
            path = str(place["artifactLocation"]["uri"]).removeprefix("file://").removeprefix("./")
            line = int(place.get("region", {}).get("startLine", 1))
            level = str(result.get("level", "warning"))
            yield path, line, str(result.get("ruleId", "said")), level, str(result["message"].get("text", ""))
