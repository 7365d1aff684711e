"""The default list of packages to install without asking. This module is imported at every start, so it stays
small."""

from __future__ import annotations

import re

ALLOWED_PACKAGES = {"python": ("hypothesis", "pytest"), "node": ("jest", "mocha", "typescript", "vitest")}
"""Test tools by language. The user must approve packages that become part of a program."""

_NAME = re.compile(r"(?:@[a-z0-9~_.-]+/)?[a-z0-9~_-][a-z0-9~._-]*", re.IGNORECASE | re.ASCII)


def is_name(text: str) -> bool:
    """Return whether a package index could have this name: no version, no address, only ASCII characters."""
    return bool(_NAME.fullmatch(text))
