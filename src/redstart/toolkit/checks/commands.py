"""The user's own tools, each run in the sandbox on a whole snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.finding import Finding
from redstart.core.shell import Environment, Execution, SandboxLimits
from redstart.ports.sandbox.port import Sandbox
from redstart.toolkit.checks.tool_output import parse_tool_output

MAX_OUTPUT_CHARACTERS = 300
"""Characters shown of the output of a tool that failed and named no line."""


class ToolFindings(NamedTuple):
    findings: list[Finding]
    unparsed_outputs: dict[str, str]
    """By name: the last output of tools that failed without naming a line."""


class ToolContext(NamedTuple):
    """Where the tools run, and the files that they may report on."""

    snapshot: Snapshot
    environment: Environment
    limits: SandboxLimits
    files: Mapping[str, bytes]


async def ask_commands(sandbox: Sandbox, commands: Mapping[str, tuple[str, ...]], place: ToolContext) -> ToolFindings:
    """Return what each command prints as findings of its name; empty commands are skipped.

    Raises what the sandbox raises.
    """
    report = ToolFindings([], {})
    for name, command in sorted(commands.items()):
        if not command:
            continue
        execution = Execution(argv=command, snapshot=place.snapshot, environment=place.environment, limits=place.limits)
        completed = await sandbox.run(execution)
        findings = parse_tool_output(name, completed.output, place.files)
        report.findings.extend(findings)
        if completed.exit_code and not findings:
            report.unparsed_outputs[name] = completed.output[-MAX_OUTPUT_CHARACTERS:]
    return report
