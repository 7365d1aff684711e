"""No question contains a secret, and ordinary code is unchanged."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.ports.model.secret_mask import mask
from support.fake_keys import SHAPED


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300), st.sampled_from(sorted(SHAPED.values())))
def test_masking_twice_changes_nothing(text, key):
    masked_text = mask(f"{text} {key} {text}")
    assert mask(masked_text) == masked_text
