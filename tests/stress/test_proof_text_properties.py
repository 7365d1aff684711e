"""A proof as shown: no text of a repo leaves its place or looks like one of our lines."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redstart.app.proof.text import as_markdown, as_text
from support.proofs import PLAIN, extract_frame, parse_structure, proof_with


@pytest.mark.slow
@given(text=st.text(max_size=60), diff=st.text(max_size=200))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_random_text_never_breaks_the_structure(text, diff):
    plain_proof, hostile = proof_with(PLAIN, diff="x"), proof_with(text, diff=f"+{diff}")
    assert parse_structure(as_markdown(hostile)) == parse_structure(as_markdown(plain_proof))
    assert extract_frame(as_text(hostile)) == extract_frame(as_text(plain_proof))


@pytest.mark.slow
@given(text=st.text(alphabet="`~|<>\n\r #*-_[]()!\\&;: \u2028\u202ea", max_size=40))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_mixed_markup_never_breaks_the_structure(text):
    assert parse_structure(as_markdown(proof_with(text))) == parse_structure(as_markdown(proof_with(PLAIN)))
