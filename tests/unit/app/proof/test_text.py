"""A proof as shown: no text of a repo leaves its place or looks like one of our lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from redstart.app.proof.evidence import schema
from redstart.app.proof.schema import (
    AttemptRecord,
    CaseLine,
    ChangedFile,
    CheckMark,
    CheckName,
    Cost,
    FindingSummary,
    JournalMark,
    LineCounts,
    ModelUse,
    OutcomeTally,
    Proof,
    ProofCheck,
    Rerun,
    ShrinkSummary,
)
from redstart.app.proof.text import RESULTS, SHOWN, TITLES, as_json, as_markdown, as_text
from redstart.core.run import Level, Mode, Result
from redstart.core.visible import visible_line

SCHEMA = Path(__file__).parents[4] / "docs" / "reference" / "proof.schema.json"
BODY_LIMIT = 65_536
"""The longest body of a pull request."""


def proof_with(text: str, *, verified: bool = True, diff: str | None = None, **over: object) -> Proof:
    """Make a proof with `text` wherever a value may come from a repo, a model or a person."""
    return Proof(
        run="run-1",
        parent=text,
        repo=text,
        mode=Mode.fix,
        runner="pytest",
        level=Level.standard,
        result=Result.verified if verified else Result.refused,
        verified=verified,
        by_person=False,
        sentence="Verified: 1 test that failed without this patch passes with it; no other test got worse.",
        reason=text,
        checks=tuple(ProofCheck(name=name, mark=CheckMark.passed, said="1 of 1") for name in CheckName),
        lacking=() if verified else (text,),
        before=OutcomeTally(passed=1, failed=1, errors=0, skipped=0),
        after=OutcomeTally(passed=2, failed=0, errors=0, skipped=0),
        cases=(
            CaseLine(id=text, target=True, before="failed", after="passed"),
            CaseLine(id=text, target=False, before="skipped", after="passed"),
        ),
        repeats_before=(),
        repeats_after=(Rerun(patched=True, varied="order", green=1, red=0),),
        suite_runs=6,
        flaky=(text,),
        written=(text,),
        tree_before="a" * 40,
        tree_after="b" * 40,
        files=(ChangedFile(path=text, protected=""), ChangedFile(path=text, protected="it is a test")),
        findings=FindingSummary(before=0, new=0, blocking=0, tripwires=0),
        shrunk=ShrinkSummary(
            done=False, hunks_dropped=0, proposed=LineCounts(added=1, removed=1), kept=LineCounts(added=1, removed=1)
        ),
        diff=f"diff --git a/x b/x\n@@ -1 +1 @@\n+{text}\n" if diff is None else diff,
        attempts=(AttemptRecord(number=1, outcome=text, edits=()),),
        models=(ModelUse(name=text, calls=1, input_tokens=1, output_tokens=1),),
        cost=Cost(calls=1, input_tokens=1, output_tokens=1, usd=0.0, unpriced=1, seconds=1.0),
        journal=JournalMark(records=2, sha256="c" * 64),
    ).model_copy(update=over)


def structure(markdown: str) -> list[tuple[str, str, str]]:
    """Return the tokens of a Markdown parser, without the content of code blocks."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    found: list[tuple[str, str, str]] = []
    for token in tokens:
        inside = ",".join(child.type for child in token.children or ())
        found.append((token.type, inside, "" if token.type == "fence" else token.content))
    return found


