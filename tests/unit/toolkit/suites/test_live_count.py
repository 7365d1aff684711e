"""Count tests by what a runner prints while it runs."""

from __future__ import annotations

import pytest

from redstart.toolkit.suites.live_count import LONGEST, OutcomeCounter

PYTEST = b"""============ test session starts ============
collected 1333 items / 33 deselected / 1300 selected

tests/test_a.py ..F.s                    [  1%]
tests/deep/test_b.py ...
"""
QUIET = b"........F...  [ 50%]\n....\n1 failed in 2 s\n"
VERBOSE = b"a.py::test_a PASSED      [ 50%]\na.py::test_b FAILED      [100%]\nFAILED a.py::test_b - assert 1 == 2\n"
UNITTEST = b"test_a (t.T.test_a) ... ok\ntest_b (t.T.test_b) ... FAIL\n"
NODE = "✔ adds (1.2ms)\n✖ divides (0.4ms)\n  ✔ nested (0.1ms)\n".encode()


@pytest.mark.parametrize(
    ("output", "done", "total"),
    [(PYTEST, 8, 1300), (QUIET, 16, 0), (VERBOSE, 2, 0), (UNITTEST, 2, 0), (NODE, 2, 0), (b"what a test says\n", 0, 0)],
    ids=["pytest", "quiet", "verbose", "unittest", "node", "other"],
)
def test_runner_output_is_counted_for_any_chunk_size(output, done, total):
    for size in (1, 7, len(output)):
        counter = OutcomeCounter()
        for start in range(0, len(output), size):
            counter.feed(output[start : start + size])
        assert (counter.finished, counter.total) == (done, total)


def test_unfinished_line_is_counted():
    counter = OutcomeCounter(12)
    assert counter.feed(b"tests/test_a.py ..")
    assert (counter.finished, counter.total) == (2, 12)
    assert counter.feed(b".")
    assert not counter.feed(b"")
    assert counter.finished == 3


def test_count_never_exceeds_the_total_and_the_buffer_is_limited():
    counter = OutcomeCounter(3)
    counter.feed(b"." * (LONGEST // 2))
    assert counter.finished == 3
    counter.feed(b"x" * 10_000_000)
    assert len(counter._line) <= LONGEST
