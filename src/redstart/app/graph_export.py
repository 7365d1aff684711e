"""Export a graph to files that other programs read. Names are data: no name can end the literal that contains it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from xml.sax.saxutils import escape

from redstart.core.errors import ConfigError
from redstart.core.graph import Graph, GraphLink, NodeKind

EXPORT_VERSION = 1
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTES = "\\'\""
_ESCAPED_CHARACTERS = re.compile("[\\\\'\"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class GraphFormat(StrEnum):
    json = "json"
    graphml = "graphml"
    cypher = "cypher"


def render_graph(graph: Graph, form: GraphFormat) -> Iterator[str]:
    """Yield the lines of the file."""
    return _WRITERS[form](graph)


def write_graph(graph: Graph, form: GraphFormat, to: Path) -> None:
    """Write the graph to a file. Raises `ConfigError` if the file cannot be written."""
    try:
        with to.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in render_graph(graph, form))
    except OSError as error:
        raise ConfigError(f"{to} cannot be written: {error.strerror}") from error


def _as_json(graph: Graph) -> Iterator[str]:
    nodes = [{"key": node.key, "label": node.kind.value, "name": node.name, "repo": node.repo} for node in graph.nodes]
    links = [
        {
            "kind": link.kind.value,
            "source": link.source,
            "target": link.target,
            "repo": link.repo,
            "created": link.moment,
        }
        for link in graph.links
    ]
    document = {"v": EXPORT_VERSION, "tenant": graph.tenant, "nodes": nodes, "edges": links}
    yield json.dumps(document, indent=1)


def _as_graphml(graph: Graph) -> Iterator[str]:
    """Yield GraphML. Characters that XML cannot hold are spelled out, as `\\x01`: two names may then look the same,
    but remain two nodes."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for element, names in (("node", ("key", "label", "name", "repo", "tenant")), ("edge", ("kind", "in", "created"))):
        for name in names:
            yield f'  <key id="{element}_{name}" for="{element}" attr.name="{name}" attr.type="string"/>'
    yield '  <graph id="memory" edgedefault="directed">'
    numbers = {node.key: number for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        attributes = {
            "key": node.key,
            "label": node.kind.value,
            "name": node.name,
            "repo": node.repo,
            "tenant": graph.tenant,
        }
        yield f'    <node id="n{numbers[node.key]}">{_format_data("node", attributes)}</node>'
    for number, link in enumerate(graph.links):
        ends = f'source="n{numbers[link.source]}" target="n{numbers[link.target]}"'
        attributes = {"kind": link.kind.value, "in": link.repo, "created": link.moment}
        yield f'    <edge id="e{number}" {ends}>{_format_data("edge", attributes)}</edge>'
    yield "  </graph>"
    yield "</graphml>"


def _format_data(element: str, attributes: dict[str, str]) -> str:
    return "".join(f'<data key="{element}_{name}">{_escape_xml(value)}</data>' for name, value in attributes.items())


def _escape_xml(text: str) -> str:
    escaped = _NOT_IN_XML.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)
    # A reader may normalize line breaks that are not escaped.
    return escape(escaped, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def _as_cypher(graph: Graph) -> Iterator[str]:
    """Yield one statement per line. Each statement can run again."""
    for kind in NodeKind:
        yield f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{kind.value}) REQUIRE n.key IS UNIQUE;"
    kinds = {node.key: node.kind for node in graph.nodes}
    for node in graph.nodes:
        properties = {"tenant": graph.tenant, "name": node.name, "repo": node.repo}
        yield f"MERGE (n:{node.kind.value} {{key: {quote_literal(node.key)}}}) SET {_set('n', properties)};"
    for link in graph.links:
        yield _format_cypher_link(link, kinds)


def _format_cypher_link(link: GraphLink, kinds: dict[str, NodeKind]) -> str:
    source = f"(a:{kinds[link.source].value} {{key: {quote_literal(link.source)}}})"
    target = f"(b:{kinds[link.target].value} {{key: {quote_literal(link.target)}}})"
    properties = {"repo": link.repo, "created": link.moment}
    return f"MATCH {source} MATCH {target} MERGE (a)-[r:{link.kind.value.upper()}]->(b) SET {_set('r', properties)};"


def _set(name: str, properties: dict[str, str]) -> str:
    return ", ".join(f"{name}.{message} = {quote_literal(value)}" for message, value in properties.items())


def quote_literal(text: str) -> str:
    """Quote a text as a Cypher literal in one line.

    Some readers look for `\\u` before they look for the end of a literal, so a backslash before a `u` gets a literal of
    its own.
    """
    return f"'{_ESCAPED_CHARACTERS.sub(_escape_char, text)}'"


def _escape_char(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\\" and match.string.startswith("u", match.end()):
        return "\\\\' + '"
    return f"\\{char}" if char in _QUOTES else f"\\u{ord(char):04X}"


_WRITERS: dict[GraphFormat, Callable[[Graph], Iterator[str]]] = {
    GraphFormat.json: _as_json,
    GraphFormat.graphml: _as_graphml,
    GraphFormat.cypher: _as_cypher,
}
