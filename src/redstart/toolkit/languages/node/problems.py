"""Failures that no edit of the code can fix, as Node.js and its runners report them."""

from __future__ import annotations

import re

from redstart.core.report import Case
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, create_problem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.remedies import start_service
from redstart.toolkit.suites.problems.run_problems import SuiteProblem

INSTALL = "install what the project needs in its folder: npm ci (or pnpm install, yarn install)"

_MISSING = re.compile(
    r"Cannot find (?:module|package) '([^'./][^']*)'|Failed to resolve import \"([^\"./][^\"]*)\""
    r"|Cannot find (?:dependency|package) '([^'./][^']*)'"
)
_COMMAND_NOT_FOUND = re.compile(
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


def classify_case(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    message = case.message.partition("\n")[0]
    if _VERDICT.search(message):
        return None
    if match := _MISSING.search(case.message):
        name = _parse_package_name(next(part for part in match.groups() if part))
        # A package that no package.json names may be a misspelled import.
        if _BUILT_IN.match(name) or not project.is_declared(name):
            return None
        return create_problem("missing_module", f"the package {name} is not installed", INSTALL)
    if match := _REFUSED.search(message):
        if _LISTENS.search(project.read_text(case.id.partition("::")[0])):
            return None  # the test starts the server itself
        return create_problem("refused_connection", f"nothing answers at {match[1]}", start_service(match[1]))
    if match := _NO_NAME.search(message):
        return create_problem("dns", f"no name resolution ({match[1]})")
    if match := _NO_ROUTE.search(message):
        return create_problem("network_unreachable", f"{match[1]} cannot be reached")
    return None


def classify_output(problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:  # noqa: ARG001
    if match := _COMMAND_NOT_FOUND.search(output):
        return create_problem("missing_binary", f"the program {match[1]} is not installed", INSTALL)
    if match := _MISSING.search(output):
        return create_problem(
            "missing_module", f"{next(part for part in match.groups() if part)} is not installed", INSTALL
        )
    return None


def classify_startup(output: str, project: ProjectView) -> EnvironmentProblem | None:  # noqa: ARG001
    return None


def _parse_package_name(name: str) -> str:
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
