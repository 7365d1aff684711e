"""A graph in the formats that other programs read, with hostile names."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

from redstart.app.graph_export import GraphFormat, exported, quoted
from redstart.core.graph import ENDS, Graph, KeptEdge, NodeKind, graph_of
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


def graph(names: list[str], tenant: str = "home") -> Graph:
    ties = [KeptEdge(EdgeKind.iteration, "run-1", "run-1/1", "shop", 0.5)]
    ties += [KeptEdge(kind, "run-1/1", name, "sh/op", 1.0) for name in names for kind in (EdgeKind.changed_file,)]
    return graph_of(tenant, [*ties, KeptEdge(EdgeKind.retrieved_file, "run-1/1", names[0], "bank", 2.0)])


def test_a_file_of_one_repo_is_not_that_of_another() -> None:
    drawn = graph(["app.py"])
    assert [node.key for node in drawn.nodes] == [
        "home/Run//run-1",
        "home/Iteration//run-1/1",
        "home/File/sh%2Fop/app.py",
        "home/File/bank/app.py",
    ]
    assert not {node.key for node in drawn.nodes} & {node.key for node in graph(["app.py"], "other").nodes}
    assert set(ENDS) == set(EdgeKind)


def test_json_holds_every_name_as_it_is() -> None:
    (text,) = exported(graph([*HOSTILE, *UNSPEAKABLE]), GraphFormat.json)
    found = json.loads(text)
    assert [item["name"] for item in found["nodes"][2:-1]] == [*HOSTILE, *UNSPEAKABLE]
    assert found["edges"][0] == {
        "kind": "iteration",
        "source": "home/Run//run-1",
        "target": "home/Iteration//run-1/1",
        "repo": "shop",
        "created": "1970-01-01T00:00:00+00:00",
    }


def test_graphml_is_xml_with_every_name_in_its_place() -> None:
    names = [*HOSTILE, *UNSPEAKABLE]
    drawn = graph(names)
    tree = ElementTree.fromstring("\n".join(exported(drawn, GraphFormat.graphml)))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    declared = {item.get("id"): item.get("attr.name") for item in tree.findall("g:key", space)}
    nodes = tree.findall("g:graph/g:node", space)
    told = [{declared[data.get("key")]: data.text or "" for data in node.findall("g:data", space)} for node in nodes]
    assert [message["name"] for message in told[2 : 2 + len(HOSTILE)]] == HOSTILE
    assert [message["name"] for message in told[2 + len(HOSTILE) : -1]] == [
        "\\\\x01",
        "\\x1b[31m",
        "\x7f\x85",
        "\\ufffe",
    ]
    assert [message["label"] for message in told] == [node.kind.value for node in drawn.nodes]
    ids = [node.get("id") for node in nodes]
    assert len(set(ids)) == len(drawn.nodes)
    edges = tree.findall("g:graph/g:edge", space)
    assert len(edges) == len(drawn.links)
    assert {end for edge in edges for end in (edge.get("source"), edge.get("target"))} <= set(ids)


def unquoted(literals: str) -> str:
    """Return the text that Cypher reads from literals joined by `+`, with nothing else between."""
    parts = LITERAL.findall(literals)
    assert literals == " + ".join(f"'{part}'" for part in parts)
    return "".join(ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], part) for part in parts)


def test_a_name_stays_in_its_literal() -> None:
    for name in [*HOSTILE, *UNSPEAKABLE, "\\u", "\\\\u0027", "\\u005C' or"]:
        literal = quoted(name)
        assert unquoted(literal) == name
        assert literal.isprintable() or name in UNSPEAKABLE[-1:]
        assert "\\\\u" not in re.sub(r"\\\\\\u[0-9A-F]{4}", "", literal), "also for a reader that looks for \\u first"


def test_every_statement_is_one_line_and_may_be_run_again() -> None:
    drawn = graph([*HOSTILE, *UNSPEAKABLE])
    lines = list(exported(drawn, GraphFormat.cypher))
    assert len(lines) == len(NodeKind) + len(drawn.nodes) + len(drawn.links)
    assert all(len(line.splitlines()) == 1 and line.endswith(";") for line in lines)
    bare = [LITERAL.sub("''", line) for line in lines]
    assert {line.split()[0] for line in bare} == {"CREATE", "MERGE", "MATCH"}
    assert not [line for line in bare if "DELETE" in line or ";" in line[:-1]]
    assert all("IF NOT EXISTS" in line for line in bare if line.startswith("CREATE"))
