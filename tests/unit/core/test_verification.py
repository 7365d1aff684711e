"""The published form of a verification, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.exit_codes import verification_exit_code
from redstart.app.json_schema import render_json_schema
from redstart.app.verify.kinds import KINDS
from redstart.core.verification import ClaimKind, ProofRequirement, Verification, VerificationEnd

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "verify.schema.json"


def test_published_schema_matches_the_model():
    assert SCHEMA.read_text() == render_json_schema(Verification), f"render the model anew to {SCHEMA.name}"


@pytest.mark.parametrize("end", VerificationEnd)
def test_requirement_matters_only_for_an_unproven_change(end: VerificationEnd):
    codes = {verification_exit_code(end, requirement) for requirement in ProofRequirement}
    assert codes == (
        {0, 8} if end is VerificationEnd.unproven else {verification_exit_code(end, ProofRequirement.proof)}
    )


def test_report_has_words_for_every_kind():
    assert set(KINDS) == set(ClaimKind)