def frame(text: str) -> list[str]:
    """Return the lines of a text that are ours alone: all that are not indented."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("    ")]


PLAIN = "tests/test_a.py::test_b"
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
def test_markdown_keeps_its_form_whatever_the_repo_holds(text, verified):
    expected = structure(as_markdown(proof_with(PLAIN, verified=verified)))
    assert structure(as_markdown(proof_with(text, verified=verified))) == expected
    assert ("fence", "", "") in expected
    assert not [
        kind for kind, inside, _ in expected if "html" in kind + inside or "link" in inside or "image" in inside
    ]


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_text_keeps_its_form_whatever_the_repo_holds(text):
    shown = as_text(proof_with(text, verified=False))
    assert frame(shown) == frame(as_text(proof_with(PLAIN, verified=False)))
    assert all(letter.isprintable() or letter in "\n\t" for letter in shown)


@pytest.mark.slow
@given(text=st.text(max_size=60), diff=st.text(max_size=200))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_at_all_breaks_the_form(text, diff):
    plain, hostile = proof_with(PLAIN, diff="x"), proof_with(text, diff=f"+{diff}")
    assert structure(as_markdown(hostile)) == structure(as_markdown(plain))
    assert frame(as_text(hostile)) == frame(as_text(plain))


@pytest.mark.slow
@given(text=st.text(alphabet="`~|<>\n\r #*-_[]()!\\&;: \u2028\u202ea", max_size=40))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_no_mix_of_markup_breaks_the_form(text):
    assert structure(as_markdown(proof_with(text))) == structure(as_markdown(proof_with(PLAIN)))


def test_a_check_in_markup_stays_in_its_cell():
    hostile = ProofCheck(name=CheckName.targets, mark=CheckMark.failed, said="a | **b** `c`\n| d <i> [e](f)")
    proof = proof_with(PLAIN)
    shown = as_markdown(proof.model_copy(update={"checks": (hostile, *proof.checks[1:]), "sentence": "**`|\n# x"}))
    kinds = [kind for kind, _, _ in structure(shown)]
    assert kinds == [kind for kind, _, _ in structure(as_markdown(proof))]
    assert "&#124;" in shown
    assert "<i>" not in shown


def test_what_cannot_be_seen_is_spelled_out():
    assert visible_line("a\u202eb\nc\x1b\x00\u200b\tü\U0001f600") == "a\\u202eb\\nc\\x1b\\x00\\u200b\tü\U0001f600"
    assert visible_line("x" * 1000).startswith("x" * 300 + " [… 700 more")


def test_the_verdict_is_the_first_line_and_every_check_has_a_row():
    proof = proof_with(PLAIN)
    assert as_text(proof).splitlines()[0] == proof.sentence
    assert as_markdown(proof).splitlines()[0] == f"**{proof.sentence}**"
    for title in TITLES.values():
        assert f"| {title} | yes | 1 of 1 |" in as_markdown(proof)
        assert title in as_text(proof)
    assert set(TITLES) == set(CheckName)
    assert set(RESULTS) == set(CheckMark)


def test_the_journal_and_how_to_check_it_are_named():
    for shown in (as_text(proof_with(PLAIN)), as_markdown(proof_with(PLAIN))):
        assert f"journal: 2 records, SHA-256 {'c' * 64}" in shown
        assert "redstart runs replay run-1 " in shown


def test_a_long_list_names_the_first_and_counts_the_rest():
    cases = tuple(CaseLine(id=f"t{number:04}", target=True, before="error", after="passed") for number in range(1000))
    shown = as_text(proof_with(PLAIN, cases=cases))
    assert "Target tests (1,000 of 1,000 pass)" in shown
    assert f"error -> passed  t{SHOWN - 1:04}\n    ... and 980 more" in shown
    assert f"t{SHOWN:04}" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("filler", ["x", "`", "\u202e", "ü", "| "])
def test_however_large_the_patch_it_fits_into_a_pull_request(filler):
    long = filler * 5_000
    cases = [CaseLine(id=long, target=number % 2 == 0, before="failed", after="passed") for number in range(100)]
    every = {
        "cases": tuple(cases),
        "attempts": tuple(AttemptRecord(number=number, outcome=long, edits=()) for number in range(1, 200)),
        "models": (ModelUse(name=long, calls=1, input_tokens=1, output_tokens=1),) * 50,
        "files": (ChangedFile(path=long, protected=long),) * 50,
        **dict.fromkeys(("flaky", "written", "lacking"), (long,) * 50),
    }
    diff = f"+{long}\n" * 40 + "+x\n" * 50_000
    assert len(as_markdown(proof_with(PLAIN, diff=diff))) > 30_000
    shown = as_markdown(proof_with(long, verified=False, diff=diff, **every))
    assert len(shown) < BODY_LIMIT
    assert "more lines: redstart show run-1" in shown
    assert not [kind for kind, inside, _ in structure(shown) if "html" in kind + inside or kind == "code_block"]


def test_all_of_a_small_patch_is_shown():
    diff = "diff --git a/x b/x\n" + "".join(f"+line {number}\n" for number in range(500))
    shown = as_markdown(proof_with(PLAIN, diff=diff))
    assert f"```diff\n{diff}```" in shown


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_json_is_ascii_and_holds_everything_as_it_was(text):
    shown = as_json(proof_with(text))
    assert shown.isascii()
    held = json.loads(shown)
    assert (held["v"], held["repo"], held["cases"][0]["id"]) == (1, text, text)


def test_the_published_schema_is_that_of_the_noun():
    anew = "python -c 'from redstart.app.proof.evidence import schema; print(schema(), end=\"\")'"
    assert SCHEMA.read_text() == schema(), f"write the output of this command to {SCHEMA.name}: {anew}"


def test_what_is_printed_as_json_is_what_the_schema_describes():
    proof = proof_with(PLAIN)
    assert Proof.model_validate_json(as_json(proof)) == proof
    assert '"v": 1,' in as_json(proof)


def test_the_schema_names_every_field_and_forbids_no_new_one():
    published = json.loads(SCHEMA.read_text())
    held = json.loads(as_json(proof_with(PLAIN)))
    assert set(published["required"]) == set(held) == set(published["properties"])
    assert published["properties"]["v"]["const"] == 1
    assert "additionalProperties" not in SCHEMA.read_text()
