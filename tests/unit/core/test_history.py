"""The published form of a history, and its exit codes."""

from __future__ import annotations

from pathlib import Path

from redstart.app.exit_codes import history_exit_code
from redstart.app.json_schema import render_json_schema
from redstart.core.history import ChangeCounts, ChangeHistory

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "verify-history.schema.json"


def test_published_schema_matches_the_model():
    assert SCHEMA.read_text() == render_json_schema(ChangeHistory), f"render the model anew to {SCHEMA.name}"


def test_exit_code_is_3_only_if_no_change_has_a_verdict():
    assert history_exit_code(ChangeCounts()) == 0
    assert history_exit_code(ChangeCounts(changes=2, not_run=1, not_examined=1)) == 3
    assert history_exit_code(ChangeCounts(changes=2, not_run=1, judged=1)) == 0
    assert history_exit_code(ChangeCounts(changes=2, not_run=1, no_test_ran=1)) == 0
