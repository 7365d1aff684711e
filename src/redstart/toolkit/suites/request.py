"""What a suite needs run."""

from __future__ import annotations

from typing import NamedTuple

JUNIT = "junit.xml"
"""The name under which a request's report is collected."""


class Request(NamedTuple):
    """The part of an `Execution` that the suite decides; a step adds snapshot, environment and limits.

    `variables` holds only what the suite adds or changes: it goes over the environment's own.
    """

    argv: tuple[str, ...]
    variables: dict[str, str]
    files_in: dict[str, str]
    collect: tuple[str, ...]
