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
from redstart.core.run_status import RunRow
from redstart.engines.journal import KeptAnswer
from redstart.evals.intervals import estimate_share
from redstart.evals.run_facts import collect_facts
from redstart.evals.stats import Stats, compute_stats
from redstart.evals.stats_text import HANG, format_stats, parse_moment
from redstart.ports.store.port.journal import CallPlace, JournalRecord
from redstart.ports.store.port.runs import PastRun
from redstart.testing.states import make_event, make_signature, record, report

NOW = datetime(2030, 3, 10, 12, 0, tzinfo=timezone(timedelta(hours=2)))


def end(name: str, attempt: int = 1, **data: Any) -> Any:
    return make_event(name=name, attempt=attempt, phase=Phase.end, data=data)


def answer(step: str = "patch", model: str = "a:b", number: int = 0, **changes: Any) -> JournalRecord:
    usage = changes.pop("usage", Usage(input_tokens=10, output_tokens=2, usd=0.5))
    kept_answer = KeptAnswer(answer=Answer(text="", model=model, usage=usage, **changes), text="e" * 64)
    return record(CallPlace("run", 1, step, number), result=kept_answer.model_dump_json())


def make_past_run(run_id: str = "run", result: str = "verified", *ends: Any, **changes: Any) -> PastRun:
    status = Status.finished if result else Status.paused
    defaults = {"mode": "fix", "status": status, "goal": "", "repo": "shop", "folder": ""}
    answers, reproduced = changes.pop("answers", []), changes.pop("reproduced", [])
    row = RunRow(run_id=run_id, result=result, created=NOW, updated=NOW, **{**defaults, **changes})
    return PastRun(row, list(ends), reproduced, answers)


def count_stats(*runs: PastRun) -> Stats:
    return compute_stats([collect_facts(run) for run in runs])


def test_outcomes_are_counted_by_mode_and_only_real_tries_enter_the_share() -> None:
    stats = count_stats(
        make_past_run("a", "verified", end("run", attempts=1, seconds=4.0)),
        make_past_run("b", "unsolved", end("run", attempts=5, seconds=9.0, reason="still red after 5 attempts\nmore")),
        make_past_run("c", "verified", end("run", attempts=2, seconds=6.0)),
        make_past_run("d", "already_green", end("run", attempts=1, seconds=1.0)),
        make_past_run("e", "environment"),
        make_past_run("f", "", end("run", attempts=1, reason="a question")),
        make_past_run("g", "reported", mode="audit"),
        make_past_run("h", "unsolved", end("run", attempts=3, reason="still red after 3 attempts"), mode="create"),
        make_past_run("a.1", "verified", end("run", attempts=9, seconds=99.0)),
    )
    assert (stats.runs, stats.parts) == (8, 1)
    assert stats.outcomes["fix"] == {"verified": 2, "unsolved": 1, "already_green": 1, "environment": 1, "paused": 1}
    assert stats.outcomes["audit"] == {"reported": 1}
    assert stats.verified == estimate_share(2, 4)
    assert stats.attempts is not None
    assert (stats.attempts.count, stats.attempts.median, stats.attempts.most) == (4, 2.5, 5)
    assert stats.seconds_to_green is not None
    assert (stats.seconds_to_green.count, stats.seconds_to_green.mean) == (2, 5)
    assert stats.reasons == {"still red after … attempts": 2}


def test_reasons_keep_numbers_that_do_not_differ() -> None:
    reason = "the time limit of 5 minutes is reached"
    capped_runs = [make_past_run(name, "capped", end("run", attempts=1, reason=reason)) for name in "ab"]
    assert count_stats(*capped_runs).reasons == {reason: 2}


def test_last_end_of_a_resumed_run_counts() -> None:
    ended_twice = (end("run", attempts=2, seconds=5.0), end("run", attempts=4, seconds=8.0))
    stats = count_stats(make_past_run("a", "verified", *ended_twice))
    assert stats.attempts is not None
    assert stats.attempts.mean == 4


