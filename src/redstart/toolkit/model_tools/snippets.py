"""Run a snippet that a model asks for in a tool call."""

from __future__ import annotations

from redstart.core.change import Probe, Snapshot
from redstart.core.run import RunSpec
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.model_tools import probes
from redstart.toolkit.model_tools.toolset import ToolResult, refuse


async def run_snippet(spec: RunSpec, ports: Ports, snapshot: Snapshot, snippet: str) -> ToolResult:
    """Run the snippet on a fresh copy of `snapshot` and describe what it printed. Raises what the sandbox raises."""
    if not snippet.strip() or len(snippet) > probes.LONGEST or "\0" in snippet:
        return refuse(f"give a snippet of at most {probes.LONGEST} characters")
    ports.announce("a snippet of the model")
    environment = Environment.model_validate_json(ports.blobs.get(spec.suite.environment))
    paths = ports.trees.list_files(snapshot)
    probe = Probe(snippet=snippet)
    execution = probes.build_execution(probe, snapshot, environment, spec.suite, paths)
    completed = await ports.sandbox.run(execution)
    return ToolResult("snippet run", probes.describe_output(completed))
