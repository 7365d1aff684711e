"""Failed attempts of earlier runs: the query, and the choice of matching records."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.frozen import FrozenValue
from redstart.core.learning import FailureRecord, Signature


class FailureQuery(FrozenValue):
    """A query for failed attempts at these failures, made by runs other than `without`."""

    signatures: tuple[Signature, ...]
    test_id: str = ""
    """The first failing test."""
    without: tuple[str, ...] = ()
    """IDs of runs to exclude."""


class RecalledFailure(FrozenValue):
    """A failed attempt from memory, with the reason why it matches."""

    record: FailureRecord
    repo: str
    source: str
    """`signature` (the same bug) or `test` (the same kind of failure of the same test)."""


def choose_failures(
    records: Iterable[tuple[FailureRecord, str]], query: FailureQuery, *, repo: str, limit: int
) -> list[RecalledFailure]:
    """Choose the matching records, best first, each patch once. Expects records with their repos, newest first.

    A family alone says little: every failed assertion of a repo may share it. So the same test must fail too.
    """
    keys, families = (
        {signature.key for signature in query.signatures},
        {signature.family for signature in query.signatures},
    )
    matches: list[RecalledFailure] = []
    for record, origin in records:
        same_test = bool(query.test_id) and record.test_id == query.test_id and origin == repo
        if record.provenance.get("run", "") in query.without:
            continue
        if record.error_signature in keys:
            matches.append(RecalledFailure(record=record, repo=origin, source="signature"))
        elif same_test and record.family in families:
            matches.append(RecalledFailure(record=record, repo=origin, source="test"))
    matches.sort(key=lambda item: (item.source != "signature", item.repo != repo))
    first_by_patch = {item.record.patch or item.record.id: item for item in reversed(matches)}
    return [item for item in matches if first_by_patch[item.record.patch or item.record.id] is item][:limit]