def test_costs_are_summed_by_step_and_model_including_child_runs() -> None:
    free = answer("decide@7", "c:d", usage=Usage(input_tokens=1, output_tokens=1, usd=None))
    stats = count_stats(
        make_past_run(
            "a", "verified", end("patch", seconds=2.0, tokens=999), answers=[answer(), answer(number=1), free]
        ),
        make_past_run("a.1", "verified", end("patch", seconds=1.5), answers=[answer(fault=AnswerFault.truncated)]),
    )
    patch = Spend(calls=3, input_tokens=30, output_tokens=6, usd=1.5, seconds=3.5)
    assert stats.by_step == {"patch": patch, "decide": Spend(calls=1, input_tokens=1, output_tokens=1, unpriced=1)}
    assert list(stats.by_step) == ["patch", "decide"]
    assert stats.by_model["a:b"] == patch.model_copy(update={"seconds": 0.0})
    assert stats.by_model["c:d"].unpriced == 1
    assert (stats.spent.calls, stats.spent.tokens, stats.spent.usd) == (4, 38, 1.5)
    assert stats.faults == {"truncated": 1}


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
def test_attempt_outcome_comes_from_the_last_step_that_has_one(ends: list[Any], kind: str) -> None:
    assert count_stats(make_past_run("a", "unsolved", *ends)).attempts_ended == {kind: 1}


@pytest.mark.parametrize(
    "ends",
    [
        [],
        [end("test", probe=True, still_red=1)],
        [end("reproduce", trouble="already_green")],
        [end("patch", fault=""), end("apply", ok=True), end("check", findings=0, fault="")],
    ],
)
def test_exploring_and_waiting_are_not_attempts(ends: list[Any]) -> None:
    assert count_stats(make_past_run("a", "unsolved", *ends)).attempts_ended == {}


def test_attempts_are_counted_separately() -> None:
    ends = [end("apply", ok=False), end("apply", 2, ok=True), end("test", 2, still_red=1), end("test", 3, newly_red=1)]
    assert count_stats(make_past_run("a", "unsolved", *ends)).attempts_ended == {
        "edit rejected": 1,
        "newly red": 1,
        "still red": 1,
    }


def test_errors_are_counted_by_the_initial_failure_of_the_run() -> None:
    def make_reproductions(**changes: Any) -> list[str]:
        failing_report = report(["test_a"], signature=make_signature(**changes))
        return [
            ReproductionResult(report=failing_report).model_dump_json(),
            ReproductionResult(report=report()).model_dump_json(),
        ]

    stats = count_stats(
        make_past_run("a", reproduced=make_reproductions()),
        make_past_run("b", reproduced=make_reproductions(exception="TypeError")),
        make_past_run("c", reproduced=make_reproductions()),
        make_past_run("d", reproduced=[ReproductionResult(report=report()).model_dump_json()]),
    )
    assert stats.errors == {"KeyError": 2, "TypeError": 1}


def test_recalled_cards_are_listed_with_the_outcomes_of_their_runs() -> None:
    plan_event = end("plan", recalled=["one", "two"], sources=["signature", "family"])
    second_event = end("plan", 2, recalled=["one"], sources=["signature"])
    stats = count_stats(
        make_past_run("a", "verified", plan_event, second_event, end("remember", card="three", failure=False)),
        make_past_run(
            "b",
            "unsolved",
            second_event,
            end("remember", card="", failure=True),
            end("remember", 2, card="", failure=True),
        ),
        make_past_run("c", "verified", end("plan", recalled=[], sources=[])),
        make_past_run("d", "", plan_event),
    ).memory
    assert stats.runs == 2
    assert (stats.verified_with, stats.verified_without) == (estimate_share(1, 2), estimate_share(1, 1))
    assert [(item.card, item.runs, item.verified) for item in stats.often] == [("one", 2, 1), ("two", 1, 1)]
    assert stats.sources == {"signature": 2, "family": 1}
    assert (stats.cards_left, stats.failures_left) == (1, 2)


