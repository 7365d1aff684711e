"""What is installed without asking where the user says nothing else. It is read at every start, so it stays small."""

from __future__ import annotations

import re

ALLOWED = {"python": ("hypothesis", "pytest"), "node": ("jest", "mocha", "typescript", "vitest")}
"""By language: what tests run with. What becomes part of a program is for its user to approve."""

_NAME = re.compile(r"(?:@[a-z0-9~_.-]+/)?[a-z0-9~_-][a-z0-9~._-]*", re.IGNORECASE | re.ASCII)


def is_name(text: str) -> bool:
    """Whether an index could have a package of this name: no version, no address, no other alphabet."""
    return bool(_NAME.fullmatch(text))
