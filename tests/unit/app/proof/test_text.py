"""A proof as shown: no text of a repo leaves its place or looks like one of our lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.app.proof.evidence import render_schema
from redstart.app.proof.schema import (
    AttemptRecord,
    CaseLine,
    ChangedFile,
    CheckMark,
    CheckName,
    ModelUse,
    Proof,
    ProofCheck,
)
from redstart.app.proof.text import MAX_LISTED, RESULTS, TITLES, as_json, as_markdown, as_text
from redstart.core.safe_text import escape_line
from support.proofs import PLAIN, extract_frame, parse_structure, proof_with

SCHEMA = Path(__file__).parents[4] / "docs" / "reference" / "proof.schema.json"
BODY_LIMIT = 65_536
"""The longest body of a pull request."""


NASTY = {
    "fence": "```\n\n# Verified\n\n```",
    "long fence": "``````````````\n**forged**",
    "tilde": "~~~\nforged",
    "pipes": "a | yes | b |\n| c | yes |",
    "html": "</code></pre><script>alert(1)</script><!-- ",
    "details": "<details><summary>forged</summary>",
    "entity": "&lt;b&gt; &#96;&#96;&#96;",
    "link": "[click](https://example.org) ![x](https://example.org/x.png) @someone #1",
    "heading": "\n\n### What was checked\n\n| a | b |\n|---|---|\n| c | d |",
    "indented": "\n    They fail again without the patch  yes",
    "carriage return": "a\rVerified: everything",
    "line separator": "a\u2028Verified\u2029everything\x85x\x0bx\x0cx",
    "bidi": "a\u202etxt.exe\u2066x\u2069\u200b\u200e\ufeff",
    "terminal": "\x1b[2J\x1b[31mred\x07\x9b0m",
    "nul": "a\x00b",
    "backslash": "a\\`b\\|c",
    "empty": "",
    "blanks": "   ",
    "list": "- a\n1. b\n> c\n---",
    "surrogate": "a\udcffb",
    "emphasis": "**a** __b__ ~~c~~ <b@c.d>",
}


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_markdown_structure_survives_any_repo_text(text, verified):
    expected = parse_structure(as_markdown(proof_with(PLAIN, verified=verified)))
    assert parse_structure(as_markdown(proof_with(text, verified=verified))) == expected
    assert ("fence", "", "") in expected
    assert not [
        kind for kind, inside, _ in expected if "html" in kind + inside or "link" in inside or "image" in inside
    ]


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_text_structure_survives_any_repo_text(text):
    rendered = as_text(proof_with(text, verified=False))
    assert extract_frame(rendered) == extract_frame(as_text(proof_with(PLAIN, verified=False)))
    assert all(character.isprintable() or character in "\n\t" for character in rendered)


def test_check_with_markup_stays_in_its_cell():
    hostile = ProofCheck(name=CheckName.targets, mark=CheckMark.failed, said="a | **b** `c`\n| d <i> [e](f)")
    proof = proof_with(PLAIN)
    rendered = as_markdown(proof.model_copy(update={"checks": (hostile, *proof.checks[1:]), "sentence": "**`|\n# x"}))
    kinds = [kind for kind, _, _ in parse_structure(rendered)]
    assert kinds == [kind for kind, _, _ in parse_structure(as_markdown(proof))]
    assert "&#124;" in rendered
    assert "<i>" not in rendered


def test_invisible_characters_are_escaped():
    assert escape_line("a\u202eb\nc\x1b\x00\u200b\tü\U0001f600") == "a\\u202eb\\nc\\x1b\\x00\\u200b\tü\U0001f600"
    assert escape_line("x" * 1000).startswith("x" * 300 + " [… 700 more")


def test_verdict_is_the_first_line_and_every_check_has_a_row():
    proof = proof_with(PLAIN)
    assert as_text(proof).splitlines()[0] == proof.sentence
    assert as_markdown(proof).splitlines()[0] == f"**{proof.sentence}**"
    for title in TITLES.values():
        assert f"| {title} | yes | 1 of 1 |" in as_markdown(proof)
        assert title in as_text(proof)
    assert set(TITLES) == set(CheckName)
    assert set(RESULTS) == set(CheckMark)


def test_journal_is_named_with_the_command_that_checks_it():
    for rendered in (as_text(proof_with(PLAIN)), as_markdown(proof_with(PLAIN))):
        assert f"journal: 2 records, SHA-256 {'c' * 64}" in rendered
        assert "redstart runs replay run-1 " in rendered


def test_long_list_shows_the_first_entries_and_counts_the_rest():
    cases = tuple(CaseLine(id=f"t{number:04}", target=True, before="error", after="passed") for number in range(1000))
    rendered = as_text(proof_with(PLAIN, cases=cases))
    assert "Target tests (1,000 of 1,000 pass)" in rendered
    assert f"error -> passed  t{MAX_LISTED - 1:04}\n    ... and 980 more" in rendered
    assert f"t{MAX_LISTED:04}" not in rendered


@pytest.mark.slow
@pytest.mark.parametrize("filler", ["x", "`", "\u202e", "ü", "| "])
def test_proof_of_any_size_fits_into_a_pull_request(filler):
    long = filler * 5_000
    cases = [CaseLine(id=long, target=number % 2 == 0, before="failed", after="passed") for number in range(100)]
    fields = {
        "cases": tuple(cases),
        "attempts": tuple(AttemptRecord(number=number, outcome=long, edits=()) for number in range(1, 200)),
        "models": (ModelUse(name=long, calls=1, input_tokens=1, output_tokens=1),) * 50,
        "files": (ChangedFile(path=long, protected=long),) * 50,
        **dict.fromkeys(("flaky", "written", "lacking"), (long,) * 50),
    }
    diff = f"+{long}\n" * 40 + "+x\n" * 50_000
    assert len(as_markdown(proof_with(PLAIN, diff=diff))) > 30_000
    rendered = as_markdown(proof_with(long, verified=False, diff=diff, **fields))
    assert len(rendered) < BODY_LIMIT
    assert "more lines: redstart show run-1" in rendered
    assert not [
        kind for kind, inside, _ in parse_structure(rendered) if "html" in kind + inside or kind == "code_block"
    ]


def test_small_patch_is_shown_in_full():
    diff = "diff --git a/x b/x\n" + "".join(f"+line {number}\n" for number in range(500))
    rendered = as_markdown(proof_with(PLAIN, diff=diff))
    assert f"```diff\n{diff}```" in rendered


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_json_is_ascii_and_preserves_all_text(text):
    rendered = as_json(proof_with(text))
    assert rendered.isascii()
    data = json.loads(rendered)
    assert (data["v"], data["repo"], data["cases"][0]["id"]) == (1, text, text)


def test_published_schema_matches_the_model():
    command = "python -c 'from redstart.app.proof.evidence import render_schema; print(render_schema(), end=\"\")'"
    assert SCHEMA.read_text() == render_schema(), f"write the output of this command to {SCHEMA.name}: {command}"


def test_printed_json_matches_the_schema():
    proof = proof_with(PLAIN)
    assert Proof.model_validate_json(as_json(proof)) == proof
    assert '"v": 1,' in as_json(proof)


def test_schema_names_every_field_and_allows_new_ones():
    published = json.loads(SCHEMA.read_text())
    data = json.loads(as_json(proof_with(PLAIN)))
    assert set(published["required"]) == set(data) == set(published["properties"])
    assert published["properties"]["v"]["const"] == 1
    assert "additionalProperties" not in SCHEMA.read_text()
