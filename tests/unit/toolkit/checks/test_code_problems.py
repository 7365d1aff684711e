from __future__ import annotations

import pytest

from redstart.toolkit.checks.code_problems import has_more_problems

pytestmark = pytest.mark.slow

USED = b"import os\n\nSEP = os.sep\n"
UNUSED = b"import os\n\nSEP = '/'\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"SEP = '/'\n", UNUSED, True),
        (USED, b"SEP = (\n", True),
        (None, UNUSED, True),
        (UNUSED, USED, False),
        (UNUSED, None, False),
        (UNUSED, b"'''A moved import.'''\n\nimport os as system\n\nSEP = '/'\n", False),
    ],
)
def test_only_a_further_finding_counts(before: bytes | None, after: bytes | None, expected: bool) -> None:
    assert has_more_problems({"a.py": before}, {"a.py": after}) is expected


def test_finding_of_one_file_does_not_make_up_for_another() -> None:
    assert has_more_problems({"a.py": UNUSED, "b.py": USED}, {"a.py": USED, "b.py": UNUSED})


def test_files_that_are_not_in_the_second_set_are_not_compared() -> None:
    assert not has_more_problems({"a.py": USED, "b.py": UNUSED}, {"a.py": USED})
