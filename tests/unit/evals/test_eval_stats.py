"""Statistics of everyday runs, from rows that can be counted by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from redstart.core.chat import Answer, AnswerFault, Usage
from redstart.core.errors import ConfigError, StoreError
from redstart.core.events import Phase
from redstart.core.report import ReproductionResult
from redstart.core.run import Spend, Status
from redstart.core.standing import RunRow
from redstart.engines.journal import KeptAnswer
from redstart.evals.facts import facts_of
from redstart.evals.intervals import wilson
from redstart.evals.stats import Stats, stats_of
from redstart.evals.stats_text import HANG, moment, stats_lines
from redstart.ports.store.port.journal import CallPlace, JournalRecord
from redstart.ports.store.port.runs import PastRun
from redstart.testing.states import event, record, report, signature

NOW = datetime(2030, 3, 10, 12, 0, tzinfo=timezone(timedelta(hours=2)))


def end(name: str, attempt: int = 1, **data: Any) -> Any:
    return event(name=name, attempt=attempt, phase=Phase.end, data=data)


def answer(step: str = "patch", model: str = "a:b", number: int = 0, **over: Any) -> JournalRecord:
    usage = over.pop("usage", Usage(input_tokens=10, output_tokens=2, usd=0.5))
    kept = KeptAnswer(answer=Answer(text="", model=model, usage=usage, **over), text="e" * 64)
    return record(CallPlace("run", 1, step, number), result=kept.model_dump_json())


def past(run_id: str = "run", result: str = "verified", *ends: Any, **over: Any) -> PastRun:
    status = Status.finished if result else Status.paused
    plain = {"mode": "fix", "status": status, "goal": "", "repo": "shop", "folder": ""}
    answers, reproduced = over.pop("answers", []), over.pop("reproduced", [])
    row = RunRow(run_id=run_id, result=result, created=NOW, updated=NOW, **{**plain, **over})
    return PastRun(row, list(ends), reproduced, answers)


def counted(*runs: PastRun) -> Stats:
    return stats_of([facts_of(run) for run in runs])


def test_outcomes_are_told_by_mode_and_only_tries_count_for_the_share() -> None:
    found = counted(
        past("a", "verified", end("run", attempts=1, seconds=4.0)),
        past("b", "unsolved", end("run", attempts=5, seconds=9.0, reason="still red after 5 attempts\nmore")),
        past("c", "verified", end("run", attempts=2, seconds=6.0)),
        past("d", "already_green", end("run", attempts=1, seconds=1.0)),
        past("e", "environment"),
        past("f", "", end("run", attempts=1, reason="a question")),
        past("g", "reported", mode="audit"),
        past("h", "unsolved", end("run", attempts=3, reason="still red after 3 attempts"), mode="create"),
        past("a.1", "verified", end("run", attempts=9, seconds=99.0)),
    )
    assert (found.runs, found.parts) == (8, 1)
    assert found.outcomes["fix"] == {"verified": 2, "unsolved": 1, "already_green": 1, "environment": 1, "paused": 1}
    assert found.outcomes["audit"] == {"reported": 1}
    assert found.verified == wilson(2, 4)
    assert found.attempts is not None
    assert (found.attempts.count, found.attempts.median, found.attempts.most) == (4, 2.5, 5)
    assert found.seconds_to_green is not None
    assert (found.seconds_to_green.count, found.seconds_to_green.mean) == (2, 5)
    assert found.reasons == {"still red after … attempts": 2}


def test_reasons_keep_the_numbers_in_which_they_do_not_differ() -> None:
    reason = "the time limit of 5 minutes is reached"
    over = [past(name, "capped", end("run", attempts=1, reason=reason)) for name in "ab"]
    assert counted(*over).reasons == {reason: 2}


def test_the_last_end_of_a_run_that_went_on_counts() -> None:
    ended_twice = (end("run", attempts=2, seconds=5.0), end("run", attempts=4, seconds=8.0))
    found = counted(past("a", "verified", *ended_twice))
    assert found.attempts is not None
    assert found.attempts.mean == 4


def test_costs_are_added_by_step_and_by_model_with_those_of_parts() -> None:
    free = answer("decide@7", "c:d", usage=Usage(input_tokens=1, output_tokens=1, usd=None))
    found = counted(
        past("a", "verified", end("patch", seconds=2.0, tokens=999), answers=[answer(), answer(number=1), free]),
        past("a.1", "verified", end("patch", seconds=1.5), answers=[answer(fault=AnswerFault.truncated)]),
    )
    patch = Spend(calls=3, input_tokens=30, output_tokens=6, usd=1.5, seconds=3.5)
    assert found.by_step == {"patch": patch, "decide": Spend(calls=1, input_tokens=1, output_tokens=1, unpriced=1)}
    assert list(found.by_step) == ["patch", "decide"]
    assert found.by_model["a:b"] == patch.model_copy(update={"seconds": 0.0})
    assert found.by_model["c:d"].unpriced == 1
    assert (found.spent.calls, found.spent.tokens, found.spent.usd) == (4, 38, 1.5)
    assert found.faults == {"truncated": 1}


@pytest.mark.parametrize(
    ("ends", "kind"),
    [
        ([end("test", honest_green=True)], "green"),
        ([end("test", still_red=1, newly_red=1)], "still red"),
        ([end("test", newly_red=2)], "newly red"),
        ([end("test", green_without=1)], "green, but not proven"),
        ([end("check", findings=1), end("test", still_red=1)], "still red"),
        ([end("apply", ok=True), end("check", findings=2, fault="")], "edit rejected"),
        ([end("apply", ok=True), end("check", findings=0, fault="no tool")], "edit rejected"),
        ([end("apply", ok=False, refused=False)], "edit rejected"),
        ([end("apply", ok=False, refused=True)], "refused"),
        ([end("patch", fault="no edit in it")], "no usable edit"),
        ([end("reproduce", trouble="no_tests")], "not reproduced"),
    ],
)
def test_what_an_attempt_came_to_is_told_by_the_last_step_that_says_it(ends: list[Any], kind: str) -> None:
    assert counted(past("a", "unsolved", *ends)).attempts_ended == {kind: 1}


@pytest.mark.parametrize(
    "ends",
    [
        [],
        [end("test", probe=True, still_red=1)],
        [end("reproduce", trouble="already_green")],
        [end("patch", fault=""), end("apply", ok=True), end("check", findings=0, fault="")],
    ],
)
def test_looking_around_and_waiting_are_no_attempts(ends: list[Any]) -> None:
    assert counted(past("a", "unsolved", *ends)).attempts_ended == {}


def test_attempts_are_told_apart() -> None:
    ends = [end("apply", ok=False), end("apply", 2, ok=True), end("test", 2, still_red=1), end("test", 3, newly_red=1)]
    assert counted(past("a", "unsolved", *ends)).attempts_ended == {"edit rejected": 1, "newly red": 1, "still red": 1}


def test_kinds_of_errors_are_those_that_runs_began_with() -> None:
    def began(**over: Any) -> list[str]:
        red = report(["test_a"], signature=signature(**over))
        return [ReproductionResult(report=red).model_dump_json(), ReproductionResult(report=report()).model_dump_json()]

    found = counted(
        past("a", reproduced=began()),
        past("b", reproduced=began(exception="TypeError")),
        past("c", reproduced=began()),
        past("d", reproduced=[ReproductionResult(report=report()).model_dump_json()]),
    )
    assert found.errors == {"KeyError": 2, "TypeError": 1}


def test_memory_is_told_with_how_its_runs_ended() -> None:
    both = end("plan", recalled=["one", "two"], sources=["signature", "family"])
    again = end("plan", 2, recalled=["one"], sources=["signature"])
    found = counted(
        past("a", "verified", both, again, end("remember", card="three", failure=False)),
        past("b", "unsolved", again, end("remember", card="", failure=True), end("remember", 2, card="", failure=True)),
        past("c", "verified", end("plan", recalled=[], sources=[])),
        past("d", "", both),
    ).memory
    assert found.runs == 2
    assert (found.verified_with, found.verified_without) == (wilson(1, 2), wilson(1, 1))
    assert [(item.card, item.runs, item.verified) for item in found.often] == [("one", 2, 1), ("two", 1, 1)]
    assert found.sources == {"signature": 2, "family": 1}
    assert (found.cards_left, found.failures_left) == (1, 2)


def test_nothing_is_said_of_no_runs() -> None:
    found = counted()
    assert (found.verified, found.attempts, found.spent) == (None, None, Spend())
    assert [line.text for line in stats_lines(found)] == ["no runs in this period"]


def test_the_text_hides_nothing_and_obeys_nothing() -> None:
    ends = (end("run", attempts=1, reason="\x1b[2Jgone\u202e"), end("plan", recalled=["c"], sources=["family"]))
    found = counted(past("a", "unsolved", *ends, answers=[answer(model="x\x1b[31m")]))
    text = "\n".join(line.text for line in stats_lines(found))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2Jgone" in text
    assert "1 call, 12 tokens, $0.5000" in text
    assert "0.0 % [0.0, 79.3] of 1" in text


def test_results_and_long_model_names_read_well() -> None:
    long = f"command:{'x' * 60}"
    found = counted(past("a", "capped", answers=[answer(model=f"{long} {name}") for name in "bc"]))
    lines = [line.text for line in stats_lines(found, {"capped": "limit"})]
    assert f"{'  fix':<34} limit 1" in lines
    at = lines.index(f"  {long} b")
    assert lines[at + 2] == f"  {long} c"
    assert lines[at + 1] == lines[at + 3] == f"{' ' * HANG}1 call, 12 tokens, $0.5000"


def test_a_record_that_cannot_be_read_is_said() -> None:
    with pytest.raises(StoreError, match="attempt 1, patch, call 0 of run run cannot be read"):
        counted(past("a", answers=[record(CallPlace("run", 1, "patch", 0))]))
    with pytest.raises(StoreError, match="the baseline of a run"):
        counted(past("a", reproduced=["{}"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", NOW - timedelta(days=7)),
        ("12h", NOW - timedelta(hours=12)),
        (" 2w ", NOW - timedelta(weeks=2)),
        ("2030-03-01", datetime(2030, 3, 1, tzinfo=NOW.tzinfo)),
        ("2030-03-01T10:00+00:00", datetime(2030, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_given_as_people_do(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "7", "-7d", "7y", "2030-13-01", "999999w"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        moment(text, NOW)
