"""The reasons that a run of a suite leaves no results per test."""

from __future__ import annotations

from enum import StrEnum


class SuiteProblem(StrEnum):
    none = ""
    no_tests = "no_tests"
    no_pytest = "no_pytest"
    no_results = "no_results"
    timeout = "timeout"
