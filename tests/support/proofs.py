"""A proof that holds one text wherever a value may come from outside, and what shows of it."""

from __future__ import annotations

from markdown_it import MarkdownIt

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
from redstart.core.run import Level, Mode, Result


def proof_with(text: str, *, verified: bool = True, diff: str | None = None, **changes: object) -> Proof:
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
    ).model_copy(update=changes)


def parse_structure(markdown: str) -> list[tuple[str, str, str]]:
    """Return the tokens of a Markdown parser, without the content of code blocks."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)
    flattened: list[tuple[str, str, str]] = []
    for token in tokens:
        inside = ",".join(child.type for child in token.children or ())
        flattened.append((token.type, inside, "" if token.type == "fence" else token.content))
    return flattened


def extract_frame(text: str) -> list[str]:
    """Return the lines of a text that are ours alone: all that are not indented."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("    ")]


PLAIN = "tests/test_a.py::test_b"
