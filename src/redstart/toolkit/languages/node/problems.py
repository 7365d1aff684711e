"""Failures that no edit of the code can fix, as Node.js and its runners report them."""

from __future__ import annotations

import re

from redstart.core.report import Case
from redstart.toolkit.suites.problems.ground import EnvironmentProblem, ground
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.remedies import start_service

INSTALL = "install what the project needs in its folder: npm ci (or pnpm install, yarn install)"

_MISSING = re.compile(
    r"Cannot find (?:module|package) '([^'./][^']*)'|Failed to resolve import \"([^\"./][^\"]*)\""
    r"|Cannot find (?:dependency|package) '([^'./][^']*)'"
)
_NOT_FOUND = re.compile(
    r"(?:sh|env|bash): (?:\d+: )?(?:line \d+: )?'?(mocha|jest|vitest|tsx|ts-mocha|tsc|node)'?: (?:command )?"
    r"(?:not found|No such file or directory)",
    re.MULTILINE,
)
_REFUSED = re.compile(r"connect ECONNREFUSED (\S+)")
_NO_NAME = re.compile(r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)")
_NO_ROUTE = re.compile(r"connect (?:ENETUNREACH|EHOSTUNREACH) (\S+)")
_BUILT_IN = re.compile(r"^(?:node:|#)")
_VERDICT = re.compile(r"^AssertionError\b|\bexpect\(")
_LISTENS = re.compile(r"\.listen\(|createServer\(|\binject\(|supertest")


def of_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    message = case.message.partition("\n")[0]
    if _VERDICT.search(message):
        return None
    if found := _MISSING.search(case.message):
        name = _package(next(part for part in found.groups() if part))
        # A package that no package.json names may be a misspelled import.
        if _BUILT_IN.match(name) or not project.declares(name):
            return None
        return ground("missing_module", f"the package {name} is not installed", INSTALL)
    if found := _REFUSED.search(message):
        if _LISTENS.search(project.text(case.id.partition("::")[0])):
            return None  # the test starts the server itself
        return ground("refused_connection", f"nothing answers at {found[1]}", start_service(found[1]))
    if found := _NO_NAME.search(message):
        return ground("dns", f"no name resolution ({found[1]})")
    if found := _NO_ROUTE.search(message):
        return ground("network_unreachable", f"{found[1]} cannot be reached")
    return None


def of_output(problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:  # noqa: ARG001
    if found := _NOT_FOUND.search(output):
        return ground("missing_binary", f"the program {found[1]} is not installed", INSTALL)
    if found := _MISSING.search(output):
        return ground("missing_module", f"{next(part for part in found.groups() if part)} is not installed", INSTALL)
    return None


def of_start(output: str, project: ProjectView) -> EnvironmentProblem | None:  # noqa: ARG001
    return None


def _package(name: str) -> str:
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
