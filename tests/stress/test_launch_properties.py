"""Which output the launcher keeps, what it limits and what it kills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redstart.ports.sandbox.launch import ClippedStream

pytestmark = pytest.mark.slow


@given(chunks=st.lists(st.binary(max_size=30), max_size=20), limit=st.integers(min_value=0, max_value=100))
def test_head_and_tail_are_kept_for_any_chunking(chunks: list[bytes], limit: int) -> None:
    buffer = ClippedStream(limit)
    for chunk in chunks:
        buffer.add(chunk)
    stream = b"".join(chunks)
    half = limit // 2
    if len(stream) <= limit:
        assert (buffer.join(), buffer.left_out) == (stream, 0)
    else:
        left_out = len(stream) - limit
        tail = stream[half + left_out :]
        assert buffer.join() == stream[:half] + f"\n[... {left_out} bytes left out ...]\n".encode() + tail
