"""A graph in the formats that other programs read, with hostile names."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

from redstart.app.graph_export import GraphFormat, quote_literal, render_graph
from redstart.core.graph import ENDS, Graph, KeptEdge, NodeKind, build_graph
from redstart.core.learning import EdgeKind

HOSTILE = [
    "it's.py",
    'say "no".py',
    "C:\\users\\u0027) DETACH DELETE n //",
    "'; MATCH (n) DETACH DELETE n; //",
    "two\nlines\r\n\tand a tab",
    "\\",
    "\\\\'",
    "`back`",
    "]]></data><node id='n0'/>&amp;",
    "Ω „x“ \U0001f426 \u2028",
    "$rows {key: 1}",
]
UNSPEAKABLE = ["\\\x01", "\x1b[31m", "\x7f\x85", "\ufffe"]
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'")
ESCAPE = re.compile(r"\\u([0-9A-F]{4})|\\(.)")


def build_sample_graph(names: list[str], tenant: str = "home") -> Graph:
    edges = [KeptEdge(EdgeKind.iteration, "run-1", "run-1/1", "shop", 0.5)]
    edges += [KeptEdge(kind, "run-1/1", name, "sh/op", 1.0) for name in names for kind in (EdgeKind.changed_file,)]
    return build_graph(tenant, [*edges, KeptEdge(EdgeKind.retrieved_file, "run-1/1", names[0], "bank", 2.0)])


def test_files_of_different_repos_have_different_keys() -> None:
    built_graph = build_sample_graph(["app.py"])
    assert [node.key for node in built_graph.nodes] == [
        "home/Run//run-1",
        "home/Iteration//run-1/1",
        "home/File/sh%2Fop/app.py",
        "home/File/bank/app.py",
    ]
    assert not {node.key for node in built_graph.nodes} & {
        node.key for node in build_sample_graph(["app.py"], "other").nodes
    }
    assert set(ENDS) == set(EdgeKind)


def test_json_preserves_every_name() -> None:
    (text,) = render_graph(build_sample_graph([*HOSTILE, *UNSPEAKABLE]), GraphFormat.json)
    document = json.loads(text)
    assert [item["name"] for item in document["nodes"][2:-1]] == [*HOSTILE, *UNSPEAKABLE]
    assert document["edges"][0] == {
        "kind": "iteration",
        "source": "home/Run//run-1",
        "target": "home/Iteration//run-1/1",
        "repo": "shop",
        "created": "1970-01-01T00:00:00+00:00",
    }


def test_graphml_is_valid_xml_with_every_name_in_its_place() -> None:
    names = [*HOSTILE, *UNSPEAKABLE]
    built_graph = build_sample_graph(names)
    tree = ElementTree.fromstring("\n".join(render_graph(built_graph, GraphFormat.graphml)))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    attribute_names = {item.get("id"): item.get("attr.name") for item in tree.findall("g:key", space)}
    nodes = tree.findall("g:graph/g:node", space)
    node_attributes = [
        {attribute_names[data.get("key")]: data.text or "" for data in node.findall("g:data", space)} for node in nodes
    ]
    assert [message["name"] for message in node_attributes[2 : 2 + len(HOSTILE)]] == HOSTILE
    assert [message["name"] for message in node_attributes[2 + len(HOSTILE) : -1]] == [
        "\\\\x01",
        "\\x1b[31m",
        "\x7f\x85",
        "\\ufffe",
    ]
    assert [message["label"] for message in node_attributes] == [node.kind.value for node in built_graph.nodes]
    ids = [node.get("id") for node in nodes]
    assert len(set(ids)) == len(built_graph.nodes)
    edges = tree.findall("g:graph/g:edge", space)
    assert len(edges) == len(built_graph.links)
    assert {end for edge in edges for end in (edge.get("source"), edge.get("target"))} <= set(ids)


def unquote(literals: str) -> str:
    """Return the text that Cypher reads from literals joined by `+`, with nothing else between."""
    parts = LITERAL.findall(literals)
    assert literals == " + ".join(f"'{part}'" for part in parts)
    return "".join(ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], part) for part in parts)


def test_name_stays_inside_its_literal() -> None:
    for name in [*HOSTILE, *UNSPEAKABLE, "\\u", "\\\\u0027", "\\u005C' or"]:
        literal = quote_literal(name)
        assert unquote(literal) == name
        assert literal.isprintable() or name in UNSPEAKABLE[-1:]
        assert "\\\\u" not in re.sub(r"\\\\\\u[0-9A-F]{4}", "", literal), "also for a reader that looks for \\u first"


def test_every_statement_is_one_line_and_can_be_rerun() -> None:
    built_graph = build_sample_graph([*HOSTILE, *UNSPEAKABLE])
    lines = list(render_graph(built_graph, GraphFormat.cypher))
    assert len(lines) == len(NodeKind) + len(built_graph.nodes) + len(built_graph.links)
    assert all(len(line.splitlines()) == 1 and line.endswith(";") for line in lines)
    masked_lines = [LITERAL.sub("''", line) for line in lines]
    assert {line.split()[0] for line in masked_lines} == {"CREATE", "MERGE", "MATCH"}
    assert not [line for line in masked_lines if "DELETE" in line or ";" in line[:-1]]
    assert all("IF NOT EXISTS" in line for line in masked_lines if line.startswith("CREATE"))
