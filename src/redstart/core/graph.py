"""The memory graph: named nodes and the edges between them, read from the state of runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote

from redstart.core.frozen import FrozenValue
from redstart.core.learning import EdgeKind, MemoryEdge, NewMemories
from redstart.core.run import RunState, Step


class NodeKind(StrEnum):
    """The label of a node, as graph databases write it."""

    run = "Run"
    iteration = "Iteration"
    step = "Step"
    file = "File"
    signature = "Signature"
    bug_type = "BugType"
    fix_card = "FixCard"


ENDS: dict[EdgeKind, tuple[NodeKind, NodeKind]] = {
    EdgeKind.iteration: (NodeKind.run, NodeKind.iteration),
    EdgeKind.step: (NodeKind.iteration, NodeKind.step),
    EdgeKind.retrieved_file: (NodeKind.iteration, NodeKind.file),
    EdgeKind.changed_file: (NodeKind.iteration, NodeKind.file),
    EdgeKind.failure_signature: (NodeKind.iteration, NodeKind.signature),
    EdgeKind.bug_type: (NodeKind.iteration, NodeKind.bug_type),
    EdgeKind.has_fix_card: (NodeKind.iteration, NodeKind.fix_card),
}
"""The kinds of nodes that an edge leads from and to."""


class KeptEdge(NamedTuple):
    """An edge as it is stored; `created` is in seconds since the epoch."""

    kind: EdgeKind
    source: str
    target: str
    repo: str
    created: float


class GraphNode(NamedTuple):
    key: str
    """Unique across all tenants: `TENANT/LABEL/REPO/NAME`, the repo quoted as in a URL."""
    kind: NodeKind
    name: str
    repo: str
    """The repo of a file; empty for nodes whose name does not depend on the repo."""


class GraphLink(NamedTuple):
    kind: EdgeKind
    source: str
    """The key of a node, as `target` is."""
    target: str
    repo: str
    created: float

    @property
    def moment(self) -> str:
        """The creation time in ISO 8601 format."""
        return datetime.fromtimestamp(self.created, UTC).isoformat(timespec="seconds")


class Graph(NamedTuple):
    tenant: str
    nodes: tuple[GraphNode, ...]
    """Nodes in the order of first occurrence, as are the links."""
    links: tuple[GraphLink, ...]


class MirrorCounts(NamedTuple):
    """The contents of a copy of the graph after an update."""

    nodes: int
    edges: int
    removed: int
    """Cards that were deleted since the last update."""


def build_graph(tenant: str, edges: Iterable[KeptEdge]) -> Graph:
    """Build the graph with each node once. Files of the same name in different repos are different nodes."""
    nodes: dict[str, GraphNode] = {}
    links: list[GraphLink] = []

    def add_node(kind: NodeKind, name: str, repo: str) -> str:
        node_repo = repo if kind is NodeKind.file else ""
        key = "/".join((tenant, kind.value, quote(node_repo, safe=""), name))
        nodes.setdefault(key, GraphNode(key, kind, name, node_repo))
        return key

    for edge in edges:
        source_kind, ends = ENDS[edge.kind]
        source, target = add_node(source_kind, edge.source, edge.repo), add_node(ends, edge.target, edge.repo)
        links.append(GraphLink(edge.kind, source, target, edge.repo, edge.created))
    return Graph(tenant, tuple(nodes.values()), tuple(links))


class FailingFile(FrozenValue):
    """A file that failed attempts were shown or changed."""

    repo: str
    path: str
    attempts: int
    runs: int


class KnownFix(FrozenValue):
    """A card left by an attempt that started from the requested signature."""

    card: str
    state: str
    signature: str
    repo: str
    run: str
    created: float
    summary: str
    files: tuple[str, ...]


class TypeInMonth(FrozenValue):
    """The number of runs in which a type of exception occurred, per month."""

    repo: str
    month: str
    """Such as `2030-01`, in UTC."""
    type: str
    runs: int


def list_edges(run: RunState, memories: NewMemories) -> tuple[MemoryEdge, ...]:
    """List the edges of the current attempt, each once. `run` is the state before the step that left the memories."""
    attempt = run.now
    iteration = f"{run.run_id}/{attempt.number}"
    edges = [MemoryEdge(kind=EdgeKind.iteration, source=run.run_id, target=iteration)]

    def add_edges(kind: EdgeKind, targets: Iterable[str]) -> None:
        edges.extend(
            MemoryEdge(kind=kind, source=iteration, target=target) for target in dict.fromkeys(targets) if target
        )

    steps = [step.value for step in Step if getattr(attempt, step.value) is not None]
    add_edges(EdgeKind.step, [*steps, Step.remember.value])
    add_edges(EdgeKind.retrieved_file, [chunk.path for chunk in attempt.retrieve.chunks] if attempt.retrieve else [])
    add_edges(EdgeKind.changed_file, attempt.patch.files if attempt.patch else ())
    signature = attempt.reproduce.report.signature if attempt.reproduce else None
    add_edges(EdgeKind.failure_signature, [signature.key] if signature else [])
    add_edges(EdgeKind.bug_type, [signature.exception] if signature else [])
    add_edges(EdgeKind.has_fix_card, [memories.card.id] if memories.card else [])
    return tuple(edges)
