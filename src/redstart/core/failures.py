"""Failed attempts of earlier runs: which are asked for, and which of them fit."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.learning import FailureRecord, Signature
from redstart.core.noun import FrozenValue


class FailureQuery(FrozenValue):
    """Which failed attempts are asked for: those at these failures, made by other runs than these."""

    signatures: tuple[Signature, ...]
    test_id: str = ""
    """The first failing test."""
    without: tuple[str, ...] = ()
    """Ids of runs."""


class RecalledFailure(FrozenValue):
    """A failed attempt that memory offered, with the reason."""

    record: FailureRecord
    repo: str
    source: str
    """`signature` (at this bug) or `test` (at the same kind of failure of the same test)."""


def choose_failures(
    kept: Iterable[tuple[FailureRecord, str]], query: FailureQuery, *, repo: str, limit: int
) -> list[RecalledFailure]:
    """Those that fit, the best first, each patch once; `kept` gives records with their repos, the newest first.

    A family alone says little: every failed assertion of a repo may share it. So the same test has to fail too.
    """
    keys, families = (
        {signature.key for signature in query.signatures},
        {signature.family for signature in query.signatures},
    )
    found: list[RecalledFailure] = []
    for record, origin in kept:
        same_test = bool(query.test_id) and record.test_id == query.test_id and origin == repo
        if record.provenance.get("run", "") in query.without:
            continue
        if record.error_signature in keys:
            found.append(RecalledFailure(record=record, repo=origin, source="signature"))
        elif same_test and record.family in families:
            found.append(RecalledFailure(record=record, repo=origin, source="test"))
    found.sort(key=lambda item: (item.source != "signature", item.repo != repo))
    first = {item.record.patch or item.record.id: item for item in reversed(found)}
    return [item for item in found if first[item.record.patch or item.record.id] is item][:limit]
