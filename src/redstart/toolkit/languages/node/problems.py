"""Red that no edit of the code can turn green, as Node.js and its runners tell it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.suites.problems.remedies import REMEDIES, start_service

INSTALL = "install what the project needs in its folder: npm ci (or pnpm install, yarn install)"
NO_NETWORK = REMEDIES["dns"]

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


class Lack(NamedTuple):
    """What a test lacks, and what to do."""

    kind: str
    what: str
    remedy: str


def lacks(case: Case, text_of: Callable[[str], str], declared: Callable[[str], bool]) -> Lack | None:
    """What the red case lacks; None where it may be a bug of the project.

    `text_of` gives a file's text, `declared` tells whether a package.json names a package: one that nobody declares may
    be a misspelt import.
    """
    message = case.message.partition("\n")[0]
    if _VERDICT.search(message):
        return None
    if found := _MISSING.search(case.message):
        name = _package(next(part for part in found.groups() if part))
        if _BUILT_IN.match(name) or not declared(name):
            return None
        return Lack("missing_module", f"the package {name} is not installed", INSTALL)
    if found := _REFUSED.search(message):
        if _LISTENS.search(text_of(case.id.partition("::")[0])):
            return None  # the test starts the server itself
        return Lack("refused_connection", f"nothing answers at {found[1]}", start_service(found[1]))
    if found := _NO_NAME.search(message):
        return Lack("dns", f"no name resolution ({found[1]})", NO_NETWORK)
    if found := _NO_ROUTE.search(message):
        return Lack("network_unreachable", f"{found[1]} cannot be reached", NO_NETWORK)
    return None


def lacks_of_run(output: str) -> Lack | None:
    """The same for a run that left no results: a runner that is not there."""
    if found := _NOT_FOUND.search(output):
        return Lack("missing_binary", f"the program {found[1]} is not installed", INSTALL)
    if found := _MISSING.search(output):
        return Lack("missing_module", f"{next(part for part in found.groups() if part)} is not installed", INSTALL)
    return None


def _package(name: str) -> str:
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
