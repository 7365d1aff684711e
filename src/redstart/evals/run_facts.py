"""Collect the facts that are counted for one run, from its records in the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from redstart.core.chat import Answer
from redstart.core.errors import StoreError
from redstart.core.events import Event
from redstart.core.frozen import clip
from redstart.core.report import ReproductionResult
from redstart.core.run import Mode, Result, Spend, Status, Step
from redstart.core.run_status import RunRow
from redstart.engines.journal import KeptAnswer
from redstart.evals.outcome import EndPoint
from redstart.ports.store.port.journal import JournalRecord
from redstart.ports.store.port.runs import PastRun

GREEN = "green"
NOT_PROVEN = "green, but not proven"
_NOTHING_TO_DO = frozenset({Result.already_green.value, Result.no_tests.value, Result.environment.value})
_TEXTS = TypeAdapter(list[str])


class RunFacts(NamedTuple):
    """The facts that are counted for one run."""

    row: RunRow
    attempts: int
    seconds: float
    reason: str
    attempt_outcomes: tuple[str, ...]
    """The outcome of each attempt."""
    error: str
    cards: dict[str, str]
    """The cards that were shown, each with its source."""
    cards_left: int
    failures_left: int
    by_step: dict[str, Spend]
    by_model: dict[str, Spend]
    faults: tuple[str, ...]
    later_cards: tuple[str, ...] = ()
    """The cards that were shown for the failure of an earlier attempt."""
    own_cards: tuple[str, ...] = ()
    """The cards that the run saved."""

    @property
    def part(self) -> bool:
        return "." in self.row.run_id

    @property
    def verified(self) -> bool:
        return self.row.result == Result.verified.value

    @property
    def tried(self) -> bool:
        """Whether the run has ended and had something to do: a failure to fix or a program to write."""
        is_finished = self.row.status is Status.finished and self.row.mode != Mode.audit.value
        return is_finished and self.row.result not in _NOTHING_TO_DO


def collect_facts(past_run: PastRun) -> RunFacts:
    """Collect the facts of a run. Raises `StoreError` if a record cannot be read."""
    run_events = [event.data for event in past_run.ends if event.name == "run"]
    last_event = run_events[-1] if run_events else dict[str, JsonValue]()
    plans = [event.data for event in past_run.ends if event.name == Step.plan.value]
    remember_events = [event.data for event in past_run.ends if event.name == Step.remember.value]
    by_step: dict[str, Spend] = defaultdict(Spend)
    by_model: dict[str, Spend] = defaultdict(Spend)
    faults: list[str] = []
    for event in past_run.ends:
        if event.name != "run":
            seconds, handovers = (_number(event.data.get(name)) for name in ("seconds", "handovers"))
            by_step[event.name] = by_step[event.name].add(Spend(seconds=seconds, handovers=int(handovers)))
    for record in past_run.answers:
        answer = _read(record)
        # An attempt that decides again has its version after the name of the step.
        step, usage = record.call.step.partition("@")[0], answer.usage
        spend = Spend(
            calls=int(answer.was_asked),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            usd=usage.usd or 0.0,
            unpriced=int(usage.usd is None),
        )
        by_step[step] = by_step[step].add(spend)
        by_model[answer.model] = by_model[answer.model].add(spend)
        faults += [answer.fault.value] if answer.fault else []
    return RunFacts(
        row=past_run.row,
        attempts=int(_number(last_event.get("attempts"))),
        seconds=_number(last_event.get("seconds")),
        reason=clip(next(iter(str(last_event.get("reason", "")).splitlines()), ""), 120),
        attempt_outcomes=_list_attempt_outcomes(past_run.ends),
        error=_get_first_exception(past_run.reproduced),
        cards={card: source for data in plans for card, source in _list_shown_cards(data)},
        cards_left=sum(bool(data.get("card")) for data in remember_events),
        failures_left=sum(bool(data.get("failure")) for data in remember_events),
        by_step=by_step,
        by_model=by_model,
        faults=tuple(faults),
        later_cards=tuple(
            card
            for event in past_run.ends
            if event.name == Step.patch.value
            for card in _TEXTS.validate_python(event.data.get("recalled", []))
        ),
        own_cards=tuple(str(card) for data in remember_events if (card := data.get("card"))),
    )


def _list_attempt_outcomes(ends: Sequence[Event]) -> tuple[str, ...]:
    """List the outcomes of a run's attempts. An attempt that waits, or that only ran a probe, has none."""
    by_attempt: dict[int, dict[str, dict[str, JsonValue]]] = defaultdict(dict)
    for event in ends:
        by_attempt[event.attempt][event.name] = event.data
    return tuple(kind for _, step_data in sorted(by_attempt.items()) if (kind := _classify_attempt(step_data)))


def _classify_attempt(step_data: dict[str, dict[str, JsonValue]]) -> str:
    """Classify an attempt by its last conclusive step. Empty if there is none."""
    if test := step_data.get(Step.test.value):
        return "" if test.get("probe") else _classify_test(test)
    if (check := step_data.get(Step.check.value)) and (check.get("findings") or check.get("fault")):
        return EndPoint.edit_rejected.value
    if (applied := step_data.get(Step.apply.value)) and not applied.get("ok"):
        return EndPoint.refused.value if applied.get("refused") else EndPoint.edit_rejected.value
    if (patch := step_data.get(Step.patch.value)) and patch.get("fault"):
        return EndPoint.no_edit.value
    trouble = step_data.get(Step.reproduce.value, {}).get("trouble")
    return EndPoint.not_reproduced.value if trouble and trouble != Result.already_green.value else ""


def _classify_test(test: dict[str, JsonValue]) -> str:
    if test.get("honest_green"):
        return GREEN
    if test.get("still_red"):
        return EndPoint.still_red.value
    return EndPoint.newly_red.value if test.get("newly_red") else NOT_PROVEN


def _get_first_exception(artifacts: Sequence[str]) -> str:
    """Return the exception of the first failure at the start of a run."""
    for artifact in artifacts[:1]:
        try:
            signature = ReproductionResult.model_validate_json(artifact, extra="ignore").report.signature
        except ValidationError as error:
            raise StoreError("the baseline of a run cannot be read") from error
        return signature.exception if signature else ""
    return ""


def _read(record: JournalRecord) -> Answer:
    try:
        return KeptAnswer.from_record(record).answer
    except ValidationError as error:
        raise StoreError(f"the record of {record.call} of run {record.call.run_id} cannot be read") from error


def _list_shown_cards(data: dict[str, JsonValue]) -> Iterable[tuple[str, str]]:
    """List the cards that a plan recalled, each with its source."""
    cards, sources = (_TEXTS.validate_python(data.get(name, [])) for name in ("recalled", "sources"))
    return zip(cards, sources, strict=True)


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
