"""Read the commits of a branch: each is a change against its first parent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from redstart.app.verify.history.authors import Contributor, find_agents, parse_contributor
from redstart.core.errors import ConfigError
from redstart.toolkit.base.git import GitFailed, run_git

_SEPARATOR = "\x1f"
_FIELDS = ("%H", "%P", "%T", "%cs", "%aN", "%aE", "%s", "%b", "%(trailers:key=co-authored-by,valueonly,separator=%x1f)")
_FORMAT = "--format=" + "%x00".join(_FIELDS)
_PULL_REQUEST = re.compile(r"Merge pull request (#\d+) ")
_PERIOD = re.compile(r"(\d{1,5})([dw])")


class HistoryCommit(NamedTuple):
    """A commit of the first-parent line."""

    id: str
    parent: str
    """Its first parent; empty for the first commit of the clone."""
    tree: str
    date: str
    subject: str
    author: Contributor
    agents: tuple[str, ...]


class _LogEntry(NamedTuple):
    id: str
    parents: tuple[str, ...]
    tree: str
    date: str
    author: Contributor
    subject: str
    body: str
    co_authors: tuple[Contributor, ...]


def parse_period(text: str) -> int:
    """Return the days of a period such as `90d` or `12w`. Raises `ConfigError` if it is none."""
    match = _PERIOD.fullmatch(text.strip())
    days = int(match[1]) * {"d": 1, "w": 7}[match[2]] if match else 0
    if not days:
        raise ConfigError(f"{text} is not a period", remedy="give days or weeks: --history 90d, --history 12w")
    return days


def list_commits(root: Path, head: str, since: datetime) -> list[HistoryCommit]:
    """List the commits of the first-parent line since that time, newest first.

    Raises `ConfigError` if the history is not in this clone.
    """
    start = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [_describe(root, entry) for entry in _read_log(root, "--first-parent", f"--since={start}", head)]


def _describe(root: Path, entry: _LogEntry) -> HistoryCommit:
    """Describe a commit. A merge is the work of those who wrote the merged commits, not of the person who merged."""
    merged = list(_read_log(root, "--no-merges", f"{entry.parents[0]}..{entry.id}")) if len(entry.parents) > 1 else []
    entries = [entry, *merged]
    people = [person for item in entries for person in (item.author, *item.co_authors)]
    authors = Counter(item.author for item in merged or entries)
    subject, first_line = entry.subject, next(iter(entry.body.splitlines()), "")
    if (match := _PULL_REQUEST.match(subject)) and first_line:
        subject = f"{first_line} ({match[1]})"
    parent = entry.parents[0] if entry.parents else ""
    author = authors.most_common(1)[0][0]
    return HistoryCommit(entry.id, parent, entry.tree, entry.date, subject, author, find_agents(people))


def _read_log(root: Path, *arguments: str) -> Iterator[_LogEntry]:
    command = ("log", "-z", "--no-show-signature", "--no-color", "--encoding=UTF-8", _FORMAT)
    try:
        output = run_git(*command, *arguments, "--", cwd=root)
    except GitFailed as error:
        remedy = "fetch the history first: git fetch --unshallow"
        raise ConfigError(f"the history cannot be read: {error}", remedy=remedy) from error
    texts = output.decode("utf-8", "replace").split("\0")
    size = len(_FIELDS)
    for start in range(0, len(texts) - size + 1, size):
        id_, parents, tree, date, name, address, subject, body, trailers = texts[start : start + size]
        co_authors = tuple(parse_contributor(value) for value in trailers.split(_SEPARATOR) if value)
        yield _LogEntry(id_, tuple(parents.split()), tree, date, Contributor(name, address), subject, body, co_authors)
