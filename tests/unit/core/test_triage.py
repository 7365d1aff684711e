"""The published form of a triage, and its exit codes."""

from __future__ import annotations

from pathlib import Path

from redstart.app.exit_codes import triage_exit_code
from redstart.app.json_schema import render_json_schema
from redstart.core.triage import Triage, TriageEnd

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "triage.schema.json"


def test_published_schema_matches_the_model():
    assert SCHEMA.read_text() == render_json_schema(Triage), f"render the model anew to {SCHEMA.name}"


def test_only_a_failure_of_the_user_is_exit_code_1():
    assert [end for end in TriageEnd if triage_exit_code(end) == 1] == [TriageEnd.yours]
    assert {triage_exit_code(end) for end in (TriageEnd.green, TriageEnd.not_yours)} == {0}
