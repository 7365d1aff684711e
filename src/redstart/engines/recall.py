"""Recalls, recorded like every other call of a step, with their cost if a model compared texts for them."""

from __future__ import annotations

from typing import Protocol

from pydantic import TypeAdapter

from redstart.core.chat import Usage
from redstart.core.errors import Needs
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.learning import RecalledCard, Signature
from redstart.core.noun import FrozenValue, clip
from redstart.core.pattern import RecalledPattern
from redstart.engines.journal import CallCounter, JournalRecorder
from redstart.ports.bundle import ProgressNote
from redstart.ports.memory.port import Memory, Metered
from redstart.ports.model.port import Ledger
from redstart.ports.store.port.journal import CallPlace, JournalRecord
from redstart.ports.store.port.ordinals import OutsideOrdinal

LONGEST = 300
"""Maximum characters of the description of what a recall lacked."""


class CountingLedger(Ledger, CallCounter, Protocol):
    """A ledger that reserves and counts the cost of calls."""


class KeptRecall(FrozenValue):
    """The journal entry of a recall that asked a model or lacked something. Any other recall is a list of cards."""

    found: list[RecalledCard]
    model: str
    usage: Usage | None
    """None if nothing was used."""
    lacks: str


_RECALLED = TypeAdapter(list[RecalledCard])
_PATTERNS = TypeAdapter(list[RecalledPattern])
_FAILURES = TypeAdapter(list[RecalledFailure])
_KEPT: TypeAdapter[list[RecalledCard] | KeptRecall] = TypeAdapter(list[RecalledCard] | KeptRecall)


class _RecallMeter:
    """Passes reservations to the step's ledger, and collects the usage to record."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.used: Usage | None = None
        self.lacked = ""

    def reserve(self, usd: float | None, tokens: int) -> None:
        self._ledger.reserve(usd, tokens)

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        self._ledger.settle(usd, tokens, used)
        if used != Usage():
            self.used = used if self.used is None else _plus(self.used, used)

    def lacks(self, why: str) -> None:
        self.lacked = clip(why, LONGEST)


class JournaledMemory:
    """A memory whose recalls are recorded, with their model usage and what they lacked.

    A memory that asks a model requires a driver that may do so (`thinks`). `note` tells the run what was lacking.
    """

    def __init__(
        self, inner: Memory, recorder: JournalRecorder, ledger: CountingLedger, note: ProgressNote, *, thinks: bool
    ) -> None:
        self._inner, self._recorder, self._ledger, self._note = inner, recorder, ledger, note
        self._thinks = thinks

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return await self._recalled(signature, tenant, repo, limit)

        request = "\x1f".join((signature.model_dump_json(), tenant, repo, str(limit)))
        return self._counted(await self._recorder.call("recall", request, make))

    async def recall_again(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        """Recall the cards as the step first found them. Runs from before this call existed are replayed without it,
        and the places of their calls do not change."""

        async def make() -> str:
            return await self._recalled(signature, tenant, repo, limit)

        return self._counted(await self._recorder.heard("recall", "[]", make, ordinal=OutsideOrdinal.again))

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        """Recall the failures as the step first found them. Older runs are treated as in `recall_again`."""

        async def make() -> str:
            found = await self._inner.failures(query, tenant=tenant, repo=repo, limit=limit)
            return _FAILURES.dump_json(found).decode()

        result = await self._recorder.heard("failures", "[]", make, ordinal=OutsideOrdinal.failed)
        return _FAILURES.validate_json(result, extra="ignore")

    async def _recalled(self, signature: Signature, tenant: str, repo: str, limit: int) -> str:
        inner, meter = self._inner, _RecallMeter(self._ledger)
        if isinstance(inner, Metered):
            if inner.asks and not self._thinks:
                raise Needs("think")
            inner = inner.under(meter)
        found = await inner.recall(signature, tenant=tenant, repo=repo, limit=limit)
        if meter.used is None and not meter.lacked:
            return _RECALLED.dump_json(found).decode()
        model = inner.asks if isinstance(inner, Metered) else ""
        return KeptRecall(found=found, model=model, usage=meter.used, lacks=meter.lacked).model_dump_json()

    def _counted(self, result: str) -> list[RecalledCard]:
        kept = _KEPT.validate_json(result, extra="ignore")
        if isinstance(kept, list):
            return kept
        if kept.usage is not None:
            self._ledger.count(kept.usage)
        if kept.lacks:
            self._note(recall_lacks=kept.lacks)
        return kept.found

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        """Recall the patterns as the step first found them. Older runs are treated as in `recall_again`."""

        async def make() -> str:
            found = await self._inner.patterns(goal, tenant=tenant, repo=repo, limit=limit)
            return _PATTERNS.dump_json(found).decode()

        result = await self._recorder.heard("patterns", "[]", make, ordinal=OutsideOrdinal.alike)
        return _PATTERNS.validate_json(result, extra="ignore")


def spent_by(record: JournalRecord) -> KeptRecall | None:
    """Return the recall with its model usage; None if it used no model."""
    kept = _KEPT.validate_json(record.current_result(), extra="ignore")
    return kept if isinstance(kept, KeptRecall) and kept.usage is not None else None


def _plus(one: Usage, other: Usage) -> Usage:
    """Add two usages of the same model: either both have a price, or neither has."""
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        usd=None if one.usd is None or other.usd is None else one.usd + other.usd,
    )
