"""The failing tests that a log names."""

from __future__ import annotations

from redstart.toolkit.suites.reading.log import LoggedFailure, list_logged_failures

LOG = """\
2026-11-02T10:00:00.1Z tests/test_a.py::test_one[a b] \x1b[31mFAILED\x1b[0m                [ 50%]
2026-11-02T10:00:01.1Z E   ValueError: ERROR here
2026-11-02T10:00:02.1Z FAILED tests/test_a.py::test_one[a b] - ValueError: ERROR here
2026-11-02T10:00:02.1Z ERROR tests/test_b.py - ImportError: no such name
FAILED tests/test_c.py::TestC::test_three
FAIL: test_four (tests.test_d.TestD.test_four)
ERROR: test_five (tests.test_d.TestD)
FAILED (failures=1, errors=1)
"""


def test_pytest_and_unittest_lines_are_read_once_each():
    assert list_logged_failures(LOG) == [
        LoggedFailure("tests/test_a.py::test_one[a b]", "ValueError: ERROR here"),
        LoggedFailure("tests/test_b.py", "ImportError: no such name"),
        LoggedFailure("tests/test_c.py::TestC::test_three", ""),
        LoggedFailure("tests.test_d.TestD.test_four", ""),
        LoggedFailure("tests.test_d.TestD.test_five", ""),
    ]