def test_no_runs_give_empty_statistics() -> None:
    stats = count_stats()
    assert (stats.verified, stats.attempts, stats.spent) == (None, None, Spend())
    assert [line.text for line in format_stats(stats)] == ["no run was started in this period"]


def test_control_characters_are_escaped_in_the_text() -> None:
    ends = (end("run", attempts=1, reason="\x1b[2Jgone\u202e"), end("plan", recalled=["c"], sources=["family"]))
    stats = count_stats(make_past_run("a", "unsolved", *ends, answers=[answer(model="x\x1b[31m")]))
    text = "\n".join(line.text for line in format_stats(stats))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2Jgone" in text
    assert "1 call, 12 tokens, $0.5000" in text
    assert "0.0 % [0.0, 79.3] of 1" in text


def test_results_and_long_model_names_are_readable() -> None:
    long = f"command:{'x' * 60}"
    stats = count_stats(make_past_run("a", "capped", answers=[answer(model=f"{long} {name}") for name in "bc"]))
    lines = [line.text for line in format_stats(stats, {"capped": "limit"})]
    assert f"{'  fix':<34} limit 1" in lines
    line_index = lines.index(f"  {long} b")
    assert lines[line_index + 2] == f"  {long} c"
    assert lines[line_index + 1] == lines[line_index + 3] == f"{' ' * HANG}1 call, 12 tokens, $0.5000"


def test_unreadable_record_is_reported() -> None:
    with pytest.raises(StoreError, match="attempt 1, patch, call 0 of run run cannot be read"):
        count_stats(make_past_run("a", answers=[record(CallPlace("run", 1, "patch", 0))]))
    with pytest.raises(StoreError, match="the baseline of a run"):
        count_stats(make_past_run("a", reproduced=["{}"]))


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
def test_time_is_accepted_in_common_forms(text: str, expected: datetime) -> None:
    assert parse_moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "7", "-7d", "7y", "2030-13-01", "999999w"])
def test_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        parse_moment(text, NOW)


def test_precision_is_the_share_of_shown_cards_with_the_family_of_the_own_fix() -> None:
    families = {"kin": "f", "stranger": "x", "late": "x", "own-a": "f", "own-b": "f", "own-c": "f"}
    plan = end("plan", recalled=["kin", "stranger", "deleted"], sources=["family", "likeness", "likeness"])
    runs = [
        make_past_run("a", "verified", plan, end("patch", 2, recalled=["late", "kin"]), end("remember", card="own-a")),
        make_past_run("b", "unsolved", plan, end("remember", card="", failure=True)),
        make_past_run("c", "verified", end("remember", card="own-b")),
        make_past_run("d", "verified", plan, end("remember", card="deleted too")),
    ]
    stats = compute_stats([collect_facts(run) for run in runs], families)
    assert stats.memory.precision == estimate_share(1, 3)
    (line,) = [line.text for line in format_stats(stats) if "family" in line.text and "%" in line.text]
    assert line.startswith("  shown cards for the bug's family")
    assert line.endswith(" of 3")


def test_precision_is_unknown_if_no_verified_run_was_shown_a_card() -> None:
    run = make_past_run("a", "verified", end("remember", card="own"))
    stats = compute_stats([collect_facts(run)], {"own": "f"})
    assert stats.memory.precision is None
    assert not any("bug's family" in line.text for line in format_stats(stats))


def test_handovers_between_workers_are_added_up_and_shown_only_if_there_are_any() -> None:
    fleet_run = make_past_run("a", "verified", end("patch", seconds=1.0, handovers=5), end("test", handovers=1))
    stats = count_stats(fleet_run, make_past_run("b", "verified", end("patch", seconds=1.0)))
    assert (stats.spent.handovers, stats.by_step["patch"].handovers) == (6, 5)
    (line,) = [line.text for line in format_stats(stats) if "hand-overs" in line.text]
    assert line.split() == ["hand-overs", "between", "workers", "6"]
    assert not [line for line in format_stats(count_stats(make_past_run("b"))) if "hand-overs" in line.text]
