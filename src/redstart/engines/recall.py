"""Recalls, recorded like every other call of a step, with their cost if a model compared texts for them."""

from __future__ import annotations

from typing import Protocol

from pydantic import TypeAdapter

from redstart.core.chat import Usage
from redstart.core.errors import Needs
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.frozen import FrozenValue, clip
from redstart.core.learning import RecalledCard, Signature
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


_CARDS_ADAPTER = TypeAdapter(list[RecalledCard])
_PATTERNS = TypeAdapter(list[RecalledPattern])
_FAILURES = TypeAdapter(list[RecalledFailure])
_RECALL_ADAPTER: TypeAdapter[list[RecalledCard] | KeptRecall] = TypeAdapter(list[RecalledCard] | KeptRecall)


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
            self.used = used if self.used is None else _add_usage(self.used, used)

    def lacks(self, reason: str) -> None:
        self.lacked = clip(reason, LONGEST)


class JournaledMemory:
    """A memory whose recalls are recorded, with their model usage and what they lacked.

    A memory that asks a model requires a driver that may do so (`can_think`). `note` tells the run what was lacking.
    """

    def __init__(
        self, inner: Memory, recorder: JournalRecorder, ledger: CountingLedger, note: ProgressNote, *, can_think: bool
    ) -> None:
        self._inner, self._recorder, self._ledger, self._note = inner, recorder, ledger, note
        self._can_ask_model = can_think

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return await self._recall_cards(signature, tenant, repo, limit)

        request = "\x1f".join((signature.model_dump_json(), tenant, repo, str(limit)))
        return self._load_cards(await self._recorder.call("recall", request, make))

    async def recall_again(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        """Recall the cards as the step first found them. Runs from before this call existed are replayed without it,
        and the places of their calls do not change."""

        async def make() -> str:
            return await self._recall_cards(signature, tenant, repo, limit)

        return self._load_cards(await self._recorder.record_input("recall", "[]", make, ordinal=OutsideOrdinal.again))

    async def recall_failures(
        self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3
    ) -> list[RecalledFailure]:
        """Recall the failures as the step first found them. Older runs are treated as in `recall_again`."""

        async def make() -> str:
            failures = await self._inner.recall_failures(query, tenant=tenant, repo=repo, limit=limit)
            return _FAILURES.dump_json(failures).decode()

        result = await self._recorder.record_input("failures", "[]", make, ordinal=OutsideOrdinal.failed)
        return _FAILURES.validate_json(result, extra="ignore")

    async def _recall_cards(self, signature: Signature, tenant: str, repo: str, limit: int) -> str:
        memory, meter = self._inner, _RecallMeter(self._ledger)
        if isinstance(memory, Metered):
            if memory.asks and not self._can_ask_model:
                raise Needs("think")
            memory = memory.with_meter(meter)
        cards = await memory.recall(signature, tenant=tenant, repo=repo, limit=limit)
        if meter.used is None and not meter.lacked:
            return _CARDS_ADAPTER.dump_json(cards).decode()
        model = memory.asks if isinstance(memory, Metered) else ""
        return KeptRecall(found=cards, model=model, usage=meter.used, lacks=meter.lacked).model_dump_json()

    def _load_cards(self, result: str) -> list[RecalledCard]:
        entry = _RECALL_ADAPTER.validate_json(result, extra="ignore")
        if isinstance(entry, list):
            return entry
        if entry.usage is not None:
            self._ledger.count(entry.usage)
        if entry.lacks:
            self._note(recall_lacks=entry.lacks)
        return entry.found

    async def recall_patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        """Recall the patterns as the step first found them. Older runs are treated as in `recall_again`."""

        async def make() -> str:
            patterns = await self._inner.recall_patterns(goal, tenant=tenant, repo=repo, limit=limit)
            return _PATTERNS.dump_json(patterns).decode()

        result = await self._recorder.record_input("patterns", "[]", make, ordinal=OutsideOrdinal.alike)
        return _PATTERNS.validate_json(result, extra="ignore")


def read_metered_recall(record: JournalRecord) -> KeptRecall | None:
    """Return the recall with its model usage; None if it used no model."""
    entry = _RECALL_ADAPTER.validate_json(record.upgrade_result(), extra="ignore")
    return entry if isinstance(entry, KeptRecall) and entry.usage is not None else None


def _add_usage(first: Usage, second: Usage) -> Usage:
    """Add two usages of the same model: either both have a price, or neither has."""
    return Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        usd=None if first.usd is None or second.usd is None else first.usd + second.usd,
    )
